//! Structs whose fields are attributes of the kernel: a field's row has the form of its value in messages, its number, its name and
//! the tests that show it. The reader, the writer and the table come from the rows.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use crate::model::net::raw::RawAttribute;
use crate::model::{Bytes, Mac};

/// How an attribute holds a value.
pub(crate) struct ValueForm<T> {
    /// `None` for bytes that are no such value.
    pub read: fn(&[u8]) -> Option<T>,
    /// `None` for a value that is not sent.
    pub write: fn(&T) -> Option<Vec<u8>>,
}

impl<T> ValueForm<T> {
    /// Reads a value into its field; whether the bytes are one.
    pub fn fill(&self, field: &mut impl From<T>, value: &[u8]) -> bool {
        let value = (self.read)(value);
        value.map(|value| *field = value.into()).is_some()
    }

    /// The attribute with this number, if its field has a value.
    pub fn attribute<'a>(
        &self,
        number: u16,
        field: impl Into<Option<&'a T>>,
    ) -> Option<RawAttribute>
    where
        T: 'a,
    {
        let value = field.into().and_then(self.write)?;
        Some(RawAttribute { number, value })
    }
}

/// Numbers, with the functions for the order of their bytes.
macro_rules! numbers {
    ($($form:ident: $type:ty, $read:ident, $write:ident;)+) => {
        $(pub(crate) const $form: ValueForm<$type> = ValueForm {
            read: |value| value.try_into().ok().map(<$type>::$read),
            write: |value| Some(value.$write().to_vec()),
        };)+
    };
}

numbers! {
    U8: u8, from_ne_bytes, to_ne_bytes;
    U16: u16, from_ne_bytes, to_ne_bytes;
    U32: u32, from_ne_bytes, to_ne_bytes;
    BE64: u64, from_be_bytes, to_be_bytes;
}

/// A number that is not sent if it is 0.
pub(crate) const U32_BUT_0: ValueForm<u32> = ValueForm {
    read: U32.read,
    write: |value| (*value != 0).then(|| value.to_ne_bytes().to_vec()),
};

/// `u8`, on or off; sent if it is on.
pub(crate) const ON: ValueForm<bool> = ValueForm {
    read: |value| (U8.read)(value).map(|value| value != 0),
    write: |value| value.then(|| vec![1]),
};

/// A text, which may end with NUL.
pub(crate) const TEXT: ValueForm<Bytes> = ValueForm {
    read: |value| Some(value.strip_suffix(&[0]).unwrap_or(value).to_vec().into()),
    write: |value| Some(value.as_slice().to_vec()),
};

/// An address of either family.
pub(crate) const IP: ValueForm<IpAddr> = ValueForm {
    read: |value| match value.len() {
        4 => Some(Ipv4Addr::from(<[u8; 4]>::try_from(value).ok()?).into()),
        _ => Some(Ipv6Addr::from(<[u8; 16]>::try_from(value).ok()?).into()),
    },
    write: |address| match address {
        IpAddr::V4(ip) => Some(ip.octets().to_vec()),
        IpAddr::V6(ip) => Some(ip.octets().to_vec()),
    },
};

/// An IPv4 address.
pub(crate) const IPV4: ValueForm<Ipv4Addr> = ValueForm {
    read: |value| <[u8; 4]>::try_from(value).ok().map(Ipv4Addr::from),
    write: |ip| Some(ip.octets().to_vec()),
};

/// The hardware address of Ethernet.
pub(crate) const MAC: ValueForm<Mac> = ValueForm {
    read: Mac::from_slice,
    write: |mac| Some(mac.0.to_vec()),
};

/// An address whose prefix length is in the header of the message.
pub(crate) const PREFIX: ValueForm<(IpAddr, u8)> = ValueForm {
    read: |value| (IP.read)(value).map(|address| (address, 0)),
    write: |(address, _)| (IP.write)(address),
};

/// The same as a prefix.
pub(crate) const NET: ValueForm<IpNet> = ValueForm {
    read: |value| (IP.read)(value).map(IpNet::from),
    write: |net| (IP.write)(&net.addr()),
};

/// Two numbers, one after the other.
macro_rules! pairs {
    ($($form:ident: $of:ident, $type:ty;)+) => {
        $(pub(crate) const $form: ValueForm<($type, $type)> = ValueForm {
            read: |value| {
                let (first, second) = value.split_at_checked(size_of::<$type>())?;
                ($of.read)(first).zip(($of.read)(second))
            },
            write: |(first, second)| Some([($of.write)(first)?, ($of.write)(second)?].concat()),
        };)+
    };
}

pairs! {
    PAIR_OF_U16: U16, u16;
    PAIR_OF_U32: U32, u32;
}

/// `u32` with the source in its upper half and the destination in the lower.
pub(crate) const REALMS: ValueForm<(u16, u16)> = ValueForm {
    read: |value| {
        let both = (U32.read)(value)?;
        let half = |number| u16::try_from(number).ok();
        half(both >> 16).zip(half(both & 0xffff))
    },
    write: |(source, destination)| {
        (U32.write)(&((u32::from(*source) << 16) | u32::from(*destination)))
    },
};

/// A struct of which some fields are attributes, and the table of all attributes of its kind: those of the fields, then `others`.
/// Behind the table's source is how a rehearsal compares them.
/// A field with `?` may have no value, and is then in no file.
macro_rules! attributes {
    (
        $(#[$about:meta])*
        pub struct $name:ident {
            $(
                $(#[$meta:meta])*
                pub $field:ident $(?: $optional:ty)? $(: $type:ty)? $(= $form:expr, $row:expr)?;
            )*
        }
        $(#[$about_table:meta])*
        pub const $table:ident = $title:literal, $source:literal, $twin:expr;
        others: $($other:expr),* $(,)?
    ) => {
        $(#[$about])*
        pub struct $name {
            $(
                $(#[$meta])*
                $(#[serde(default, skip_serializing_if = "Option::is_none")] pub $field: Option<$optional>,)?
                $(pub $field: $type,)?
            )*
        }

        $(#[$about_table])*
        pub const $table: $crate::model::fidelity::AttributeTable = $crate::model::fidelity::AttributeTable {
            title: $title,
            source: $source,
            twin: $twin,
            rows: &[$($($row,)?)* $($other,)*],
        };

        impl $name {
            /// Reads an attribute into its field: `None` if no field has it, and whether its bytes are such a value.
            pub(crate) fn read(&mut self, number: u16, value: &[u8]) -> Option<bool> {
                $($(
                    const { assert!(matches!($row.fate, $crate::model::fidelity::Treatment::Restored)) };
                    if number == const { $row.number } {
                        return Some($form.fill(&mut self.$field, value));
                    }
                )?)*
                None
            }

            /// The attributes of its fields.
            pub(crate) fn attributes(&self) -> impl Iterator<Item = $crate::model::net::raw::RawAttribute> {
                [$($($form.attribute(const { $row.number }, &self.$field),)?)*].into_iter().flatten()
            }
        }
    };
}

pub(crate) use attributes;
