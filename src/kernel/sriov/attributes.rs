//! `IFLA_VFINFO_LIST`: what a driver reports about virtual functions, and the requests that set it (`linux/if_link.h`).

use netlink_packet_core::DefaultNla;
use netlink_packet_route::link::LinkAttribute;

use crate::kernel::codec::nested::{Nested, word};
use crate::kernel::codec::text::IFLA_VFINFO_LIST;
use crate::kernel::{Request, link};
use crate::model::Mac;
use crate::model::net::link::VlanProtocol;
use crate::model::net::link::function::FunctionSetting;
use crate::model::net::link::nic::VirtualFunction;

const IFLA_VF_INFO: u16 = 1;
const IFLA_VF_MAC: u16 = 1;
const IFLA_VF_VLAN: u16 = 2;
const IFLA_VF_TX_RATE: u16 = 3;
const IFLA_VF_SPOOFCHK: u16 = 4;
const IFLA_VF_LINK_STATE: u16 = 5;
const IFLA_VF_RATE: u16 = 6;
const IFLA_VF_RSS_QUERY_EN: u16 = 7;
const IFLA_VF_TRUST: u16 = 9;
const IFLA_VF_IB_NODE_GUID: u16 = 10;
const IFLA_VF_IB_PORT_GUID: u16 = 11;
const IFLA_VF_VLAN_LIST: u16 = 12;
const IFLA_VF_VLAN_INFO: u16 = 1;
/// `MAX_ADDR_LEN` (`linux/netdevice.h`).
const LONGEST_ADDRESS: usize = 32;
const ETH_P_8021Q: u16 = 0x8100;
const ETH_P_8021AD: u16 = 0x88a8;

/// The functions that the value of the attribute describes.
pub(super) fn read(list: &[u8]) -> Option<Vec<VirtualFunction>> {
    let list = Nested::parse(list)?;
    let infos = list.iter().filter(|(number, _)| *number == IFLA_VF_INFO);
    infos
        .map(|(_, info)| Nested::parse(info).and_then(|info| function(&info)))
        .collect()
}

/// Each structure begins with the number of the function.
fn function(info: &Nested) -> Option<VirtualFunction> {
    let index = word(info.iter().next()?.1, 0)?;
    let number = |kind: u16, at: usize| word(info.get(kind)?, at);
    // A driver without the setting leaves all bits set.
    let flag = |kind: u16| match number(kind, 4)? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    };
    let guid = |kind: u16| {
        let bytes = info.get(kind)?.get(8..16)?;
        bytes.try_into().ok().map(u64::from_ne_bytes)
    };
    let guids = guid(IFLA_VF_IB_NODE_GUID).zip(guid(IFLA_VF_IB_PORT_GUID));
    let mac = info.get(IFLA_VF_MAC).and_then(|value| value.get(4..10));
    Some(VirtualFunction {
        index,
        mac: mac.and_then(Mac::from_slice),
        vlan: number(IFLA_VF_VLAN, 4).and_then(|id| id.try_into().ok()),
        qos: number(IFLA_VF_VLAN, 8).and_then(|qos| qos.try_into().ok()),
        protocol: info.get(IFLA_VF_VLAN_LIST).and_then(protocol),
        spoofchk: flag(IFLA_VF_SPOOFCHK),
        trust: flag(IFLA_VF_TRUST),
        query_rss: flag(IFLA_VF_RSS_QUERY_EN),
        state: number(IFLA_VF_LINK_STATE, 4),
        min_rate: number(IFLA_VF_RATE, 4),
        max_rate: number(IFLA_VF_RATE, 8).or_else(|| number(IFLA_VF_TX_RATE, 4)),
        guids: guids.filter(|guids| *guids != (0, 0)),
        ..VirtualFunction::default()
    })
}

/// The protocol of the first tag; drivers have one.
fn protocol(list: &[u8]) -> Option<VlanProtocol> {
    let list = Nested::parse(list)?;
    let [high, low] = *list.get(IFLA_VF_VLAN_INFO)?.get(12..14)? else {
        return None;
    };
    match u16::from_be_bytes([high, low]) {
        ETH_P_8021Q => Some(VlanProtocol::Dot1Q),
        ETH_P_8021AD => Some(VlanProtocol::Dot1Ad),
        _ => None,
    }
}

/// Adds what the driver reports to the functions that the bus has, or the functions where the bus has no devices for them.
pub(super) fn merge(functions: &mut [VirtualFunction], reported: Vec<VirtualFunction>) {
    for one in reported {
        if let Some(function) = functions.iter_mut().find(|own| own.index == one.index) {
            let own = std::mem::take(function);
            *function = VirtualFunction {
                bus: own.bus,
                driver: own.driver,
                driver_override: own.driver_override,
                netdev: own.netdev,
                ..one
            };
        }
    }
}

/// The request that sets one setting of a function of the device with that ifindex.
#[must_use]
pub fn set(device: u32, index: u32, setting: FunctionSetting) -> Request {
    let words = |kind: u16, words: &[u32]| -> (u16, Vec<u8>) {
        let words = [index].into_iter().chain(words.iter().copied());
        (kind, words.flat_map(u32::to_ne_bytes).collect())
    };
    let guid = |kind: u16, guid: u64| {
        let (number, padding) = (index.to_ne_bytes(), [0; 4]);
        (kind, [&number[..], &padding, &guid.to_ne_bytes()].concat())
    };
    let (kind, value): (u16, Vec<u8>) = match setting {
        FunctionSetting::Mac(mac) => {
            let mut value = [&index.to_ne_bytes()[..], &mac.0].concat();
            value.resize(4 + LONGEST_ADDRESS, 0);
            (IFLA_VF_MAC, value)
        }
        FunctionSetting::Vlan(id, qos, Some(VlanProtocol::Dot1Ad)) => {
            let (_, mut value) = words(IFLA_VF_VLAN, &[id.into(), qos.into()]);
            value.extend(ETH_P_8021AD.to_be_bytes());
            value.extend([0; 2]);
            let mut list = Nested::default();
            list.push(IFLA_VF_VLAN_INFO, value);
            (IFLA_VF_VLAN_LIST, list.bytes())
        }
        FunctionSetting::Vlan(id, qos, _) => words(IFLA_VF_VLAN, &[id.into(), qos.into()]),
        FunctionSetting::Spoofchk(is_on) => words(IFLA_VF_SPOOFCHK, &[is_on.into()]),
        FunctionSetting::Trust(is_on) => words(IFLA_VF_TRUST, &[is_on.into()]),
        FunctionSetting::QueryRss(is_on) => words(IFLA_VF_RSS_QUERY_EN, &[is_on.into()]),
        FunctionSetting::State(state) => words(IFLA_VF_LINK_STATE, &[state]),
        FunctionSetting::NodeGuid(node) => guid(IFLA_VF_IB_NODE_GUID, node),
        FunctionSetting::PortGuid(port) => guid(IFLA_VF_IB_PORT_GUID, port),
        FunctionSetting::Rates(least, most) => words(IFLA_VF_RATE, &[least, most]),
    };
    let (mut info, mut list) = (Nested::default(), Nested::default());
    info.push(kind, value);
    list.push(IFLA_VF_INFO, info.bytes());
    let list = DefaultNla::new(IFLA_VFINFO_LIST, list.bytes());
    link::set(device, |link| {
        link.append_extra_attribute(LinkAttribute::Other(list))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the driver of an InfiniBand device reports about its function 1.
    fn reported(node: u64, port: u64) -> VirtualFunction {
        let guid =
            |guid: u64| [&1_u32.to_ne_bytes()[..], &[0; 4], &guid.to_ne_bytes()[..]].concat();
        let mut info = Nested::default();
        // An address of InfiniBand has 20 bytes.
        info.push(IFLA_VF_MAC, [&1_u32.to_ne_bytes()[..], &[0; 32]].concat());
        info.push(IFLA_VF_IB_NODE_GUID, guid(node));
        info.push(IFLA_VF_IB_PORT_GUID, guid(port));
        let mut list = Nested::default();
        list.push(IFLA_VF_INFO, info.bytes());
        let read = read(&list.bytes()).expect("a list");
        let [function] = read.try_into().expect("one function");
        function
    }

    #[test]
    fn a_guid_of_zeros_was_never_set_and_is_not_written() {
        assert_eq!(reported(0, 0).guids, None);
        assert_eq!(reported(0, 0).settings().collect::<Vec<_>>(), []);
        let settings: Vec<_> = reported(0x11, 0).settings().collect();
        assert_eq!(settings, [FunctionSetting::NodeGuid(0x11)]);
        let settings: Vec<_> = reported(0x11, 0x22).settings().collect();
        let both = [
            FunctionSetting::NodeGuid(0x11),
            FunctionSetting::PortGuid(0x22),
        ];
        assert_eq!(settings, both);
    }
}
