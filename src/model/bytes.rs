//! Text that is bytes to the kernel: names, aliases and paths.
//!
//! In files and on screens it is UTF-8: a byte that is not is written as `\xfc`, and a backslash as `\\`.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::text::escape;

/// Any bytes, nearly always readable text.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bytes(Vec<u8>);

impl Bytes {
    /// The bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }

    /// Whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes of an escaped text. A backslash that begins no escape stands for itself.
    #[must_use]
    pub fn unescape(text: &str) -> Self {
        Self(decode(text.as_bytes(), b"\\"))
    }

    /// The bytes of a pattern, in which a backslash before any other character stays.
    #[must_use]
    pub(crate) fn unescape_pattern(&self) -> Self {
        Self(decode(&self.0, b"\\\\"))
    }

    /// The text in files: valid UTF-8, from which [`Bytes::unescape`] gets the bytes back.
    #[must_use]
    pub fn escaped(&self) -> String {
        self.escaped_with(|text| text.replace('\\', "\\\\"))
    }

    /// A pattern as valid UTF-8; its backslashes stay.
    pub(crate) fn as_pattern(&self) -> String {
        self.escaped_with(str::to_owned)
    }

    fn escaped_with(&self, readable: impl Fn(&str) -> String) -> String {
        if let Ok(text) = str::from_utf8(&self.0) {
            return readable(text);
        }
        let mut text = String::with_capacity(self.0.len());
        for chunk in self.0.utf8_chunks() {
            text.push_str(&readable(chunk.valid()));
            text.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
        }
        text
    }
}

/// Undoes escapes; `backslash` is what two of them become.
fn decode(mut text: &[u8], backslash: &[u8]) -> Vec<u8> {
    if !text.contains(&b'\\') {
        return text.to_vec();
    }
    let mut bytes = Vec::with_capacity(text.len());
    loop {
        text = match text {
            [] => return bytes,
            [b'\\', b'\\', rest @ ..] => {
                bytes.extend(backslash);
                rest
            }
            [b'\\', b'x', high, low, rest @ ..] if number(*high, *low).is_some() => {
                bytes.extend(number(*high, *low));
                rest
            }
            [byte, rest @ ..] => {
                bytes.push(*byte);
                rest
            }
        };
    }
}

/// The number of a byte that is not ASCII: no other is escaped.
fn number(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = u8::try_from(digit(high)? * 16 + digit(low)?).ok()?;
    (!byte.is_ascii()).then_some(byte)
}

/// As in files, without anything that a terminal obeys.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.escaped_with(|text| escape(&text.replace('\\', "\\\\"))))
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.escaped())
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(Self::unescape(&text))
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl From<&str> for Bytes {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl From<String> for Bytes {
    fn from(text: String) -> Self {
        Self(text.into_bytes())
    }
}

impl From<&OsStr> for Bytes {
    fn from(text: &OsStr) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl From<&Path> for Bytes {
    fn from(path: &Path) -> Self {
        path.as_os_str().into()
    }
}

impl From<PathBuf> for Bytes {
    fn from(path: PathBuf) -> Self {
        Self(path.into_os_string().into_vec())
    }
}

impl From<Bytes> for PathBuf {
    fn from(path: Bytes) -> Self {
        std::ffi::OsString::from_vec(path.0).into()
    }
}

impl AsRef<OsStr> for Bytes {
    fn as_ref(&self) -> &OsStr {
        OsStr::from_bytes(&self.0)
    }
}

impl AsRef<Path> for Bytes {
    fn as_ref(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_written_as_utf_8_and_read_back() {
        let cases: [(&[u8], &str); 7] = [
            (b"eth0.3", "eth0.3"),
            ("büro \u{1b}".as_bytes(), "büro \u{1b}"),
            (b"b\xfcro", "b\\xfcro"),
            (b"b\\xfcro", "b\\\\xfcro"),
            (b"a\\b\\", "a\\\\b\\\\"),
            (b"\xe2\x80", "\\xe2\\x80"),
            (b"", ""),
        ];
        for (bytes, text) in cases {
            let name = Bytes::from(bytes.to_vec());
            assert_eq!(name.escaped(), text);
            assert_eq!(Bytes::unescape(text), name);
            let json = serde_json::to_string(&name).unwrap();
            assert_eq!(serde_json::from_str::<Bytes>(&json).unwrap(), name);
        }
    }

    #[test]
    fn a_backslash_that_begins_no_escape_is_one() {
        for text in ["a\\b", "a\\xg0", "a\\x41", "a\\x", "\\"] {
            assert_eq!(Bytes::unescape(text), Bytes::from(text));
        }
    }

    #[test]
    fn a_screen_shows_what_a_file_has_without_control_characters() {
        let shown = |bytes: &[u8]| Bytes::from(bytes.to_vec()).to_string();
        assert_eq!(shown(b"b\xfc\x1b[31m\\"), "b\\xfc\\u{1b}[31m\\\\");
        assert_eq!(escape(&shown(b"b\xfc\\")), shown(b"b\xfc\\"));
    }
}
