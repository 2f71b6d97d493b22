//! How large folders, files and functions are.

use std::collections::BTreeMap;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::source::{sources, visit_without_tests};

/// A screen or two: what a reader holds at once.
const LINES_OF_A_FUNCTION: usize = 60;
const LINES_OF_A_FILE: usize = 400;
const FILES_OF_A_FOLDER: usize = 15;

/// The functions of a file with their numbers of lines, from `fn` to the closing brace.
#[derive(Default)]
struct Functions(Vec<(String, usize)>);

impl Functions {
    fn add(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let lines = block.span().end().line - signature.span().start().line + 1;
        self.0.push((signature.ident.to_string(), lines));
    }
}

impl<'a> Visit<'a> for Functions {
    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }
}

#[test]
fn functions_stay_small() {
    let mut large = Vec::new();
    let mut count = 0;
    for source in sources() {
        let mut functions = Functions::default();
        visit_without_tests(&mut functions, &source.syntax);
        count += functions.0.len();
        for (function, lines) in functions.0 {
            if lines > LINES_OF_A_FUNCTION {
                large.push(format!("{}: {function}: {lines} lines", source.name));
            }
        }
    }
    assert!(count > 1000, "only {count} functions were found");
    assert!(large.is_empty(), "{}", large.join("\n"));
}

#[test]
fn files_stay_small() {
    let sources = sources();
    let lines = sources
        .iter()
        .map(|source| (&source.name, source.text.lines().count()));
    let large: Vec<_> = lines
        .filter(|(_, lines)| *lines > LINES_OF_A_FILE)
        .collect();
    assert!(large.is_empty(), "{large:#?}");
}

#[test]
fn folders_stay_small() {
    let mut folders: BTreeMap<String, usize> = BTreeMap::new();
    for source in sources() {
        let folder = source
            .name
            .rsplit_once('/')
            .map_or("", |(folder, _)| folder);
        *folders.entry(folder.to_owned()).or_default() += 1;
    }
    folders.retain(|_, files| *files > FILES_OF_A_FOLDER);
    assert!(folders.is_empty(), "{folders:#?}");
}
