//! The data of kinds of links that netfix stores as bytes, and the lower device in it.

use netlink_packet_core::Nla;
use netlink_packet_route::link::{BridgePortState, InfoBridgePort, InfoData, InfoKind};

use crate::kernel::codec::nested::{Nested, word};
use crate::kernel::codec::text;
use crate::kernel::link::RawLink;
use crate::model::LinkKind;
use crate::model::fidelity::AttributeTable;
use crate::model::net::link::lower::LowerKind;
use crate::model::net::link::port::BACKUP_PORT;
use crate::model::net::raw::RawAttribute;

/// The data without the attributes with the ifindexes of lower devices, and these.
#[derive(Debug)]
struct KindData {
    rest: Vec<RawAttribute>,
    /// Those that are not 0, in the order of the kernel.
    lower: Vec<RawAttribute>,
}

impl KindData {
    /// The data of a link of this kind, each attribute as a request takes it; `None` for bytes that are no list of attributes.
    fn parse(bytes: &[u8], kind: &LowerKind) -> Option<Self> {
        let is_set = |raw: &RawAttribute| raw.value.iter().any(|byte| *byte != 0);
        let (mut rest, mut lower) = (Vec::new(), Vec::new());
        for mut raw in Nested::parse(bytes)?.into_stored() {
            if kind.links.contains(&raw.number) {
                lower.extend(is_set(&raw).then_some(raw));
                continue;
            }
            let is_flag = kind.flags.contains(&raw.number);
            if !is_set(&raw) && (is_flag || kind.unset.contains(&raw.number)) {
                continue;
            }
            if is_flag {
                raw.value.clear();
            }
            rest.push(raw);
        }
        Some(Self { rest, lower })
    }
}

impl RawLink {
    /// The data of a kind that netfix stores as bytes.
    pub(super) fn take_data(&mut self, bytes: &[u8]) {
        let Some(lower) = self.link.kind.lower() else {
            return;
        };
        let Some(read) = KindData::parse(bytes, lower) else {
            let flaw = format!(
                "the data of its kind, {} bytes, cannot be read",
                bytes.len()
            );
            return self.flaws.push(flaw);
        };
        if let LinkKind::Other { data, .. } = &mut self.link.kind {
            *data = read.rest;
        }
        self.lower = read.lower;
    }
}

/// The ifindex of a lower device.
pub(super) fn index(lower: &RawAttribute) -> Option<u32> {
    word(&lower.value, 0)
}

/// The settings of a port that a restore sends back.
pub(super) fn port_settings(infos: &[impl Nla], table: &AttributeTable) -> Vec<RawAttribute> {
    let mut settings: Vec<_> = infos
        .iter()
        .map(text::stored)
        .filter(|raw| table.is_sent_back(raw.number))
        .collect();
    settings.sort_by_key(|raw| raw.number);
    settings
}

/// Whether a port of a bridge passes no packet.
pub(super) fn blocks(info: &InfoBridgePort) -> bool {
    matches!(info, InfoBridgePort::State(BridgePortState::Disabled))
}

/// The ifindex of the backup of a port of a bridge.
pub(super) fn backup_port(infos: &[impl Nla]) -> Option<u32> {
    let mut all = infos.iter().map(text::stored);
    index(&all.find(|raw| raw.number == BACKUP_PORT)?)
}

/// The kind and the data of a link on a lower device with this ifindex; `None` for a kind that has none in its data.
pub(super) fn on(kind: &LinkKind, lower: Option<u32>) -> Option<(InfoKind, InfoData)> {
    let LinkKind::Other { driver, data } = kind else {
        return None;
    };
    let links = kind.lower()?.links;
    let mut nested = Nested::default();
    for raw in data.iter().filter(|raw| !links.contains(&raw.number)) {
        nested.push(raw.number, raw.value.clone());
    }
    if let Some((number, index)) = links.first().zip(lower) {
        nested.push(*number, index.to_ne_bytes().to_vec());
    }
    Some((
        InfoKind::from(driver.as_str()),
        InfoData::Other(nested.bytes()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::net::link::lower;

    #[test]
    fn a_number_that_requests_have_as_a_flag_becomes_one() {
        let vxlan = lower::of("vxlan").unwrap();
        let numbers = |inherit: u8, link: u32| {
            let mut nested = Nested::default();
            nested.push(1, vec![5, 0, 0, 0]);
            nested.push(3, link.to_ne_bytes().to_vec());
            nested.push(22, vec![0]);
            nested.push(28, vec![inherit]);
            let KindData { rest, lower } = KindData::parse(&nested.bytes(), vxlan).unwrap();
            let rest: Vec<_> = rest
                .iter()
                .map(|raw| (raw.number, raw.value.len()))
                .collect();
            (rest, lower.iter().filter_map(index).collect::<Vec<_>>())
        };
        assert_eq!(numbers(0, 0), (vec![(1, 4)], vec![]));
        assert_eq!(numbers(1, 7), (vec![(1, 4), (28, 0)], vec![7]));
    }
}
