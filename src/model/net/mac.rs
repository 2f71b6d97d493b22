//! Ethernet hardware addresses.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::model::text::Invalid;

/// A 48-bit MAC address, written as `02:00:00:00:00:01`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// Whether it is of a group: broadcast or multicast.
    pub(crate) fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// Whether it is the MAC of a virtual router, which each of its machines has (RFC 9568, section 7.3).
    pub(crate) fn is_of_virtual_router(self) -> bool {
        matches!(self.0, [0, 0, 0x5e, 0, 1 | 2, _])
    }

    /// The address, if `bytes` has the length of an Ethernet address; an InfiniBand address has 20 bytes.
    pub(crate) fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

impl FromStr for Mac {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let invalid = || Invalid::new(&text, "a MAC address");
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
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
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
    use crate::model::net::mac::*;

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
            assert!(text.parse::<Mac>().is_err(), "{text}");
        }
    }
}
