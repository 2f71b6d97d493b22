//! The messages of which each sets one group, and the structures that older kernels have instead: their numbers in
//! `linux/ethtool_netlink.h` and `linux/ethtool.h`. The row of each group in [`NIC`](crate::model::fidelity::NIC) says why a rehearsal
//! compares none of its fields.

use crate::model::net::link::nic::NicGroup;

/// How a group is read and set.
pub(super) struct SettingMessage {
    pub group: NicGroup,
    /// `ETHTOOL_MSG_*_GET`; that of setting is the next.
    pub get: u8,
    /// The structure of ioctl(2), where one of plain numbers does it.
    pub structure: Option<Structure>,
    pub fields: &'static [Field],
    /// The largest values of fields, by the same keys.
    pub maxima: &'static [Field],
}

/// `ETHTOOL_G*` and the length in words; the command that sets it is the next.
#[derive(Clone, Copy)]
pub(super) struct Structure {
    pub get: u32,
    pub words: usize,
}

/// One setting.
pub(super) struct Field {
    pub key: &'static str,
    /// Its attribute.
    pub number: u16,
    /// Its word in the structure; 0 if it has none.
    pub word: usize,
    pub form: SettingForm,
}

/// The form of an attribute.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SettingForm {
    /// `u8`, on or off.
    Flag,
    /// `u8`.
    Byte,
    /// `u32`.
    Number,
    /// A set of bits without names.
    Mask,
    /// The names of the bits that are set.
    Names,
    /// A key for each bit.
    Each,
}

const fn field(key: &'static str, number: u16, word: usize, form: SettingForm) -> Field {
    Field {
        key,
        number,
        word,
        form,
    }
}

const fn number(key: &'static str, number: u16, word: usize) -> Field {
    field(key, number, word, SettingForm::Number)
}

const fn flag(key: &'static str, number: u16, word: usize) -> Field {
    field(key, number, word, SettingForm::Flag)
}

const fn structure(get: u32, words: usize) -> Structure {
    Structure { get, words }
}

/// All but link modes, in which one field decides about others, and features.
pub(super) static MESSAGES: [SettingMessage; 9] = [
    SettingMessage {
        group: NicGroup::Private,
        get: 13,
        structure: None,
        fields: &[field("", 2, 0, SettingForm::Each)],
        maxima: &[],
    },
    SettingMessage {
        group: NicGroup::Channels,
        get: 17,
        structure: Some(structure(0x3c, 9)),
        fields: &[
            number("rx", 6, 5),
            number("tx", 7, 6),
            number("other", 8, 7),
            number("combined", 9, 8),
        ],
        maxima: &[
            number("rx", 2, 1),
            number("tx", 3, 2),
            number("other", 4, 3),
            number("combined", 5, 4),
        ],
    },
    SettingMessage {
        group: NicGroup::Rings,
        get: 15,
        structure: Some(structure(0x10, 9)),
        fields: &[
            number("rx", 6, 5),
            number("rx-mini", 7, 6),
            number("rx-jumbo", 8, 7),
            number("tx", 9, 8),
            number("rx-buf-len", 10, 0),
            field("tcp-data-split", 11, 0, SettingForm::Byte),
            number("cqe-size", 12, 0),
            flag("tx-push", 13, 0),
            flag("rx-push", 14, 0),
            number("tx-push-buf-len", 15, 0),
            number("hds-thresh", 17, 0),
        ],
        maxima: &[
            number("rx", 2, 1),
            number("rx-mini", 3, 2),
            number("rx-jumbo", 4, 3),
            number("tx", 5, 4),
            number("tx-push-buf-len", 16, 0),
            number("hds-thresh", 18, 0),
        ],
    },
    SettingMessage {
        group: NicGroup::Coalesce,
        get: 19,
        structure: Some(structure(0x0e, 23)),
        fields: &COALESCE,
        maxima: &[],
    },
    SettingMessage {
        group: NicGroup::Pause,
        get: 21,
        structure: Some(structure(0x12, 4)),
        fields: &[flag("autoneg", 2, 1), flag("rx", 3, 2), flag("tx", 4, 3)],
        maxima: &[],
    },
    SettingMessage {
        group: NicGroup::Fec,
        get: 29,
        structure: Some(structure(0x50, 4)),
        fields: &[field("modes", 2, 2, SettingForm::Names), flag("auto", 3, 0)],
        maxima: &[],
    },
    SettingMessage {
        group: NicGroup::Eee,
        get: 23,
        structure: Some(structure(0x44, 10)),
        fields: &[
            field("advertise", 2, 2, SettingForm::Names),
            flag("enabled", 5, 5),
            flag("tx-lpi", 6, 6),
            number("tx-timer", 7, 7),
        ],
        maxima: &[],
    },
    SettingMessage {
        group: NicGroup::Wol,
        get: 9,
        structure: Some(structure(0x05, 5)),
        fields: &[field("modes", 2, 2, SettingForm::Names)],
        maxima: &[],
    },
    SettingMessage {
        group: NicGroup::Msglvl,
        get: 7,
        structure: Some(structure(0x07, 2)),
        fields: &[field("mask", 2, 1, SettingForm::Mask)],
        maxima: &[],
    },
];

const COALESCE: [Field; 27] = [
    number("rx-usecs", 2, 1),
    number("rx-frames", 3, 2),
    number("rx-usecs-irq", 4, 3),
    number("rx-frames-irq", 5, 4),
    number("tx-usecs", 6, 5),
    number("tx-frames", 7, 6),
    number("tx-usecs-irq", 8, 7),
    number("tx-frames-irq", 9, 8),
    number("stats-block-usecs", 10, 9),
    flag("adaptive-rx", 11, 10),
    flag("adaptive-tx", 12, 11),
    number("pkt-rate-low", 13, 12),
    number("rx-usecs-low", 14, 13),
    number("rx-frames-low", 15, 14),
    number("tx-usecs-low", 16, 15),
    number("tx-frames-low", 17, 16),
    number("pkt-rate-high", 18, 17),
    number("rx-usecs-high", 19, 18),
    number("rx-frames-high", 20, 19),
    number("tx-usecs-high", 21, 20),
    number("tx-frames-high", 22, 21),
    number("sample-interval", 23, 22),
    flag("cqe-mode-tx", 24, 0),
    flag("cqe-mode-rx", 25, 0),
    number("tx-aggr-max-bytes", 26, 0),
    number("tx-aggr-max-frames", 27, 0),
    number("tx-aggr-time-usecs", 28, 0),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::fidelity::NIC;

    /// What the table of settings calls a group.
    fn row_of(group: NicGroup) -> &'static str {
        match group {
            NicGroup::Private => "ethtool --set-priv-flags",
            NicGroup::Channels => "ethtool -L",
            NicGroup::Rings => "ethtool -G",
            NicGroup::Coalesce => "ethtool -C",
            NicGroup::Pause => "ethtool -A",
            NicGroup::Fec => "ethtool --set-fec",
            NicGroup::Eee => "ethtool --set-eee",
            NicGroup::Wol => "ethtool -s wol",
            NicGroup::Msglvl => "ethtool -s msglvl",
            other => panic!("{other:?} has no row"),
        }
    }

    #[test]
    fn a_row_says_of_the_fields_of_each_message_whether_a_rehearsal_compares_them() {
        for message in &MESSAGES {
            let name = row_of(message.group);
            let row = NIC.rows.iter().find(|row| row.name == name);
            let comparison = row.and_then(|row| NIC.comparison(row));
            assert!(comparison.is_some(), "{name}");
        }
    }
}
