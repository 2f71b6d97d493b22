//! Links that a tenant makes in the host's namespace: the nsid of its link's parent names it (`IFLA_TARGET_NETNSID`), and
//! without a user namespace of its own its `CAP_NET_ADMIN` counts there.

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage, MacVlanMode};
use netlink_sys::{Socket, protocols::NETLINK_ROUTE};
use rtnetlink::LinkMacVlan;

use super::{Scene, When};
use crate::common::Node;

/// The names of such links.
pub const NAMES: [&str; 5] = ["nfx02000088010b", "macvlan0", "eth0.3", "evil0", "evil1"];

/// The host's nsid in a namespace whose first link has its parent there.
const HOST: i32 = 0;

/// Asks the kernel for a link; returns whether it made one.
fn is_made(scene: &Scene<'_>, mut link: LinkMessage) -> bool {
    link.header.flags = LinkFlags::empty();
    let mut message = NetlinkMessage::from(RouteNetlinkMessage::NewLink(link));
    message.header.flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
    message.finalize();
    let mut request = vec![0; message.buffer_len()];
    message.serialize(&mut request);
    let answer = scene.tenants[0].ns.enter(move || {
        let mut socket = Socket::new(NETLINK_ROUTE).expect("a socket");
        socket.bind_auto().expect("an address");
        socket.send(&request, 0).expect("a request");
        socket.recv_from_full().expect("an answer").0
    });
    let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer).expect("an answer");
    matches!(answer.payload, NetlinkPayload::Error(error) if error.code.is_none())
}

/// A macvlan with the first victim's MAC, on the tenant's own link.
fn link(scene: &Scene<'_>, name: &str, nsid: i32, index: u32) -> LinkMessage {
    let ns = &scene.tenants[0].ns;
    if !ns.has_link("lower0") {
        ns.ip("link add lower0 type veth peer name lower1");
    }
    let mac = scene.victims[0].mac();
    let mac = mac.split(':').map(|byte| u8::from_str_radix(byte, 16));
    let link = LinkMacVlan::new(name, ns.index_of("lower0"), MacVlanMode::Bridge)
        .address(mac.collect::<Result<_, _>>().expect("a MAC"))
        .append_extra_attribute(LinkAttribute::IfNetnsId(nsid));
    if index == 0 { link } else { link.index(index) }.build()
}

/// In all namespaces that the tenant can name: one link, in the host's.
fn only_the_host_is_reached(scene: &Scene<'_>, name: &str) {
    let made = (0..64).filter(|nsid| is_made(scene, link(scene, name, *nsid, 0)));
    assert_eq!(made.collect::<Vec<_>>(), [HOST]);
}

/// A name after a neighbour's MAC, one that the kernel gives to a link without a name, one of a VLAN, and a neighbour's index.
#[test]
fn links_in_the_hosts_namespace_with_the_names_and_the_index_that_a_restore_may_use() {
    let node = Node::new();
    let scene = Scene::new(&node, &["tenant"]);
    scene.survives(When::BeforeRestore, &[&[]], |scene| {
        let [names @ .., another] = NAMES;
        only_the_host_is_reached(scene, another);
        for name in names.into_iter().rev() {
            let index = if name == NAMES[3] {
                scene.indexes[1]
            } else {
                0
            };
            assert!(is_made(scene, link(scene, name, HOST, index)), "{name}");
            assert!(scene.node.ns.has_link(name));
        }
    });
}
