//! The embedded switch of a device (`devlink dev eswitch`).

use crate::kernel::codec::nested::Nested;
use crate::model::Link;
use crate::model::text::join;

/// `DEVLINK_CMD_ESWITCH_GET`.
pub(super) const GET: u8 = 29;

/// `DEVLINK_ATTR_ESWITCH_MODE`, `…_INLINE_MODE`, `…_ENCAP_MODE`.
const MODE: u16 = 25;
const INLINE: u16 = 26;
const ENCAPSULATION: u16 = 62;

/// `DEVLINK_ESWITCH_MODE_*` after that of a driver's start, in which inline and encapsulation mode have no effect.
const LEGACY: u16 = 0;
const MODES: [&str; 3] = ["legacy", "switchdev", "switchdev_inactive"];
const INLINE_MODES: [&str; 4] = ["none", "link", "network", "transport"];
const ENCAPSULATION_MODES: [&str; 2] = ["none", "basic"];

/// The mode of a switch with those of the links that belong to it; `None` for one in the mode of a driver's start.
pub(super) fn words(answer: &Nested, address: &str, links: &[Link]) -> Option<String> {
    let mode = answer.get(MODE)?.get(..2)?.try_into().ok()?;
    let mode = u16::from_ne_bytes(mode);
    if mode == LEGACY {
        return None;
    }
    let name = |names: &[&str], number: u16| {
        let name = names.get(usize::from(number));
        name.map_or_else(|| number.to_string(), |name| (*name).to_owned())
    };
    let read = |number, names: &[&str]| {
        let value = answer.get(number)?.first()?;
        Some(name(names, (*value).into()))
    };
    let others = [
        read(INLINE, &INLINE_MODES).map(|mode| format!(" inline-mode {mode}")),
        read(ENCAPSULATION, &ENCAPSULATION_MODES).map(|mode| format!(" encap-mode {mode}")),
    ];
    let own = || {
        links.iter().filter_map(|link| {
            let own = link.hardware.as_ref()?;
            (own.bus.as_deref() == Some(address)).then_some((link, own.is_representor()))
        })
    };
    let names = |wanted: bool| {
        let links = own().filter(|(_, is_representor)| *is_representor == wanted);
        let mut names: Vec<_> = links.map(|(link, _)| &link.name).collect();
        names.sort();
        join(names, ", ")
    };
    let device = match names(false) {
        none if none.is_empty() => address.to_owned(),
        names => format!("{names} ({address})"),
    };
    let representors = match names(true) {
        none if none.is_empty() => String::new(),
        names => format!(" with representors {names}"),
    };
    let others: String = others.into_iter().flatten().collect();
    let mode = name(&MODES, mode);
    Some(format!(
        "devlink eswitch mode {mode}{others} of {device}{representors}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Hardware, LinkKind};

    fn answer(mode: u16, inline: Option<u8>, encapsulation: Option<u8>) -> Nested {
        let mut answer = Nested::default();
        answer.push(MODE, mode.to_ne_bytes().to_vec());
        for (number, value) in [(INLINE, inline), (ENCAPSULATION, encapsulation)] {
            if let Some(value) = value {
                answer.push(number, vec![value]);
            }
        }
        answer
    }

    fn links() -> Vec<Link> {
        let link = |name: &str, bus: &str, port: &str| Link {
            hardware: Some(Hardware {
                bus: Some(bus.to_owned()),
                port: Some(port.to_owned()),
                ..Hardware::default()
            }),
            ..Link::plain(name.parse().unwrap(), LinkKind::Physical)
        };
        vec![
            link("eth0", "0000:01:00.0", "p0"),
            link("rep1", "0000:01:00.0", "pf0vf1"),
            link("rep0", "0000:01:00.0", "pf0vf0"),
            link("eth1", "0000:02:00.0", "p0"),
        ]
    }

    #[test]
    fn a_switch_with_representors_is_named_with_its_modes() {
        let named = |answer: &Nested| words(answer, "0000:01:00.0", &links());
        assert_eq!(
            named(&answer(1, Some(1), Some(1))).as_deref(),
            Some(
                "devlink eswitch mode switchdev inline-mode link encap-mode basic of eth0 (0000:01:00.0) with representors \
                    rep0, rep1"
            )
        );
        assert_eq!(
            words(&answer(9, None, None), "0000:02:00.0", &links()).as_deref(),
            Some("devlink eswitch mode 9 of eth1 (0000:02:00.0)")
        );
    }

    #[test]
    fn the_mode_of_a_drivers_start_is_nothing() {
        let legacy = answer(0, Some(1), Some(1));
        assert_eq!(words(&legacy, "0000:01:00.0", &links()), None);
        assert_eq!(words(&Nested::default(), "0000:01:00.0", &links()), None);
        let mut short = Nested::default();
        short.push(MODE, vec![1]);
        assert_eq!(words(&short, "0000:01:00.0", &links()), None);
    }
}
