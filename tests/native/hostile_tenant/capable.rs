//! With `CAP_NET_ADMIN` in the pod's own namespace.

use super::{Row, When, attacks, scripts};

const RIGHTS: [&str; 2] = ["--bounding-set", "-all,+net_admin,+net_raw"];

/// What a tenant that changes its own link during the restore may do to itself.
const OWN: [&str; 4] = [
    "address-conflict",
    "failed",
    "link-conflict",
    "mac-conflict",
];

/// What a tenant has done in its own pod when a snapshot is written.
const RECORDED: [Row; 10] = [
    (
        "neighbours_mac_as_a_source",
        &[],
        "ip link add m0 link eth0 type macvlan mode source
        ip link set m0 type macvlan macaddr add $WEB_MAC",
    ),
    (
        "neighbours_packets",
        &[],
        "ip neigh add proxy $WEB dev eth0 && echo 1 >/proc/sys/net/ipv4/conf/eth0/proxy_arp
        ip neigh replace $GATEWAY lladdr $OWN_MAC dev eth0 nud permanent && ip link set eth0 promisc on allmulticast on
        ip route add $WEB dev eth0 && ip route add blackhole $API
        for i in $(seq 2 100); do ip rule add from 10.9.0.$i lookup $i; ip route add default via $GATEWAY table $i; done",
    ),
    (
        "neighbours_name_and_escapes",
        &[],
        "ip link property add dev eth0 altname ${WEB_NETNS##*/} && ip link property add dev eth0 altname \"$(printf 'b\\374ro')\"
        ip link set eth0 alias \"$(printf '\\033[2J\\nerror: pod web: b\\374ro')\"
        ip addr add 192.0.2.7/32 dev eth0 label \"$(printf 'eth0:\\374')\"",
    ),
    (
        "name_that_is_no_text",
        &["unsupported"],
        "ip link add \"$(printf 'b\\374ro')\" link eth0 type macvlan mode bridge",
    ),
    (
        "fifty_links_and_hosts_names",
        &[],
        "for name in eth0.3 bond0 up0 macvlan0 nfx0; do ip link add $name type ifb; done
        for i in $(seq 50); do ip link add v$i type veth peer name w$i; done",
    ),
    (
        "another_name",
        &["degraded"],
        "ip link set eth0 down && ip link set eth0 name eth7 && ip link set eth7 up",
    ),
    (
        "program",
        &["unsupported"],
        "tc qdisc add dev eth0 clsact && tc filter add dev eth0 egress bpf bytecode '1,6 0 0 0' direct-action",
    ),
    (
        "qdisc",
        &[],
        "tc qdisc add dev eth0 root tbf rate 1mbit burst 10k latency 50ms",
    ),
    (
        "bridge",
        &[],
        "ip link add br0 type bridge && ip link set eth0 master br0",
    ),
    (
        "nexthop_object",
        &["unsupported", "failed"],
        "ip nexthop add id 5 via $GATEWAY dev eth0 && ip route add 192.0.2.0/24 nhid 5",
    ),
];

/// What a restore finds in the place of what was lost.
const IN_THE_PLACE: [Row; 3] = [
    (
        "macvlan_on_its_own_link",
        &["link-conflict"],
        "ip link add v0 type veth peer name v1 && ip link set v0 up
        ip link add eth0 link v0 address $OWN_MAC type macvlan mode bridge && ip link set eth0 up",
    ),
    (
        "former_index_and_name",
        &["link-conflict"],
        "ip link add eth0 index $INDEX type ifb",
    ),
    (
        "no_ipv6",
        &["failed"],
        "for file in /proc/sys/net/ipv6/conf/*/disable_ipv6; do echo 1 >$file; done",
    ),
];

#[test]
fn what_a_snapshot_records_of_tenants_in_their_own_pods() {
    scripts(When::BeforeSnapshot, &RIGHTS, &RECORDED);
}

#[test]
fn what_tenants_put_in_the_place_of_their_lost_links() {
    scripts(When::BeforeRestore, &RIGHTS, &IN_THE_PLACE);
}

attacks! { RIGHTS;
    every_neighbours_address: BeforeSnapshot, ["address-conflict"],
        "ip addr add $WEB/32 dev eth0 && ip addr add $API/16 dev eth0";
    addresses_of_the_host_of_the_gateway_and_of_a_neighbours_ipv6: BeforeSnapshot, ["address-conflict"],
        "ip addr add $HOST/32 dev eth0 && ip addr add $GATEWAY/32 dev eth0 && ip addr add $WEB6/64 dev eth0 nodad";
    neighbours_addresses_on_more_macvlans: BeforeSnapshot, ["address-conflict"],
        "ip link add m0 link eth0 type macvlan mode bridge && ip addr add $WEB/16 dev m0
        ip link add m1 link eth0 up type macvlan mode bridge && ip addr add $API/16 dev m1";
    neighbours_macs_in_every_mode: BeforeSnapshot, ["mac-conflict"],
        "ip link add m0 link eth0 address $API_MAC type macvlan mode bridge
        for mode in bridge private vepa source; do ip link add m$mode link eth0 address $WEB_MAC type macvlan mode $mode; done";
    a_neighbours_mac_and_address: BeforeSnapshot, ["address-conflict", "mac-conflict"],
        "ip link add m0 link eth0 address $WEB_MAC type macvlan mode bridge
        ip addr add $WEB/16 dev m0 && ip addr add $WEB/32 dev eth0";
    thousands_of_routes_rules_and_neighbours: BeforeSnapshot, [],
        "for i in $(seq 0 1199); do
            echo route add 172.16.$((i / 256)).$((i % 256)) via $GATEWAY
            echo rule add pref $((1000 + i)) from 172.16.$((i / 256)).$((i % 256)) lookup main
            echo neigh add 10.88.$((100 + i / 200)).$((1 + i % 200)) lladdr 02:00:00:00:00:07 dev eth0 nud permanent
        done | ip -batch -";
    two_thousand_addresses: BeforeSnapshot, [],
        "for i in $(seq 0 1999); do echo addr add 172.16.$((i / 256)).$((i % 256))/32 dev eth0; done | ip -batch -";
    addresses_in_a_loop: DuringRestore, OWN,
        "echo begun; while :; do ip addr add $WEB/32 dev eth0; ip addr del $WEB/32 dev eth0; done 2>/dev/null";
    its_index_in_a_loop: DuringRestore, OWN,
        "echo begun; while :; do ip link add t0 index $INDEX type ifb; ip link del t0; done 2>/dev/null";
    its_name_in_a_loop: DuringRestore, OWN,
        "echo begun; while :; do ip link add eth0 type ifb; ip link del eth0; done 2>/dev/null";
    another_name_for_its_new_link_in_a_loop: DuringRestore, OWN,
        "echo begun; while :; do ip link set eth0 name e1; ip link set e1 name eth0; done 2>/dev/null";
    the_loss_of_its_new_link_in_a_loop: DuringRestore, OWN,
        "echo begun; while :; do ip link del eth0; done 2>/dev/null";
    routes_in_a_loop: DuringRestore, OWN,
        "echo begun; while :; do ip route flush table main; ip route add blackhole default; done 2>/dev/null";
}
