//! Ethernet hardware addresses.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A 48-bit MAC address, written as `02:00:00:00:00:01`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Mac(pub [u8; 6]);

/// Why a text is not a MAC address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a MAC address")]
pub struct InvalidMac(String);

impl Mac {
    /// The address, if `bytes` has the length of an Ethernet address; an InfiniBand address has 20 bytes.
    pub(crate) fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

impl FromStr for Mac {
    type Err = InvalidMac;

    fn from_str(text: &str) -> Result<Self, InvalidMac> {
        let invalid = || InvalidMac(text.to_owned());
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let part = parts
                .next()
                .filter(|part| part.len() == 2 && !part.starts_with('+'))
                .ok_or_else(invalid)?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| invalid())?;
        }
        if parts.next().is_some() {
            Err(invalid())
        } else {
            Ok(Self(bytes))
        }
    }
}

impl TryFrom<String> for Mac {
    type Error = InvalidMac;

    fn try_from(text: String) -> Result<Self, InvalidMac> {
        text.parse()
    }
}

impl From<Mac> for String {
    fn from(mac: Mac) -> Self {
        mac.to_string()
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = self.0.map(|byte| format!("{byte:02x}"));
        f.pad(&hex.join(":"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes() {
        let mac = Mac([0x6e, 0x92, 0x1a, 0xb4, 0xfc, 0x34]);
        assert_eq!(mac.to_string(), "6e:92:1a:b4:fc:34");
        assert_eq!(mac.to_string().parse(), Ok(mac));
    }

    #[test]
    fn refuses_other_texts() {
        for text in [
            "",
            "6e:92:1a:b4:fc",
            "6e:92:1a:b4:fc:34:00",
            "6e:92:1a:b4:fc:+4",
            "6e921ab4fc34",
        ] {
            assert_eq!(text.parse::<Mac>(), Err(InvalidMac(text.to_owned())));
        }
    }
}
