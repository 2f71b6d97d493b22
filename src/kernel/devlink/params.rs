//! Parameters of a device (`devlink dev param`): between messages and the model.

use crate::kernel::codec::nested::{Nested, word};
use crate::model::net::link::nic::{NicGroup, NicKey, NicSettings, NicValue};

/// `DEVLINK_CMD_PARAM_GET` and `DEVLINK_CMD_PARAM_SET`.
pub(super) const GET: u8 = 38;
pub(super) const SET: u8 = 39;

/// `DEVLINK_ATTR_PARAM` with name, type and the list of its values, each with its configuration mode.
const PARAM: u16 = 80;
const NAME: u16 = 81;
const TYPE: u16 = 83;
const VALUES: u16 = 84;
const VALUE: u16 = 85;
const DATA: u16 = 86;
const MODE: u16 = 87;

/// `DEVLINK_PARAM_CMODE_*`: a value that is in effect at once, and one that the driver takes when it starts. The third kind is in the
/// device's memory and survives.
const RUNTIME: u8 = 0;
const DRIVERINIT: u8 = 1;

/// The type of a parameter: `NLA_*` of the kernel (`devlink_param_type_to_nla_type`).
#[derive(Clone, Copy, PartialEq, Eq)]
enum ParamType {
    U8 = 1,
    U16 = 2,
    U32 = 3,
    U64 = 4,
    Text = 5,
    Flag = 6,
}

impl ParamType {
    const ALL: [Self; 6] = [
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::Text,
        Self::Flag,
    ];

    fn of(param: &Nested) -> Option<Self> {
        let number = *param.get(TYPE)?.first()?;
        Self::ALL.into_iter().find(|one| *one as u8 == number)
    }

    /// A flag that is off has no data.
    fn value(self, data: Option<&[u8]>) -> Option<NicValue> {
        let data = match (self, data) {
            (Self::Flag, data) => return Some(NicValue::Flag(data.is_some())),
            (_, data) => data?,
        };
        let number = match self {
            Self::U8 => u64::from(*data.first()?),
            Self::U16 => u16::from_ne_bytes(data.get(..2)?.try_into().ok()?).into(),
            Self::U32 => word(data, 0)?.into(),
            Self::U64 => u64::from_ne_bytes(data.get(..8)?.try_into().ok()?),
            Self::Text | Self::Flag => {
                let text = data.split(|byte| *byte == 0).next().unwrap_or_default();
                let text = str::from_utf8(text).ok()?;
                let is_plain = text.chars().all(|c| !c.is_control());
                return is_plain.then(|| NicValue::Text(text.to_owned()));
            }
        };
        Some(NicValue::Number(number))
    }

    /// The attribute with a value, which a flag that is off lacks; `None` if the value is not of this type.
    fn attribute(self, value: &NicValue) -> Option<Vec<(u16, Vec<u8>)>> {
        let data = match (self, value) {
            (Self::Flag, NicValue::Flag(false)) => return Some(Vec::new()),
            (Self::Flag, NicValue::Flag(true)) => Vec::new(),
            (Self::U8, NicValue::Number(number)) => vec![u8::try_from(*number).ok()?],
            (Self::U16, NicValue::Number(number)) => {
                u16::try_from(*number).ok()?.to_ne_bytes().to_vec()
            }
            (Self::U32, NicValue::Number(number)) => {
                u32::try_from(*number).ok()?.to_ne_bytes().to_vec()
            }
            (Self::U64, NicValue::Number(number)) => number.to_ne_bytes().to_vec(),
            (Self::Text, NicValue::Text(text)) => [text.as_bytes(), &[0]].concat(),
            _ => return None,
        };
        Some(vec![(DATA, data)])
    }
}

/// Adds the values of a parameter; the words for one that cannot be read.
pub(super) fn add_to(settings: &mut NicSettings, object: &Nested) -> Option<String> {
    let param = object.get(PARAM).and_then(Nested::parse)?;
    let name = text(param.get(NAME)?);
    let key = NicKey::try_from(name.clone()).ok();
    let (Some(key), Some(form)) = (key, ParamType::of(&param)) else {
        return Some(name.escape_default().to_string());
    };
    let values = param.get(VALUES).and_then(Nested::parse)?;
    let mut unreadable = None;
    for value in values.all(VALUE).filter_map(Nested::parse) {
        let group = match value.get(MODE) {
            Some([RUNTIME, ..]) => NicGroup::Devlink,
            Some([DRIVERINIT, ..]) => NicGroup::DevlinkInit,
            _ => continue,
        };
        match form.value(value.get(DATA)) {
            Some(value) => drop(
                settings
                    .entry(group)
                    .or_default()
                    .insert(key.clone(), value),
            ),
            None => unreadable = Some(name.clone()),
        }
    }
    unreadable
}

/// The attributes that set a parameter, which the kernel has described with its type; `None` if it is another one, or the value of
/// another type.
pub(super) fn change(
    object: &Nested,
    key: &NicKey,
    value: &NicValue,
) -> Option<Vec<(u16, Vec<u8>)>> {
    let param = object.get(PARAM).and_then(Nested::parse)?;
    let name = param.get(NAME).filter(|name| text(name) == key.as_str())?;
    let form = ParamType::of(&param)?;
    let data = form.attribute(value)?;
    let mut change = vec![
        (NAME, name.to_vec()),
        (TYPE, vec![form as u8]),
        (MODE, vec![RUNTIME]),
    ];
    change.extend(data);
    Some(change)
}

/// A text of the kernel without the zero at its end.
fn text(bytes: &[u8]) -> String {
    let bytes = bytes.strip_suffix(&[0]).unwrap_or(bytes);
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::plain::genl::NESTED;

    fn nest(all: &[(u16, &[u8])]) -> Vec<u8> {
        let mut nested = Nested::default();
        for (number, value) in all {
            nested.push(*number, value.to_vec());
        }
        nested.bytes()
    }

    /// A parameter as the kernel reports it: its values by mode.
    fn param(name: &[u8], form: u8, values: &[(u8, Option<&[u8]>)]) -> Nested {
        let values: Vec<_> = values
            .iter()
            .map(|(mode, data)| {
                let mut value = vec![];
                value.extend(data.map(|data| (DATA, data)));
                let mode = [*mode];
                value.push((MODE, &mode));
                nest(&value)
            })
            .collect();
        let values: Vec<_> = values
            .iter()
            .map(|value| (VALUE | NESTED, value.as_slice()))
            .collect();
        let param = nest(&[
            (NAME, name),
            (TYPE, &[form]),
            (VALUES | NESTED, &nest(&values)),
        ]);
        let object = nest(&[
            (1, b"pci\0"),
            (2, b"0000:01:00.0\0"),
            (PARAM | NESTED, &param),
        ]);
        Nested::parse(&object).unwrap()
    }

    fn read(object: &Nested) -> Vec<String> {
        let mut settings = NicSettings::new();
        let unreadable = add_to(&mut settings, object).map(|what| format!("? {what}"));
        let groups = settings.iter();
        let words = groups.flat_map(|(group, values)| {
            let values = values.iter();
            values.map(|(key, value)| format!("{} {key} {value}", group.as_str()))
        });
        words.chain(unreadable).collect()
    }

    #[test]
    fn a_value_of_each_type_is_read_and_written_by_its_mode() {
        let cases: [(u8, &[u8], NicValue); 5] = [
            (1, &[7], NicValue::Number(7)),
            (2, &700_u16.to_ne_bytes(), NicValue::Number(700)),
            (3, &70_000_u32.to_ne_bytes(), NicValue::Number(70_000)),
            (4, &(1_u64 << 40).to_ne_bytes(), NicValue::Number(1 << 40)),
            (5, b"smfs\0", NicValue::Text("smfs".to_owned())),
        ];
        for (form, data, value) in cases {
            let object = param(b"mode\0", form, &[(RUNTIME, Some(data))]);
            assert_eq!(read(&object), [format!("devlink mode {value}")]);
            let key = NicKey::try_from("mode".to_owned()).unwrap();
            let change = change(&object, &key, &value).unwrap();
            assert!(change.contains(&(DATA, data.to_vec())), "{change:?}");
            assert!(change.contains(&(TYPE, vec![form])), "{change:?}");
            assert!(change.contains(&(MODE, vec![RUNTIME])), "{change:?}");
        }
    }

    #[test]
    fn a_flag_is_its_presence() {
        let key = NicKey::try_from("roce".to_owned()).unwrap();
        for (data, is_on) in [(Some(&[][..]), true), (None, false)] {
            let object = param(b"roce\0", 6, &[(RUNTIME, data)]);
            let word = if is_on { "on" } else { "off" };
            assert_eq!(read(&object), [format!("devlink roce {word}")]);
            let change = change(&object, &key, &NicValue::Flag(is_on)).unwrap();
            assert_eq!(change.iter().any(|(number, _)| *number == DATA), is_on);
        }
    }

    #[test]
    fn what_is_in_the_memory_of_the_device_is_not_read_and_what_the_driver_takes_at_its_start_is_apart()
     {
        let [now, init, stored] = [1_u8, 2, 3].map(|number| [number]);
        let object = param(
            b"vectors\0",
            1,
            &[
                (2, Some(&stored)),
                (DRIVERINIT, Some(&init)),
                (RUNTIME, Some(&now)),
            ],
        );
        assert_eq!(
            read(&object),
            ["devlink vectors 1", "devlink_init vectors 2"]
        );
    }

    #[test]
    fn what_cannot_be_read_is_named_and_a_value_of_another_type_is_not_written() {
        assert_eq!(read(&param(b"a\0", 9, &[(RUNTIME, None)])), ["? a"]);
        assert_eq!(read(&param(b"a\0", 3, &[(RUNTIME, Some(&[1]))])), ["? a"]);
        assert_eq!(
            read(&param(b"a\0", 5, &[(RUNTIME, Some(b"\xff\0"))])),
            ["? a"]
        );
        assert_eq!(read(&param(b"a\nb\0", 6, &[(RUNTIME, None)])), ["? a\\nb"]);
        let key = NicKey::try_from("a".to_owned()).unwrap();
        let byte = param(b"a\0", 1, &[]);
        for value in [NicValue::Number(256), NicValue::Flag(true)] {
            assert_eq!(change(&byte, &key, &value), None);
        }
        assert_eq!(
            change(&param(b"b\0", 6, &[]), &key, &NicValue::Flag(true)),
            None
        );
    }
}
