//! Interface names as the kernel accepts them (`dev_valid_name()`, net/core/dev.c).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::model::Bytes;
use crate::model::text::Invalid;

/// `IFNAMSIZ`: the size of a name in the kernel, with at least one NUL at its end.
const SIZE: usize = 16;

/// A network interface name: 1 to 15 bytes, no slash, colon, percent sign or white space, not `.` or `..`. It need not be UTF-8.
///
/// ```
/// use netfix::model::IfName;
/// assert!("eth0.3".parse::<IfName>().is_ok());
/// assert!("../etc".parse::<IfName>().is_err());
/// ```
///
/// It is as in the kernel, with NULs to its end.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Bytes", into = "Bytes")]
pub struct IfName([u8; SIZE]);

impl IfName {
    /// The name in the kernel. It may contain anything: print it with `Display`.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        let end = self.0.iter().position(|byte| *byte == 0);
        &self.0[..end.unwrap_or(SIZE)]
    }

    /// The name as text, for programs that know UTF-8 names only; `None` for any other name.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        str::from_utf8(self.as_bytes()).ok()
    }

    /// Whether this is the name.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        self.as_bytes() == name.as_bytes()
    }
}

impl TryFrom<Bytes> for IfName {
    type Error = Invalid;

    fn try_from(name: Bytes) -> Result<Self, Invalid> {
        let bytes = name.as_slice();
        // The kernel takes `%` for a place of a number, and no link keeps one.
        let forbidden = |byte: &u8| b"/:%\0\x0b".contains(byte) || byte.is_ascii_whitespace();
        let valid = (1..SIZE).contains(&bytes.len())
            && bytes != b"."
            && bytes != b".."
            && !bytes.iter().any(forbidden);
        if valid {
            let mut padded = [0; SIZE];
            padded[..bytes.len()].copy_from_slice(bytes);
            Ok(Self(padded))
        } else {
            Err(Invalid::new(
                &name,
                "an interface name (1 to 15 bytes, no '/', ':', '%' or white space)",
            ))
        }
    }
}

impl From<IfName> for Bytes {
    fn from(name: IfName) -> Self {
        name.as_bytes().to_vec().into()
    }
}

impl TryFrom<String> for IfName {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        Self::try_from(Bytes::from(text))
    }
}

/// Reads a name as netfix shows it.
impl FromStr for IfName {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::try_from(Bytes::unescape(text))
    }
}

/// Escapes control characters, because a pod chooses its interface names.
impl fmt::Display for IfName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Bytes::from(self.clone()).fmt(f)
    }
}

impl fmt::Debug for IfName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Bytes::from(self.clone()).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use crate::model::net::name::*;

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
            "eth%d",
            "100%",
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
    fn a_name_is_bytes() {
        let name = IfName::try_from(Bytes::from(b"b\xfcro".to_vec())).unwrap();
        assert_eq!(name.to_string(), "b\\xfcro");
        assert_eq!(name.to_string().parse(), Ok(name.clone()));
        assert_eq!(serde_json::to_string(&name).unwrap(), "\"b\\\\xfcro\"");
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
