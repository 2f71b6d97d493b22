//! The VLANs of a pod on the way out of a bridge with VLAN filtering.

use super::*;
use crate::model::net::link::VlanId;

fn link(name: &str, kind: LinkKind, master: Option<&str>) -> Link {
    Link {
        master: master.map(|name| name.parse().unwrap()),
        ..Link::plain(name.parse().unwrap(), kind)
    }
}

fn tagged(id: u16) -> PortVlans {
    PortVlans::of(VlanId::try_from(id).unwrap())
}

/// A bridge with the NIC and the pair of a pod in VLAN 20.
fn host(uplink: &[PortVlans], filters: bool) -> NetState {
    let mut nic = link("eth0", LinkKind::Physical, Some("br0"));
    nic.vlans = Some(uplink.to_vec());
    let mut bridge = link("br0", LinkKind::other("bridge"), None);
    bridge.vlan_filtering = filters;
    let mut end = link("web0", LinkKind::other("veth"), Some("br0"));
    end.vlans = Some(vec![PortVlans {
        pvid: true,
        untagged: true,
        ..tagged(20)
    }]);
    NetState {
        links: vec![nic, bridge, end],
        ..NetState::default()
    }
}

fn pod() -> NetState {
    let mut own = link("eth0", LinkKind::other("veth"), None);
    own.peer = Some(Parent::Host("web0".parse().unwrap()));
    NetState {
        links: vec![own],
        ..NetState::default()
    }
}

#[test]
fn an_uplink_that_leaves_the_vlan_of_the_pod_carries_no_packets() {
    let fault = |filters: bool, now: &[PortVlans]| {
        let good = host(&[tagged(20), tagged(30)], filters);
        let chain = HostSide::new(&good).chain(&pod());
        let now = host(now, filters);
        broken(&chain, &HostSide::new(&now)).map(|(name, what)| (name.to_string(), what))
    };
    let lost = Some(("eth0".to_owned(), LossCause::NotInVlan));
    assert_eq!(fault(true, &[tagged(20), tagged(30)]), None);
    assert_eq!(fault(true, &[tagged(30)]), lost);
    assert_eq!(fault(true, &[]), lost);
    // Of another pod.
    assert_eq!(fault(true, &[tagged(20)]), None);
    let untagged = PortVlans {
        untagged: true,
        ..tagged(20)
    };
    assert_eq!(fault(true, &[untagged]), lost);
    assert_eq!(fault(false, &[]), None);
}
