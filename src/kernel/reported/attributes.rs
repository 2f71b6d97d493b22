//! The attributes of one object, by their names in the tables of [`fidelity`](crate::model::fidelity).

use std::collections::{BTreeMap, BTreeSet};

use netlink_packet_core::{NLA_HEADER_SIZE, NlasIterator};

use crate::kernel::dump::Names;
use crate::model::IfName;
use crate::model::fidelity::{AttributeTable, TwinComparison};

/// Number and value of each attribute; those behind a damaged one are left out.
pub(super) fn each(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let attributes = NlasIterator::new(bytes).map_while(Result::ok);
    attributes.filter_map(|one| {
        let (number, end) = (one.kind(), usize::from(one.length()));
        Some((number, one.into_inner().get(NLA_HEADER_SIZE..end)?))
    })
}

/// The value of the first attribute with this number.
pub(super) fn value(bytes: &[u8], number: u16) -> Option<&[u8]> {
    let mut all = each(bytes);
    all.find(|(found, _)| *found == number)
        .map(|(_, value)| value)
}

/// An ifindex.
pub(super) fn index(value: &[u8]) -> u32 {
    value.try_into().map_or(0, u32::from_ne_bytes)
}

/// The name of an attribute whose bytes a rehearsal compares; `None` for another one.
pub(super) fn name(table: &AttributeTable, number: u16) -> Option<String> {
    match table.row(number) {
        Some(row) => {
            let is_compared = table.comparison(row) == Some(TwinComparison::Reported);
            is_compared.then(|| row.name.to_owned())
        }
        None => Some(format!("attribute {number} ({})", table.title)),
    }
}

/// What was collected of an object.
#[derive(Default)]
pub(super) struct Collected {
    pub attributes: BTreeMap<String, Vec<u8>>,
    pub devs: BTreeSet<IfName>,
}

/// How an attribute is collected that is no plain value.
pub(super) type Special = fn(&mut Collected, &Names, &str, u16, &[u8]) -> bool;

impl Collected {
    /// Adds the attributes of a table; `special` takes those that it knows.
    pub(super) fn table(
        &mut self,
        table: &AttributeTable,
        names: &Names,
        bytes: &[u8],
        special: Special,
    ) {
        for (number, value) in each(bytes) {
            if let Some(name) = name(table, number)
                && !special(self, names, &name, number, value)
            {
                self.add(name, value);
            }
        }
    }

    /// Adds the attributes of a table whose values are plain, with a `prefix` before their names.
    pub(super) fn plain(&mut self, table: &AttributeTable, prefix: &str, bytes: &[u8]) {
        for (number, value) in each(bytes) {
            if let Some(name) = name(table, number) {
                self.add(format!("{prefix}{name}"), value);
            }
        }
    }

    /// Adds a value.
    pub(super) fn add(&mut self, name: impl Into<String>, value: &[u8]) {
        self.attributes.insert(name.into(), value.to_vec());
    }

    /// Adds a part of a header, but for 0, which is what is not set.
    pub(super) fn add_field(&mut self, name: &str, value: u32) {
        if value != 0 {
            self.add(name, &value.to_ne_bytes());
        }
    }

    /// Adds a reference to an interface by its name: its index may be another one.
    pub(super) fn add_dev(&mut self, name: &str, names: &Names, index: u32) {
        match names.get(&index) {
            Some(dev) => self.add(name, dev.as_bytes()),
            None => self.add_field(name, index),
        }
    }

    /// Adds the interface that the object is on.
    pub(super) fn add_own(&mut self, name: &str, names: &Names, index: u32) {
        self.devs.extend(names.get(&index).cloned());
        self.add_dev(name, names, index);
    }
}
