//! What the fuzz targets once found, and what they start from, on every run of the tests.

use std::fs;
use std::path::Path;

use netfix::fuzzing::{TARGETS, clean_up};

/// Where else there are documents of a target's kind.
const OTHERS: [(&str, &str); 2] = [
    ("window", "testdata/windows"),
    ("origin", "testdata/origin"),
];

#[test]
fn every_input_of_every_corpus_is_read_without_a_failure() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (name, target) in TARGETS {
        let own = root.join("testdata/fuzz").join(name);
        let others = OTHERS.iter().filter(|(other, _)| *other == name);
        let own = own.is_dir().then_some(own);
        let folders = others.map(|(_, folder)| root.join(folder)).chain(own);
        let mut inputs = 0;
        for entry in folders.flat_map(|folder| fs::read_dir(folder).expect("a corpus")) {
            let path = entry.expect("a file").path();
            eprintln!("{}", path.display());
            target(&fs::read(&path).expect("an input"));
            inputs += 1;
        }
        assert!(inputs > 0, "the corpus of {name} is empty");
    }
    clean_up().expect("the folder is removed");
}
