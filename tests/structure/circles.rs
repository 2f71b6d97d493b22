//! Which files import each other in a circle.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};

use super::source::{sources, visit_without_tests};

/// The paths that a file names, in `use` declarations and in the code, and those that it hands on under a name (`pub use`).
#[derive(Default)]
struct Paths {
    named: BTreeSet<Vec<String>>,
    handed_on: BTreeMap<String, Vec<String>>,
}

impl<'a> Visit<'a> for Paths {
    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        let mut leaves = Vec::new();
        leaves_of(&item.tree, &[], &mut leaves);
        if matches!(item.vis, syn::Visibility::Inherited) {
            self.named.extend(leaves.into_iter().map(|(path, _)| path));
        } else {
            self.handed_on
                .extend(leaves.into_iter().map(|(path, name)| (name, path)));
        }
    }

    /// `pub(super)` imports nothing.
    fn visit_visibility(&mut self, _: &'a syn::Visibility) {}

    fn visit_path(&mut self, path: &'a syn::Path) {
        let segments = path.segments.iter();
        self.named
            .insert(segments.map(|one| one.ident.to_string()).collect());
        visit::visit_path(self, path);
    }
}

/// The paths of a `use` declaration, each with the name that it has from then on.
fn leaves_of(tree: &syn::UseTree, before: &[String], into: &mut Vec<(Vec<String>, String)>) {
    let with = |last: &syn::Ident| [before, &[last.to_string()]].concat();
    match tree {
        syn::UseTree::Path(path) => leaves_of(&path.tree, &with(&path.ident), into),
        syn::UseTree::Group(group) => {
            for tree in &group.items {
                leaves_of(tree, before, into);
            }
        }
        syn::UseTree::Name(name) => into.push((with(&name.ident), name.ident.to_string())),
        syn::UseTree::Rename(one) => into.push((with(&one.ident), one.rename.to_string())),
        syn::UseTree::Glob(_) => into.push((before.to_vec(), String::new())),
    }
}

/// All files by their modules.
struct Modules(BTreeMap<Vec<String>, (String, Paths)>);

impl Modules {
    fn read() -> Self {
        let mut modules = BTreeMap::new();
        for source in sources() {
            if ["lib.rs", "main.rs"].contains(&&*source.name) {
                continue;
            }
            let mut paths = Paths::default();
            visit_without_tests(&mut paths, &source.syntax);
            modules.insert(source.module, (source.name, paths));
        }
        Self(modules)
    }

    /// The file that a path in `from` leads to: the longest module that it begins with, or the one that this module hands on. A
    /// path that begins with a word of its own leads to a child of `from`.
    fn target(&self, path: &[String], from: &[String]) -> Option<&str> {
        let mut whole = match path.first()?.as_str() {
            "crate" => Vec::new(),
            _ => from.to_vec(),
        };
        for word in path {
            match word.as_str() {
                "crate" | "self" => {}
                "super" => drop(whole.pop()),
                word => whole.push(word.to_owned()),
            }
        }
        let (at, (file, paths)) = (1..=whole.len())
            .rev()
            .find_map(|count| Some((count, self.0.get(&whole[..count])?)))?;
        let handed_on = whole.get(at).and_then(|name| paths.handed_on.get(name));
        match handed_on {
            // A name alone is a macro of this file.
            Some(path) if path.len() > 1 => self.target(path, &whole[..at]),
            _ => Some(file),
        }
    }

    /// The files that each file imports.
    fn arrows(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut arrows = BTreeMap::new();
        for (module, (file, paths)) in &self.0 {
            let targets = paths.named.iter();
            let targets = targets.filter_map(|path| self.target(path, module));
            arrows.insert(&**file, targets.filter(|target| target != file).collect());
        }
        arrows
    }
}

/// The files that can be reached from `from`, without itself unless a circle leads back.
fn reached<'a>(from: &'a str, arrows: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<&str> = arrows[from].iter().copied().collect();
    while let Some(next) = waiting.pop() {
        if reached.insert(next) {
            waiting.extend(&arrows[next]);
        }
    }
    reached
}

#[test]
fn no_more_than_two_files_import_each_other() {
    let modules = Modules::read();
    let arrows = modules.arrows();
    let all: BTreeMap<&str, _> = arrows
        .keys()
        .map(|file| (*file, reached(file, &arrows)))
        .collect();
    let circles: BTreeSet<Vec<&str>> = all
        .iter()
        .filter(|(file, reached)| reached.contains(**file))
        .map(|(file, reached)| {
            let back = reached.iter().filter(|other| all[**other].contains(file));
            back.copied().collect()
        })
        .collect();
    let large: Vec<_> = circles.iter().filter(|circle| circle.len() > 2).collect();
    assert!(large.is_empty(), "{large:#?}");
    assert!(arrows.values().map(BTreeSet::len).sum::<usize>() > 500);
}
