//! What netfix does with each attribute that the kernel reports. The readers of routes and nexthop objects use these tables,
//! `docs/fidelity.md` is made of them, and a test compares them with everything that the kernel's dumps contain.

mod link;
mod other;
mod route;

pub use link::{BOND, BRIDGE_PORT, INET6, IPVLAN, LINK, LINK_INFO, MACVLAN, VLAN};
pub use other::{ADDRESS, NEIGHBOUR, NEXTHOP, RESILIENT, RULE, TRAFFIC};
pub use route::{HOP, METRIC, ROUTE};

/// What netfix does with an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Stored, compared and restored.
    Restored,
    /// The same, as bytes that netfix does not interpret.
    SentBack,
    /// Needed to read the others.
    Used,
    /// Named as `unsupported` at the snapshot.
    Named,
    /// A state, a count or an ability, which no request sets.
    State,
    /// A setting that netfix does not read, for this reason.
    NotRead(&'static str),
}

/// An attribute.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Its number in messages (`nla_type`).
    pub number: u16,
    /// Its name in the kernel's header.
    pub name: &'static str,
    /// What netfix does with it.
    pub fate: Fate,
    /// The tests that show it: files in `tests/native`, or in `tests/vm/scenarios`; empty where there is nothing to show.
    pub tests: &'static str,
    /// The first kernel that has it, where that is newer than 4.15.
    pub since: &'static str,
}

const fn row(number: u16, name: &'static str, fate: Fate, tests: &'static str) -> Row {
    Row {
        number,
        name,
        fate,
        tests,
        since: "",
    }
}

impl Row {
    const fn since(self, since: &'static str) -> Self {
        Self { since, ..self }
    }
}

/// The attributes of one kind of object.
#[derive(Debug)]
pub struct Table {
    /// What has them.
    pub title: &'static str,
    /// The header that defines them.
    pub source: &'static str,
    /// The attributes, in ascending order of their numbers.
    pub rows: &'static [Row],
}

impl Table {
    /// What netfix does with an attribute; `None` for one that is not known yet.
    #[must_use]
    pub fn fate(&self, number: u16) -> Option<Fate> {
        let row = self.rows.iter().find(|row| row.number == number);
        row.map(|row| row.fate)
    }

    /// The name of an attribute that is stored as bytes.
    pub(crate) fn name(&self, number: u16) -> Option<&'static str> {
        let row = self.rows.iter().find(|row| row.number == number);
        row.map(|row| row.name)
    }

    /// Whether an attribute is stored as bytes.
    pub(crate) fn is_sent_back(&self, number: u16) -> bool {
        self.fate(number) == Some(Fate::SentBack)
    }
}

/// Every table.
pub const TABLES: [&Table; 17] = [
    &LINK,
    &LINK_INFO,
    &MACVLAN,
    &IPVLAN,
    &VLAN,
    &BOND,
    &BRIDGE_PORT,
    &INET6,
    &ADDRESS,
    &ROUTE,
    &HOP,
    &METRIC,
    &NEXTHOP,
    &RESILIENT,
    &RULE,
    &NEIGHBOUR,
    &TRAFFIC,
];

#[cfg(test)]
mod tests {
    use std::fmt::Write;
    use std::path::Path;

    use super::*;

    const BEGIN: &str = "<!-- attributes -->\n";
    const END: &str = "<!-- end of attributes -->\n";

    fn words(fate: Fate) -> &'static str {
        match fate {
            Fate::Restored => "restored",
            Fate::SentBack => "restored, as bytes",
            Fate::Used => "used to read the others",
            Fate::Named => "named at the snapshot",
            Fate::State => "state, count or ability",
            Fate::NotRead(_) => "not read",
        }
    }

    fn line(text: &mut String, row: &Row) {
        let reason = match row.fate {
            Fate::NotRead(reason) => format!(": {reason}"),
            _ => String::new(),
        };
        let Row {
            name, tests, since, ..
        } = row;
        let what = words(row.fate);
        let _ = writeln!(text, "| `{name}` | {what}{reason} | {since} | {tests} |");
    }

    fn listed() -> String {
        let mut text = BEGIN.to_owned();
        for table in TABLES {
            let _ = writeln!(text, "\n### {}\n\n{}\n", table.title, table.source);
            text += "| attribute | netfix | since Linux | tests |\n|---|---|---|---|\n";
            for row in table.rows {
                line(&mut text, row);
            }
        }
        text + "\n" + END
    }

    fn root() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR"))
    }

    #[test]
    fn the_documentation_lists_every_attribute() {
        let path = root().join("docs/fidelity.md");
        let page = std::fs::read_to_string(&path).unwrap();
        let begin = page.find(BEGIN).unwrap();
        let end = page.find(END).unwrap() + END.len();
        if std::env::var_os("NETFIX_BLESS").is_some() {
            let new = format!("{}{}{}", &page[..begin], listed(), &page[end..]);
            return std::fs::write(&path, new).unwrap();
        }
        assert!(
            page[begin..end] == listed(),
            "docs/fidelity.md does not list the attributes as they are: run \
             NETFIX_BLESS=1 cargo test --lib fidelity, and read what it wrote"
        );
    }

    #[test]
    fn an_attribute_that_is_restored_has_a_test() {
        for table in TABLES {
            assert!(
                table.rows.is_sorted_by(|a, b| a.number < b.number),
                "{}",
                table.title
            );
            for row in table.rows {
                let needs_test = matches!(row.fate, Fate::Restored | Fate::SentBack);
                assert_eq!(needs_test, !row.tests.is_empty(), "{}", row.name);
                for test in row.tests.split(", ").filter(|test| !test.is_empty()) {
                    let files = [
                        format!("tests/native/{test}.rs"),
                        format!("tests/native/{test}/mod.rs"),
                        format!("tests/vm/scenarios/{test}.sh"),
                    ];
                    let exists = files.iter().any(|file| root().join(file).exists());
                    assert!(exists, "{}: no test {test}", row.name);
                }
            }
        }
    }
}
