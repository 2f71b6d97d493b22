//! `docs/reference/fidelity.md`: what netfix does with each attribute of the kernel.

use std::fmt::Write;
use std::path::Path;

use crate::model::fidelity::{Attribute, AttributeTable, TABLES, Treatment, TwinComparison};
use crate::report::docs::listed_part;

const BEGIN: &str = "<!-- attributes -->\n";
const END: &str = "<!-- end of attributes -->\n";

fn words(fate: Treatment) -> &'static str {
    match fate {
        Treatment::Restored => "restored",
        Treatment::SentBack => "restored, as bytes",
        Treatment::Used => "used to read the others",
        Treatment::Named => "named at the snapshot",
        Treatment::State => "state, count or ability",
        Treatment::NotRead(_) => "not read",
    }
}

fn in_rehearsal(comparison: TwinComparison) -> String {
    match comparison {
        TwinComparison::Reported => "compared as the kernel reports them".to_owned(),
        TwinComparison::Part(part) => format!("compared, of each link: {part}"),
        TwinComparison::Never(reason) => format!("not compared: {reason}"),
    }
}

fn line(text: &mut String, table: &AttributeTable, row: &Attribute) {
    let comparison = table.comparison(row).filter(|own| *own != table.twin);
    let reason = match (row.fate, comparison) {
        (Treatment::NotRead(reason), _) => format!(": {reason}"),
        (_, Some(comparison)) => format!("; in a rehearsal {}", in_rehearsal(comparison)),
        _ => String::new(),
    };
    let Attribute {
        name, tests, since, ..
    } = row;
    let what = words(row.fate);
    let _ = writeln!(text, "| `{name}` | {what}{reason} | {since} | {tests} |");
}

fn in_order(table: &AttributeTable) -> Vec<&Attribute> {
    let mut rows: Vec<_> = table.rows.iter().collect();
    rows.sort_by_key(|row| row.number);
    rows
}

fn listed() -> String {
    let mut text = BEGIN.to_owned();
    for table in TABLES {
        let _ = writeln!(text, "\n### {}\n\n{}\n", table.title, table.source);
        let _ = writeln!(
            text,
            "In a [rehearsal](../rehearsal.md): {}.\n",
            in_rehearsal(table.twin)
        );
        text += "| attribute | netfix | since Linux | tests |\n|---|---|---|---|\n";
        for row in in_order(table) {
            line(&mut text, table, row);
        }
    }
    text + "\n" + END
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_documentation_lists_every_attribute() {
    listed_part::compare(
        "docs/reference/fidelity.md",
        BEGIN,
        END,
        &listed(),
        "fidelity",
    );
}

#[test]
fn an_attribute_that_is_restored_or_named_has_a_test() {
    for table in TABLES {
        let rows = in_order(table);
        let is_each_once = rows.is_sorted_by(|a, b| a.number < b.number);
        assert!(is_each_once, "{}", table.title);
        for row in table.rows {
            let needs_test = matches!(
                row.fate,
                Treatment::Restored | Treatment::SentBack | Treatment::Named
            );
            assert_eq!(needs_test, !row.tests.is_empty(), "{}", row.name);
            for test in row.tests.split(", ").filter(|test| !test.is_empty()) {
                let files = [
                    format!("tests/native/{test}.rs"),
                    format!("tests/native/{test}/mod.rs"),
                    format!("tests/vm/scenarios/{test}.sh"),
                    format!("src/{test}.rs"),
                ];
                let exists = files.iter().any(|file| root().join(file).exists());
                assert!(exists, "{}: no test {test}", row.name);
            }
        }
    }
}
