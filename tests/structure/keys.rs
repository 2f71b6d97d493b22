//! The tables of keys in docs/reference/checkpoint-format.md, beside the structs that serde writes.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Where a table begins, the file below `src/model/net` with its struct, and the struct.
const TABLES: [(&str, &str, &str); 7] = [
    ("### `links[]`", "link/mod.rs", "Link"),
    ("### `addresses[]`", "address.rs", "Address"),
    ("### `routes[]`", "route/mod.rs", "Route"),
    ("| key of `hops[]`", "route/mod.rs", "Hop"),
    ("### `nexthops[]`", "nexthop.rs", "Nexthop"),
    ("### `rules[]`", "rule.rs", "Rule"),
    ("### `neighbours[]`", "neighbour.rs", "Neighbour"),
];

/// A key, whether it may be absent, and the attribute of the kernel that its row of the code names.
type Key = (String, bool, Option<String>);

fn read(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    fs::read_to_string(path).expect("a file of netfix")
}

/// What is in quotation marks behind `start`.
fn quoted(text: &str, start: &str) -> Option<String> {
    let (_, rest) = text.split_once(start)?;
    let (_, rest) = rest.split_once('"')?;
    Some(rest.split_once('"')?.0.to_owned())
}

/// The keys of a struct, with those of `attributes!`, which are no syntax that syn reads.
fn of_struct(text: &str, name: &str) -> BTreeSet<Key> {
    let start = format!("pub struct {name} {{\n");
    let (_, body) = text.split_once(&start).expect("the struct");
    let (mut keys, mut serde) = (BTreeSet::new(), String::new());
    for line in body.lines().map(str::trim).take_while(|line| *line != "}") {
        match line.strip_prefix("pub ") {
            Some(field) => {
                let end = field.find(['?', ':']).expect("a type");
                let key = quoted(&serde, "rename =").unwrap_or_else(|| field[..end].to_owned());
                let is_optional = field[end..].starts_with('?');
                let may_be_absent = is_optional || serde.contains("skip_serializing_if");
                keys.insert((key, may_be_absent, quoted(field, "row(")));
                serde.clear();
            }
            None if line.starts_with("//") => {}
            None => serde += line,
        }
    }
    keys
}

/// The rows of the first table behind `start`.
fn table<'a>(page: &'a str, start: &str) -> Vec<&'a str> {
    let (_, rest) = page.split_once(start).expect("the heading");
    let lines = rest.lines().skip_while(|line| !line.starts_with("|---"));
    lines
        .skip(1)
        .take_while(|line| line.starts_with('|'))
        .collect()
}

#[test]
fn the_keys_of_files_are_those_that_the_page_lists() {
    let page = read("docs/reference/checkpoint-format.md");
    let mut wrong = Vec::new();
    for (start, file, name) in TABLES {
        let mut keys = of_struct(&read(&format!("src/model/net/{file}")), name);
        if name == "Route" {
            // From the destination.
            keys.insert(("family".to_owned(), false, None));
        }
        assert!(keys.len() > 5, "{name}: {keys:?}");
        let mut rows = table(&page, start);
        for (key, may_be_absent, attribute) in keys {
            let at = rows
                .iter()
                .position(|row| row.starts_with(&format!("| `{key}` |")));
            let row = at.map(|at| rows.remove(at)).unwrap_or_default();
            let absent = row.trim_end_matches([' ', '|']).rsplit('|').next();
            let says_absent = absent.is_some_and(|cell| cell.trim().starts_with("yes"));
            let names = attribute.is_none_or(|name| row.contains(&format!("`{name}`")));
            if at.is_none() || says_absent != may_be_absent || !names {
                wrong.push(format!("{name}: {key}: {row}"));
            }
        }
        wrong.extend(
            rows.iter()
                .map(|row| format!("{name} has no such key: {row}")),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
