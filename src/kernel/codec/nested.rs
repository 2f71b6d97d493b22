//! Attributes inside an attribute, as bytes: what is not changed stays as the kernel sent it.

use crate::model::net::raw::RawAttribute;

/// `struct nlattr` (`linux/netlink.h`).
const HEADER: usize = 4;
/// `NLA_TYPE_MASK`.
const NUMBER: u16 = 0x3fff;

/// The attributes inside an attribute, each with its type, which may have flags, and its value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Nested(Vec<(u16, Vec<u8>)>);

impl Nested {
    /// `None` for bytes that are no list of attributes.
    pub fn parse(mut bytes: &[u8]) -> Option<Self> {
        let mut all = Vec::new();
        while let [low, high, kind_low, kind_high, ..] = *bytes {
            let length = usize::from(u16::from_ne_bytes([low, high]));
            let value = bytes.get(HEADER..length)?;
            let kind = u16::from_ne_bytes([kind_low, kind_high]);
            all.push((kind, value.to_vec()));
            bytes = bytes
                .get(length.next_multiple_of(HEADER)..)
                .unwrap_or_default();
        }
        bytes.is_empty().then_some(Self(all))
    }

    /// The attributes, as they are stored.
    pub fn into_stored(self) -> impl Iterator<Item = RawAttribute> {
        self.0.into_iter().map(|(kind, value)| RawAttribute {
            number: kind & NUMBER,
            value,
        })
    }

    /// The list as the kernel sends and takes it.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (kind, value) in &self.0 {
            let length = u16::try_from(HEADER + value.len()).unwrap_or(u16::MAX);
            bytes.extend(length.to_ne_bytes());
            bytes.extend(kind.to_ne_bytes());
            bytes.extend(value);
            bytes.resize(bytes.len().next_multiple_of(HEADER), 0);
        }
        bytes
    }

    /// The value of the attribute with this number.
    pub fn get(&self, number: u16) -> Option<&[u8]> {
        let mut all = self.0.iter();
        let found = all.find(|(kind, _)| kind & NUMBER == number);
        found.map(|(_, value)| value.as_slice())
    }

    /// The values of all attributes with this number.
    pub fn all(&self, number: u16) -> impl Iterator<Item = &[u8]> {
        let all = self.0.iter();
        all.filter(move |(kind, _)| kind & NUMBER == number)
            .map(|(_, value)| value.as_slice())
    }

    /// The value of the attribute with this number, to change it.
    pub fn get_mut(&mut self, number: u16) -> Option<&mut Vec<u8>> {
        let mut all = self.0.iter_mut();
        let found = all.find(|(kind, _)| *kind & NUMBER == number);
        found.map(|(_, value)| value)
    }

    /// The value of a number of 32 bits.
    pub fn u32(&self, number: u16) -> Option<u32> {
        word(self.get(number)?, 0)
    }

    /// The numbers of all attributes with their values, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &[u8])> {
        let all = self.0.iter();
        all.map(|(kind, value)| (kind & NUMBER, value.as_slice()))
    }

    /// All values, in their order.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Vec<u8>> {
        self.0.iter_mut().map(|(_, value)| value)
    }

    /// Removes the attributes with these numbers.
    pub fn remove(&mut self, numbers: &[u16]) {
        self.0
            .retain(|(kind, _)| !numbers.contains(&(kind & NUMBER)));
    }

    /// Adds an attribute at the end.
    pub fn push(&mut self, number: u16, value: Vec<u8>) {
        self.0.push((number, value));
    }
}

/// The number of 32 bits at this place of a structure.
pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    bytes.try_into().ok().map(u32::from_ne_bytes)
}

/// Writes zeros into these bytes of a structure, as far as it has them.
pub(crate) fn clear(bytes: &mut [u8], places: std::ops::Range<usize>) {
    let end = places.end.min(bytes.len());
    if let Some(part) = bytes.get_mut(places.start..end) {
        part.fill(0);
    }
}

/// Writes a number of 32 bits into a structure, if it is long enough.
pub(crate) fn set_word(bytes: &mut [u8], at: usize, value: u32) {
    if let Some(part) = bytes.get_mut(at..at.saturating_add(4)) {
        part.copy_from_slice(&value.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use crate::kernel::codec::nested::*;

    #[test]
    fn what_is_not_changed_is_written_as_it_was_read() {
        let mut nested = Nested::default();
        nested.push(1, vec![1, 2, 3]);
        nested.push(0x8002, vec![]);
        nested.push(3, vec![4; 8]);
        let bytes = nested.bytes();
        assert_eq!(bytes.len(), 8 + 4 + 12);
        assert_eq!(Nested::parse(&bytes), Some(nested.clone()));
        assert_eq!(nested.get(2), Some(&[][..]));
        nested.remove(&[2]);
        assert_eq!(nested.bytes().len(), 8 + 12);
    }

    #[test]
    fn strange_bytes_are_no_attributes() {
        for strange in [&[1][..], &[3, 0, 1, 0], &[9, 0, 1, 0, 5], &[4, 0, 1, 0, 7]] {
            assert_eq!(Nested::parse(strange), None, "{strange:?}");
        }
        assert_eq!(word(&[1, 0, 0], 0), None);
        assert_eq!(word(&[0; 4], usize::MAX), None);
        let mut short = [7; 3];
        set_word(&mut short, 1, 9);
        clear(&mut short, 2..9);
        assert_eq!(short, [7, 7, 0]);
    }
}
