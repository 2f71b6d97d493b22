//! Which modules a command unloads and loads, as far as its words tell.

use std::collections::BTreeSet;

use crate::model::text::module_name;

/// Unloads all that a driver of Mellanox needs, in its order.
const OPENIBD: &str = "openibd";

/// Whether this text of a command or script has a `modprobe -r` or `rmmod` of the module.
pub(crate) fn unloads(text: &str, module: &str) -> bool {
    commands(text).any(|words| {
        words.contains(&OPENIBD) || arguments(&words).is_some_and(|of| of_module(text, of, module))
    })
}

/// The modules that `modprobe` is to load; not those that a variable names.
pub(crate) fn loads(text: &str) -> BTreeSet<&str> {
    let loaded = commands(text).filter_map(|words| {
        let at = words.iter().position(|word| *word == "modprobe")?;
        let rest = &words[at + 1..];
        // Of its options only these are about loading, and none of them has a value.
        let loads = |word: &str| matches!(word, "-v" | "-q" | "-s" | "-i" | "-b" | "-f");
        let first = *rest.iter().find(|word| !loads(word))?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        (!first.starts_with('-') && first.chars().all(is_name)).then_some(first)
    });
    loaded.collect()
}

/// The words of each command of a text, without comments.
fn commands(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default());
    let commands = lines.flat_map(|line| line.split([';', '&', '|', '(', ')', '{', '}', '`']));
    commands.map(|command| command.split_whitespace().map(plain).collect())
}

/// A word without quotes and folder.
fn plain(word: &str) -> &str {
    let word = word.trim_matches(['"', '\'']);
    word.rsplit('/').next().unwrap_or_default()
}

/// The words behind a program that unloads modules.
fn arguments<'a>(words: &'a [&'a str]) -> Option<&'a [&'a str]> {
    let at = words
        .iter()
        .position(|word| matches!(*word, "rmmod" | "modprobe"))?;
    let (program, rest) = words.get(at..)?.split_first()?;
    let removes = |word: &&str| {
        let is_short = word.starts_with('-') && !word.starts_with("--");
        word.starts_with("--remove") || is_short && word.contains('r')
    };
    (*program == "rmmod" || rest.iter().any(removes)).then_some(rest)
}

/// Whether these arguments name the module, or all that use it, or a variable that may.
fn of_module(text: &str, arguments: &[&str], module: &str) -> bool {
    let is_it = |word: &str| module_name(word) == module;
    let is_in_text = || {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        text.split(|c| !is_part(c)).any(is_it)
    };
    arguments.iter().any(|word| {
        is_it(word) || *word == "--remove-holders" || word.starts_with('$') && is_in_text()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_unloads_what_modprobe_or_rmmod_gets() {
        for text in [
            "modprobe -r irdma i40e",
            "sh -c modprobe -r i40e irdma; modprobe i40e",
            "set -e\n/sbin/rmmod irdma # first\nrmmod i40e\n",
            "modprobe -rv \"irdma\" && modprobe -r i40e",
            "for m in irdma i40e; do rmmod $m; done",
            "modprobe --remove --remove-holders i40e",
            "/etc/init.d/openibd restart",
        ] {
            assert!(unloads(text, "irdma"), "{text}");
        }
        for text in [
            "modprobe -r i40e; modprobe i40e; modprobe irdma",
            "modprobe irdma",
            "# rmmod irdma\nrmmod i40e",
            "for m in ice i40e; do rmmod $m; done",
            "insmod irdma.ko; rmmod i40e",
            "",
        ] {
            assert!(!unloads(text, "irdma"), "{text}");
        }
        assert!(unloads("rmmod mlx5-ib", "mlx5_ib"));
    }

    #[test]
    fn a_command_loads_what_modprobe_gets_without_an_option_that_says_otherwise() {
        let loaded = |text| loads(text).into_iter().collect::<Vec<_>>().join(" ");
        let text = "modprobe -r i40e; modprobe -v i40e max_vfs=2\n/sbin/modprobe irdma # modprobe x\nmodprobe -n y; modprobe $m";
        assert_eq!(loaded(text), "i40e irdma");
        assert_eq!(loaded("sh -c 'modprobe -r ice && modprobe ice'"), "ice");
        assert_eq!(
            loaded("modprobe --show-depends z; modprobe -a a b; modprobe"),
            ""
        );
    }
}
