//! Parts of documentation that are made of the code.

use std::path::Path;

/// Compares the part of a page between two lines with `listed`, which has these lines too; with `NETFIX_BLESS` it is written
/// instead. `filter` selects the test in `cargo test --lib`.
pub(crate) fn compare(file: &str, begin: &str, end: &str, listed: &str, filter: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let page = std::fs::read_to_string(&path).unwrap();
    let begin = page.find(begin).unwrap();
    let end = page.find(end).unwrap() + end.len();
    if std::env::var_os("NETFIX_BLESS").is_some() {
        let new = format!("{}{listed}{}", &page[..begin], &page[end..]);
        return std::fs::write(&path, new).unwrap();
    }
    assert!(
        &page[begin..end] == listed,
        "{file} does not list what the code has: run NETFIX_BLESS=1 cargo test --lib {filter}, and read what it wrote"
    );
}
