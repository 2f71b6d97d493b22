//! The source files of `src`, as text and as syntax.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::Visit;

/// One file of `src`.
pub struct Source {
    /// Its path below `src`, such as `plan/pod.rs`.
    pub name: String,
    /// The part of `src` that it belongs to: the folder or file in `src`.
    pub part: String,
    /// The module that it is, such as `["plan", "pod"]`.
    pub module: Vec<String>,
    pub text: String,
    pub syntax: syn::File,
}

impl Source {
    fn read(root: &Path, path: &Path) -> Self {
        let name = path.strip_prefix(root).expect("below src");
        let name = name.display().to_string();
        let mut module: Vec<String> = name
            .trim_end_matches(".rs")
            .split('/')
            .map(str::to_owned)
            .collect();
        let part = module[0].clone();
        if matches!(&*module, [.., last] if ["lib", "mod"].contains(&&**last)) {
            module.pop();
        }
        let text = fs::read_to_string(path).expect("a source file");
        let syntax = syn::parse_file(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        Self {
            name,
            part,
            module,
            text,
            syntax,
        }
    }

    /// The code without comments and without unit tests.
    pub fn code(&self) -> String {
        let text = self.text.split("\n#[cfg(test)]\nmod tests").next();
        let lines = text.unwrap_or_default().lines();
        lines
            .filter(|line| !line.trim_start().starts_with("//"))
            .fold(String::new(), |mut all, line| {
                let _ = writeln!(all, "{line}");
                all
            })
    }
}

/// All files of `src`, without those that only have unit tests.
pub fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut paths = Vec::new();
    collect(&root, &mut paths);
    assert!(paths.len() > 50, "src was not found: {}", paths.len());
    paths.retain(|path| !path.ends_with("tests.rs") && !path.ends_with("cases.rs"));
    paths.iter().map(|path| Source::read(&root, path)).collect()
}

fn collect(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// Whether an item is compiled for tests only.
pub fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && attribute
                    .parse_args::<syn::Path>()
                    .is_ok_and(|path| path.is_ident("test"))
    })
}

/// Visits a file without its unit tests.
pub fn visit_without_tests<'a>(visitor: &mut impl Visit<'a>, file: &'a syn::File) {
    for item in &file.items {
        let is_tests = matches!(item, syn::Item::Mod(module) if is_test(&module.attrs));
        if !is_tests {
            visitor.visit_item(item);
        }
    }
}
