//! The documents: what they link to, and which files of `src` and `tests` they name.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn every_native_test_that_a_virtual_machine_runs_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let scenario = root.join("vm/scenarios/native.sh");
    let scenario = fs::read_to_string(scenario).expect("the scenario");
    let names = scenario
        .lines()
        .filter_map(|line| line.trim().split_once("::"));
    let exists = |(module, name): &(&str, &str)| {
        let file = root.join("native").join(format!("{module}.rs"));
        let text = fs::read_to_string(file).unwrap_or_default();
        text.contains(&format!("\nfn {name}()"))
    };
    let (found, missing): (Vec<_>, Vec<_>) = names.partition(exists);
    assert!(missing.is_empty(), "{missing:?}");
    assert!(!found.is_empty(), "the scenario names no test");
}

/// The documents that readers start from, and what they link to.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["docs", "docs/reference"].map(|folder| fs::read_dir(root.join(folder)));
    let entries = folders
        .into_iter()
        .flat_map(|entries| entries.expect("docs"));
    let mut paths: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    let others = [
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "contrib/ansible/README.md",
        "contrib/kubernetes/README.md",
    ];
    paths.extend(others.map(|other| root.join(other)));
    paths
}

/// The text without code blocks, whose `#` and brackets are not Markdown.
fn prose(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let outside = text.split("```").step_by(2);
    outside.collect()
}

/// The anchors of the headings, as GitHub and Forgejo make them.
fn anchors(path: &Path) -> BTreeSet<String> {
    let anchor = |heading: &str| {
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        let text: String = heading.trim().chars().filter(kept).collect();
        text.to_lowercase().replace(' ', "-")
    };
    let text = prose(path);
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| anchor(line.trim_start_matches('#')))
        .collect()
}

/// The targets of `[text](target)`.
fn targets(text: &str) -> Vec<&str> {
    let starts = text.split("](").skip(1);
    starts.filter_map(|rest| rest.split(')').next()).collect()
}

#[test]
fn every_link_of_the_documents_leads_to_a_file_and_a_heading() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for path in documents() {
        let text = prose(&path);
        for target in targets(&text) {
            if target.contains("://") {
                continue;
            }
            count += 1;
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let other = match file {
                "" => path.clone(),
                file => path.with_file_name(file),
            };
            if !other.exists() || !(anchor.is_empty() || anchors(&other).contains(anchor)) {
                wrong.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 100, "only {count} links were found");
}

/// The documents that a text names, such as `docs/night.md` or `docs/check.md#verdict`.
fn named_documents(text: &str) -> Vec<&str> {
    let starts = text.match_indices("docs/").map(|(at, _)| &text[at..]);
    let ends = |c: char| !(c.is_alphanumeric() || "/-_.#".contains(c));
    starts
        .filter_map(|rest| rest.split(ends).next())
        .map(|name| name.trim_end_matches('.'))
        .filter(|name| name.contains(".md"))
        .collect()
}

/// An alert, a unit, a message or a script leads to a page, which may move.
#[test]
fn every_document_that_the_program_and_its_files_name_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut names = Vec::new();
    for folder in ["src", "contrib", "scripts"] {
        files(&root.join(folder), &mut names);
    }
    let (mut wrong, mut count) = (Vec::new(), 0);
    for path in names {
        let text = fs::read_to_string(&path).unwrap_or_default();
        for name in named_documents(&text) {
            count += 1;
            let (file, anchor) = name.split_once('#').unwrap_or((name, ""));
            let file = root.join(file);
            if !file.exists() || !(anchor.is_empty() || anchors(&file).contains(anchor)) {
                wrong.push(format!("{}: {name}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 30, "only {count} names were found");
}

/// All files below a folder.
fn files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, into);
        } else {
            into.push(path);
        }
    }
}

/// The words of a document without the parts that are made of the code, between `<!-- NAME -->` and `<!-- end… -->`.
fn words(path: &Path) -> usize {
    let text = fs::read_to_string(path).expect("a document");
    let parts = text.split("<!-- end").map(|part| {
        let made = part.split_once("\n<!-- ");
        made.map_or(part, |(written, _)| written)
    });
    parts.map(|part| part.split_whitespace().count()).sum()
}

/// What a new user reads: a page that grows moves its facts to the reference, or says something twice.
#[test]
fn the_guides_the_reference_and_the_page_for_the_night_stay_short() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sum = |is_wanted: &dyn Fn(&Path) -> bool| -> usize {
        let all = documents();
        let wanted = all.iter().filter(|path| is_wanted(path));
        wanted.map(|path| words(path)).sum()
    };
    let is_in = |path: &Path, folder: &str| path.parent() == Some(&root.join(folder));
    let guides = sum(&|path| is_in(path, "docs") || path == root.join("README.md"));
    assert!((10_000..=15_000).contains(&guides), "{guides} words");
    let reference = sum(&|path| is_in(path, "docs/reference"));
    assert!((15_000..=30_000).contains(&reference), "{reference} words");
    let night = words(&root.join("docs/night.md"));
    assert!(night <= 650, "{night} words are more than one page");
}

/// The words of a document that end in `.rs`, as they are written.
fn source_files(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| c.is_whitespace() || "`(),;:|*".contains(c))
        .filter(|word| Path::new(word).extension().is_some_and(|end| end == "rs"))
        .collect()
}

/// A document names a file from `src`, from `tests` or from the root; in the same sentence also only by its last part.
#[test]
fn every_source_file_that_a_document_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut names = Vec::new();
    for folder in ["src", "tests", "benches", "fuzz"] {
        collect(root, &root.join(folder), &mut names);
    }
    let mut wrong = Vec::new();
    let mut count = 0;
    for path in documents() {
        let text = prose(&path);
        for file in source_files(&text) {
            count += 1;
            let is_there = |name: &String| *name == file || name.ends_with(&format!("/{file}"));
            if !names.iter().any(is_there) {
                wrong.push(format!("{}: {file}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 30, "only {count} names were found");
}

/// The names that a document says are in a file or folder, each with that: `` `Name` in `path` ``, or `` `path` (`Name`) ``.
fn names_in_files(text: &str) -> Vec<(&str, &str)> {
    let parts: Vec<&str> = text.split('`').collect();
    let is_path = |word: &str| word.contains('/') && !word.contains([' ', '*', '<']);
    let mut names = Vec::new();
    for three in parts.windows(3).skip(1).step_by(2) {
        match *three {
            [name, " in " | " of ", path] if is_path(path) => names.push((name, path)),
            [path, " (", name] if is_path(path) => names.push((name, path)),
            _ => {}
        }
    }
    names
}

/// What to change is found by its name, or the table leads nowhere.
#[test]
fn every_name_is_in_the_file_that_a_document_says_has_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let has = |name: &str, path: &Path| {
        let mut all = Vec::new();
        if path.is_dir() {
            files(path, &mut all);
        } else {
            all.push(path.to_owned());
        }
        let is_file = |file: &PathBuf| file.ends_with(name);
        let last = name.rsplit("::").next().unwrap_or(name);
        let has_it =
            |file: &PathBuf| fs::read_to_string(file).is_ok_and(|text| text.contains(last));
        all.iter().any(|file| is_file(file) || has_it(file))
    };
    let pages = ["docs/architecture.md", "docs/reference/where-to-change.md"];
    let (mut wrong, mut count) = (Vec::new(), 0);
    for page in pages {
        let text = prose(&root.join(page));
        for (name, path) in names_in_files(&text) {
            count += 1;
            let places = ["src", "tests", ""].map(|folder| root.join(folder).join(path));
            let place = places.iter().find(|place| place.exists());
            if !place.is_some_and(|place| has(name, place)) {
                wrong.push(format!("{page}: {name} in {path}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 10, "only {count} names were found");
}

/// The Rust files below a folder, from the root.
fn collect(root: &Path, folder: &Path, into: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(root, &path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(root).expect("below the root");
            into.push(name.display().to_string());
        }
    }
}

/// A collection has no link to a file outside of it.
#[test]
fn the_role_of_ansible_has_the_units_of_the_packages() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let units = |folder: &str| {
        let entries = fs::read_dir(root.join(folder)).expect("a folder").flatten();
        let texts = entries.map(|entry| {
            (
                entry.file_name(),
                fs::read_to_string(entry.path()).expect("a unit"),
            )
        });
        texts.collect::<std::collections::BTreeMap<_, _>>()
    };
    assert_eq!(
        units("contrib/ansible/roles/netfix/files"),
        units("contrib/systemd"),
        "copy contrib/systemd to contrib/ansible/roles/netfix/files"
    );
}

/// With `--become`, as the documents have it, root of the control machine has another kubeconfig.
#[test]
fn what_a_playbook_runs_on_another_machine_says_as_whom() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let playbook = root.join("contrib/ansible/playbooks/rolling_upgrade.yml");
    let text = fs::read_to_string(playbook).expect("the playbook");
    let mut delegated = 0;
    for task in text.split("- name:") {
        if task.contains("delegate_to:") {
            delegated += 1;
            assert!(task.contains("become:"), "{task}");
        }
    }
    assert_eq!(delegated, 4);
}
