//! Settings of one group in messages of the family and in structures of ioctl(2): both directions. Pure.

use std::collections::BTreeMap;

use super::bits::{self, Bits};
use super::fields::{Field, MESSAGES, SettingForm, SettingMessage};
use crate::kernel::codec::nested::{Nested, set_word, word};
use crate::kernel::plain::genl::NESTED;
use crate::model::IfName;
use crate::model::net::link::nic::{NicGroup, NicKey, NicValue};

/// Settings of one group.
pub(super) type Values = BTreeMap<NicKey, NicValue>;

/// What a driver reports of one group.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Reported {
    pub values: Values,
    pub maxima: Values,
    /// How many settings have a name that is no text.
    pub nameless: usize,
}

/// `ETHTOOL_A_*_HEADER`, the same in all messages, with the device (`ETHTOOL_A_HEADER_DEV_NAME`).
const HEADER: u16 = 1;
const DEVICE: u16 = 2;
const FLAGS: u16 = 3;
/// `ETHTOOL_FLAG_COMPACT_BITSETS`: sets of bits without names.
pub(super) const COMPACT: u32 = 1;
/// `ETHTOOL_FLAG_OMIT_REPLY`.
const NO_REPLY: u32 = 2;

/// The attributes of a request about a device.
pub(super) fn request(dev: &IfName, flags: u32) -> Nested {
    let mut header = Nested::default();
    header.push(DEVICE, [dev.as_bytes(), &[0]].concat());
    if flags != 0 {
        header.push(FLAGS, flags.to_ne_bytes().to_vec());
    }
    let mut request = Nested::default();
    request.push(HEADER | NESTED, header.bytes());
    request
}

/// The attributes of a request that sets something.
pub(super) fn change(dev: &IfName) -> Nested {
    request(dev, NO_REPLY)
}

impl SettingMessage {
    /// The request that reads it.
    pub fn query(&self, dev: &IfName) -> Nested {
        let is_compact = self
            .fields
            .iter()
            .any(|field| field.form == SettingForm::Mask);
        request(dev, if is_compact { COMPACT } else { 0 })
    }

    /// What an answer says.
    pub fn reported(&self, answer: &Nested) -> Reported {
        let mut reported = Reported::default();
        for field in self.fields {
            if let Some(value) = answer.get(field.number) {
                reported.take(field, value);
            }
        }
        let maxima = self.maxima.iter().filter_map(|field| {
            let number = word(answer.get(field.number)?, 0)?;
            Some((key(field.key)?, NicValue::Number(number.into())))
        });
        reported.maxima = maxima.collect();
        reported
    }

    /// Adds values to a request; `None` if one of them is not of this group or form.
    pub fn add_to(&self, request: &mut Nested, values: &[(NicKey, NicValue)]) -> Option<()> {
        for (key, value) in values {
            let field = self.field(key)?;
            let (number, bytes) = match (field.form, value) {
                (SettingForm::Flag, NicValue::Flag(flag)) => (field.number, vec![u8::from(*flag)]),
                (SettingForm::Byte, NicValue::Number(number)) => {
                    (field.number, vec![u8::try_from(*number).ok()?])
                }
                (SettingForm::Number, NicValue::Number(number)) => (
                    field.number,
                    u32::try_from(*number).ok()?.to_ne_bytes().to_vec(),
                ),
                (SettingForm::Mask, NicValue::Number(number)) => {
                    let set = bits::of_number(u32::try_from(*number).ok()?);
                    (field.number | NESTED, set)
                }
                (SettingForm::Names, NicValue::Texts(names)) => {
                    let set = bits::exactly(names.iter().map(String::as_str));
                    (field.number | NESTED, set)
                }
                (SettingForm::Each, NicValue::Flag(flag)) => {
                    (field.number | NESTED, bits::change([(key.as_str(), *flag)]))
                }
                _ => return None,
            };
            request.push(number, bytes);
        }
        Some(())
    }

    /// What a structure of ioctl(2) says. Names of bits are not in it.
    pub fn reported_by(&self, structure: &[u8]) -> Reported {
        let number = |field: &'static Field| {
            let number = word(structure, field.word.checked_mul(4)?)?;
            Some((field, number)).filter(|_| field.word != 0)
        };
        let values = self.fields.iter().filter_map(number);
        let values = values.filter_map(|(field, number)| {
            let value = match field.form {
                SettingForm::Flag => NicValue::Flag(number != 0),
                // Those that the device supports are before it: it may have none.
                SettingForm::Names if number == 0 && word(structure, 4) == Some(0) => return None,
                _ => NicValue::Number(number.into()),
            };
            Some((key(field.key)?, value))
        });
        let maxima = self.maxima.iter().filter_map(number);
        let maxima: Values = maxima
            .filter_map(|(field, number)| Some((key(field.key)?, NicValue::Number(number.into()))))
            .filter(|(_, number)| *number != NicValue::Number(0))
            .collect();
        Reported {
            // A number whose maximum is 0 cannot be set, and messages do not have it.
            values: values
                .filter(|(key, _)| self.maxima.is_empty() || maxima.contains_key(key))
                .collect(),
            maxima,
            nameless: 0,
        }
    }

    /// Writes values into a structure; `None` if one of them is not in it.
    pub fn write_into(&self, structure: &mut [u8], values: &[(NicKey, NicValue)]) -> Option<()> {
        for (key, value) in values {
            let field = self.field(key).filter(|field| field.word != 0)?;
            let number = match value {
                NicValue::Flag(flag) => u32::from(*flag),
                NicValue::Number(number) => u32::try_from(*number).ok()?,
                _ => return None,
            };
            set_word(structure, field.word * 4, number);
        }
        Some(())
    }

    fn field(&self, key: &NicKey) -> Option<&'static Field> {
        let mut fields = self.fields.iter();
        fields.find(|field| field.form == SettingForm::Each || field.key == key.as_str())
    }
}

impl Reported {
    fn take(&mut self, field: &Field, value: &[u8]) {
        let value = match (field.form, value) {
            (SettingForm::Flag, [flag, ..]) => NicValue::Flag(*flag != 0),
            // 0 is unknown.
            (SettingForm::Byte, [number, ..]) if *number != 0 => NicValue::Number((*number).into()),
            (SettingForm::Number, value) => match word(value, 0) {
                Some(number) => NicValue::Number(number.into()),
                None => return,
            },
            (SettingForm::Mask, value) => match bits::number(value) {
                Some(number) => NicValue::Number(number.into()),
                None => return,
            },
            (SettingForm::Names | SettingForm::Each, value) => return self.take_bits(field, value),
            (SettingForm::Flag | SettingForm::Byte, _) => return,
        };
        self.values.extend(key(field.key).map(|key| (key, value)));
    }

    fn take_bits(&mut self, field: &Field, value: &[u8]) {
        let Some(bits) = Bits::parse(value) else {
            return;
        };
        self.nameless += bits.nameless;
        if field.form == SettingForm::Each {
            let flags = bits.named.into_iter();
            self.values
                .extend(flags.map(|(name, is_set)| (name, NicValue::Flag(is_set))));
        } else if !bits.named.is_empty() {
            let names = bits.set().map(|name| name.as_str().to_owned()).collect();
            let value = NicValue::Texts(names);
            self.values.extend(key(field.key).map(|key| (key, value)));
        }
    }
}

/// A key of netfix's own.
pub(super) fn key(name: &str) -> Option<NicKey> {
    NicKey::try_from(name.to_owned()).ok()
}

/// All messages.
pub(super) fn all() -> impl Iterator<Item = &'static SettingMessage> {
    MESSAGES.iter()
}

/// The message of a group.
pub(super) fn of(group: NicGroup) -> Option<&'static SettingMessage> {
    all().find(|message| message.group == group)
}
