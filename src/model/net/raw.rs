//! Attributes of the kernel that netfix stores without interpreting them.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::model::text::{self, Invalid};

/// An rtnetlink attribute as the kernel sent it, and as it is sent back.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RawAttribute {
    /// Its number (`rta_type`).
    pub number: u16,
    /// Its bytes; in files as hexadecimal digits.
    #[serde(serialize_with = "to_hex", deserialize_with = "from_hex")]
    pub value: Vec<u8>,
}

fn to_hex<S: Serializer>(value: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&text::to_hex(value))
}

fn from_hex<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let bytes = (text.len() <= MOST_DIGITS).then(|| text::from_hex(&text));
    let bytes = bytes.flatten();
    bytes.ok_or_else(|| serde::de::Error::custom(Invalid::new(&text, "hexadecimal digits")))
}

/// Twice what an attribute can hold (`struct nlattr`, linux/netlink.h).
const MOST_DIGITS: usize = 2 * (u16::MAX as usize - 4);

#[cfg(test)]
mod tests {
    use crate::model::net::raw::*;

    #[test]
    fn the_bytes_are_hexadecimal_digits_in_files() {
        let raw = RawAttribute {
            number: 29,
            value: vec![0xff, 0x0a],
        };
        let text = serde_json::to_string(&raw).unwrap();
        assert_eq!(text, r#"{"number":29,"value":"ff0a"}"#);
        assert_eq!(serde_json::from_str::<RawAttribute>(&text).unwrap(), raw);
        for wrong in ["f", "0x", "é", "ff 0"] {
            let text = format!(r#"{{"number":1,"value":"{wrong}"}}"#);
            assert!(
                serde_json::from_str::<RawAttribute>(&text).is_err(),
                "{wrong}"
            );
        }
    }
}
