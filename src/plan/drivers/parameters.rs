//! Parameters of modules: which value modprobe(8) gives at a reload.

use std::collections::BTreeMap;

use crate::model::text::module_name;

/// The values that modprobe(8) gives, by module and parameter.
#[derive(Debug, Default)]
pub(crate) struct ModuleOptions(BTreeMap<(String, String), String>);

impl ModuleOptions {
    /// From the texts of modprobe.d(5), in their order, and from the kernel's command line, which counts most.
    pub(crate) fn new<'a>(texts: impl IntoIterator<Item = &'a String>, cmdline: &str) -> Self {
        let mut found = Self::default();
        for text in texts {
            let text = text.replace("\\\n", " ");
            for line in text.lines() {
                let mut words = line.split_whitespace();
                if let (Some("options"), Some(module)) = (words.next(), words.next()) {
                    words.for_each(|word| found.add(module, word));
                }
            }
        }
        for word in cmdline.split_whitespace() {
            let module = word
                .split_once('.')
                .filter(|(module, _)| !module.contains('='));
            if let Some((module, rest)) = module {
                found.add(module, rest);
            }
        }
        found
    }

    fn add(&mut self, module: &str, word: &str) {
        // A flag may stand alone.
        let (name, value) = word.split_once('=').unwrap_or((word, "Y"));
        let value = value.trim_matches('"').to_owned();
        self.0
            .insert((module_name(module), module_name(name)), value);
    }

    /// Whether a reload gives this parameter another value than this one.
    pub(crate) fn changes(&self, module: &str, name: &str, running: &str) -> bool {
        let given = self.0.get(&(module.to_owned(), module_name(name)));
        given.is_some_and(|given| meaning(given) != meaning(running))
    }
}

/// The line for modprobe.d(5) that gives this value.
pub(crate) fn option(module: &str, name: &str, value: &str) -> String {
    format!("options {module} {name}={value}")
}

/// A value in one form: the kernel shows a flag as `Y` and a number in decimal, and takes more.
fn meaning(value: &str) -> String {
    let hex = value.strip_prefix("0x");
    match value {
        "Y" | "y" | "on" => "1".to_owned(),
        "N" | "n" | "off" => "0".to_owned(),
        other => match hex.and_then(|digits| i64::from_str_radix(digits, 16).ok()) {
            Some(number) => number.to_string(),
            None => other.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_another_value_than_the_one_that_modprobe_gives_is_lost() {
        let text = "# options ixgbe a=9\noptions ixgbe \\\n allow_unsupported_sfp=1 max-vfs=0x10\noptions sfc flag\n".to_owned();
        let given = ModuleOptions::new([&text], "quiet ip=1.2 ixgbe.level=3 root=/dev/x.y=1");
        for (name, same, other) in [
            ("allow_unsupported_sfp", "Y", "N"),
            ("max_vfs", "16", "10"),
            ("level", "3", "4"),
        ] {
            assert!(!given.changes("ixgbe", name, same), "{name}");
            assert!(given.changes("ixgbe", name, other), "{name}");
        }
        assert!(given.changes("sfc", "flag", "0") && !given.changes("sfc", "flag", "Y"));
        assert!(!given.changes("ixgbe", "unknown", "7") && !given.changes("ixgbe", "a", "7"));
    }
}
