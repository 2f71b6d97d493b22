//! Data center bridging (`linux/dcbnl.h`): read, and never set, because a change resets some devices.

use netlink_sys::protocols::NETLINK_ROUTE;

use super::message::{Values, key};
use crate::kernel::Errno;
use crate::kernel::codec::nested::Nested;
use crate::kernel::error::SetError;
use crate::kernel::plain::PlainSocket;
use crate::kernel::plain::genl::{Answer, ask};
use crate::model::IfName;
use crate::model::net::limits::RSS_TABLE;
use crate::model::net::link::nic::NicValue;

/// `RTM_GETDCB`, with `struct dcbmsg` before its attributes: family, command, padding.
const RTM_GETDCB: u16 = 78;
/// `DCB_CMD_IEEE_GET` and, of the older standard, `DCB_CMD_GSTATE`.
const IEEE_GET: u8 = 21;
const GSTATE: u8 = 1;
/// `DCB_ATTR_IFNAME`, `…_STATE`, `…_IEEE`, `…_DCBX`.
const DEVICE: u16 = 1;
const STATE: u16 = 2;
const IEEE: u16 = 13;
const DCBX: u16 = 14;
/// `DCB_ATTR_IEEE_ETS`, `…_PFC`, `…_APP_TABLE`, and `DCB_ATTR_IEEE_APP` in the last.
const ETS: u16 = 1;
const PFC: u16 = 2;
const APPS: u16 = 3;
const APP: u16 = 1;
/// `DCB_CAP_DCBX_LLD_MANAGED`: the firmware negotiates everything with the switch, and does so again.
const OF_FIRMWARE: u8 = 2;
/// Priorities, and classes of traffic (`IEEE_8021QAZ_MAX_TCS`).
const CLASSES: usize = 8;
/// `struct ieee_ets`: share of each class of what is sent, how it is chosen, the class of each priority.
const SHARES: usize = 3;
const SELECTION: usize = SHARES + 2 * CLASSES;
const PRIORITIES: usize = SELECTION + CLASSES;
/// `IEEE_8021QAZ_TSA_ETS`.
const BY_SHARE: u8 = 2;
/// `pfc_en` in `struct ieee_pfc`: a bit for each priority.
const PFC_ENABLED: usize = 1;
/// `IEEE_8021QAZ_APP_SEL_*`.
const SELECTORS: [&str; 5] = ["ethtype", "stream-port", "dgram-port", "port", "dscp"];

/// What of a device is not as a driver starts.
pub(super) fn read(dev: &IfName) -> Result<Values, SetError> {
    let socket = PlainSocket::open(NETLINK_ROUTE);
    let socket = socket.map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)));
    let bodies = [IEEE_GET, GSTATE].map(|command| {
        let mut attributes = Nested::default();
        attributes.push(DEVICE, [dev.as_bytes(), &[0]].concat());
        [vec![0, command, 0, 0], attributes.bytes()].concat()
    });
    let mut answers = ask(&socket?, RTM_GETDCB, 0, &bodies)?.into_iter();
    let mut next = || answers.next().unwrap_or(Err(Errno::EOPNOTSUPP.into()));
    let (ieee, state): (Answer, Answer) = (next(), next());
    Ok(values(&ieee?, state.ok().as_ref()))
}

/// What both answers say.
pub(super) fn values(ieee: &Nested, state: Option<&Nested>) -> Values {
    let dcbx = ieee.get(DCBX).and_then(<[u8]>::first);
    if dcbx.is_some_and(|flags| flags & OF_FIRMWARE != 0) {
        return Values::new();
    }
    let all = ieee.get(IEEE).and_then(Nested::parse).unwrap_or_default();
    let mut found = all.get(ETS).map(shares).unwrap_or_default();
    let enabled = all.get(PFC).and_then(|pfc| pfc.get(PFC_ENABLED));
    let enabled = enabled.copied().unwrap_or_default();
    let priorities = (0..CLASSES).filter(|priority| enabled & (1 << priority) != 0);
    let priorities: Vec<u64> = priorities.map(|priority| priority as u64).collect();
    if !priorities.is_empty() {
        found.push(("prio-pfc", NicValue::Numbers(priorities)));
    }
    let table = all.get(APPS).and_then(Nested::parse).unwrap_or_default();
    let mut apps: Vec<String> = table.all(APP).filter_map(app).take(RSS_TABLE).collect();
    apps.sort();
    if !apps.is_empty() {
        found.push(("app", NicValue::Texts(apps)));
    }
    let is_on = state.and_then(|state| state.get(STATE)?.first().copied()) == Some(1);
    if is_on && found.is_empty() {
        found.push(("state", NicValue::Flag(true)));
    }
    let found = found.into_iter();
    found
        .filter_map(|(name, value)| Some((key(name)?, value)))
        .collect()
}

/// The shares of bandwidth, in the words of dcb(8). A mapping of priorities without shares is the own one of some drivers (mlx5).
fn shares(ets: &[u8]) -> Vec<(&'static str, NicValue)> {
    let part = |at: usize| ets.get(at..at + CLASSES);
    let (Some(shares), Some(selection), Some(classes)) =
        (part(SHARES), part(SELECTION), part(PRIORITIES))
    else {
        return Vec::new();
    };
    let is_shared =
        |class: usize| selection[class] == BY_SHARE && (1..100).contains(&shares[class]);
    if !(0..CLASSES).any(is_shared) {
        return Vec::new();
    }
    let pairs = |values: &[u8]| {
        let pairs = values.iter().enumerate();
        NicValue::Texts(pairs.map(|(at, value)| format!("{at}:{value}")).collect())
    };
    vec![("tc-bw", pairs(shares)), ("prio-tc", pairs(classes))]
}

/// `struct dcb_app`: selector, priority, protocol.
fn app(bytes: &[u8]) -> Option<String> {
    let [selector, priority, low, high] = *bytes.first_chunk()?;
    let protocol = u16::from_ne_bytes([low, high]);
    let word = usize::from(selector).checked_sub(1);
    let word = word.and_then(|at| SELECTORS.get(at));
    let word = word.map_or_else(|| selector.to_string(), |word| (*word).to_owned());
    Some(format!("{word}:{protocol}:{priority}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nest(all: &[(u16, &[u8])]) -> Nested {
        let mut nested = Nested::default();
        for (number, value) in all {
            nested.push(*number, value.to_vec());
        }
        nested
    }

    /// `struct ieee_ets` with these shares, the same selection for each class, and these classes of the priorities.
    fn ets(shares: [u8; 8], selection: u8, classes: [u8; 8]) -> Vec<u8> {
        let willing = [1, 8, 0];
        [
            &willing[..],
            &shares,
            &[0; 8],
            &[selection; 8],
            &classes,
            &[0; 24],
        ]
        .concat()
    }

    /// `struct ieee_pfc`: 8 bytes before the counters.
    fn pfc(enabled: u8) -> Vec<u8> {
        [&[8, enabled, 0, 0, 0, 0, 0, 0][..], &[0xff; 128]].concat()
    }

    fn read(parts: &[(u16, &[u8])], dcbx: u8, state: u8) -> String {
        let ieee = nest(&[
            (DEVICE, b"eth0\0"),
            (IEEE, &nest(parts).bytes()),
            (DCBX, &[dcbx]),
        ]);
        let values = values(&ieee, Some(&nest(&[(STATE, &[state])])));
        let words = values.iter().map(|(name, value)| format!("{name} {value}"));
        words.collect::<Vec<_>>().join(", ")
    }

    const HOST: u8 = 1;
    /// `mlx5e_ets_init`: each priority in a class of its own, chosen by the device.
    const MLX5: ([u8; 8], u8, [u8; 8]) = ([100; 8], 255, [1, 0, 2, 3, 4, 5, 6, 7]);

    #[test]
    fn flow_control_shares_and_applications_are_read_in_the_words_of_dcb() {
        let apps = nest(&[
            (APP, &[5, 3, 26, 0]),
            (APP, &[1, 4, 0x06, 0x89]),
            (APP, &[255, 1, 7, 0]),
        ]);
        let shares = ets(
            [60, 40, 0, 0, 0, 0, 0, 0],
            BY_SHARE,
            [0, 0, 0, 1, 1, 0, 0, 0],
        );
        assert_eq!(
            read(
                &[(ETS, &shares), (PFC, &pfc(0b1_1000)), (APPS, &apps.bytes())],
                HOST,
                1
            ),
            "app 255:7:1 dscp:26:3 ethtype:35078:4, prio-pfc 3 4, prio-tc 0:0 1:0 2:0 3:1 4:1 5:0 6:0 7:0, \
                tc-bw 0:60 1:40 2:0 3:0 4:0 5:0 6:0 7:0"
        );
        assert_eq!(read(&[], HOST, 1), "state on");
    }

    #[test]
    fn what_a_driver_starts_with_and_what_its_firmware_negotiates_is_nothing() {
        let (shares, selection, classes) = MLX5;
        for own in [
            ets(shares, selection, classes),
            ets([100, 0, 0, 0, 0, 0, 0, 0], BY_SHARE, [0; 8]),
            ets([0; 8], 0, [0; 8]),
        ] {
            assert_eq!(
                read(&[(ETS, &own), (PFC, &pfc(0)), (APPS, &[])], HOST, 0),
                ""
            );
        }
        assert_eq!(read(&[(PFC, &pfc(8))], OF_FIRMWARE | 8, 1), "");
    }

    #[test]
    fn short_answers_say_nothing() {
        let whole = ets([50; 8], BY_SHARE, [0; 8]);
        for end in 0..PRIORITIES + CLASSES {
            assert_eq!(read(&[(ETS, &whole[..end])], HOST, 0), "", "{end}");
        }
        let app = nest(&[(APP, &[1, 2, 3])]).bytes();
        assert_eq!(read(&[(PFC, &[8]), (APPS, &app)], HOST, 0), "");
        assert!(values(&Nested::default(), None).is_empty());
    }
}
