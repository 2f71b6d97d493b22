//! Interface names as the kernel accepts them (`dev_valid_name()`, net/core/dev.c).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::text::{Invalid, escape};

/// The longest interface name in bytes: `IFNAMSIZ` without the terminating NUL.
const MAX_BYTES: usize = 15;

/// A network interface name: 1 to 15 bytes, no slash, colon or white space, not `.` or `..`.
///
/// ```
/// use netfix::model::IfName;
/// assert!("eth0.3".parse::<IfName>().is_ok());
/// assert!("../etc".parse::<IfName>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct IfName(String);

impl IfName {
    /// The name in the kernel. It may contain control characters: print it with `Display`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for IfName {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        let forbidden =
            |c: char| c == '/' || c == ':' || c == '\0' || c.is_ascii_whitespace() || c == '\x0b';
        let valid = (1..=MAX_BYTES).contains(&text.len())
            && text != "."
            && text != ".."
            && !text.contains(forbidden);
        if valid {
            Ok(Self(text))
        } else {
            Err(Invalid::new(
                &text,
                "an interface name (1 to 15 bytes, no '/', ':' or white space)",
            ))
        }
    }
}

impl FromStr for IfName {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::try_from(text.to_owned())
    }
}

/// Escapes control characters, because a pod chooses its interface names.
impl fmt::Display for IfName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&escape(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_what_the_kernel_accepts() {
        for name in [
            "e",
            "eth0.3",
            "bond4.4094",
            "exactly15bytes_",
            "-",
            "ünïcode",
        ] {
            assert!(name.parse::<IfName>().is_ok(), "{name}");
        }
    }

    #[test]
    fn refuses_what_the_kernel_refuses() {
        for name in [
            "",
            ".",
            "..",
            "a/b",
            "a:b",
            "a b",
            "a\tb",
            "sixteen_bytes_xx",
        ] {
            assert!(name.parse::<IfName>().is_err(), "{name}");
        }
    }

    #[test]
    fn json_cannot_bypass_the_constructor() {
        assert!(serde_json::from_str::<IfName>("\"../../etc\"").is_err());
    }

    #[test]
    fn control_characters_are_escaped_when_printed() {
        let hostile: IfName = "a\x1b[31mb".parse().unwrap();
        assert_eq!(hostile.to_string(), "a\\u{1b}[31mb");
    }
}
