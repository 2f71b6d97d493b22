//! With `CAP_NET_ADMIN` in the pod's own namespace.

use super::attacks;

const RIGHTS: [&str; 2] = ["--bounding-set", "-all,+net_admin,+net_raw"];

/// What a tenant that changes its own link during the restore may do to itself.
const OWN: [&str; 4] = [
    "address-conflict",
    "failed",
    "link-conflict",
    "mac-conflict",
];

attacks! { RIGHTS;
    every_neighbours_address: BeforeSnapshot, ["address-conflict"],
        "ip addr add $WEB/32 dev eth0 && ip addr add $API/32 dev eth0";
    every_neighbours_address_in_their_subnet: BeforeSnapshot, ["address-conflict"],
        "ip addr add $WEB/16 dev eth0 && ip addr add $API/16 dev eth0";
    a_neighbours_ipv6_address: BeforeSnapshot, ["address-conflict"],
        "ip addr add $WEB6/64 dev eth0 nodad";
    a_neighbours_address_on_a_second_macvlan: BeforeSnapshot, ["address-conflict"],
        "ip link add m0 link eth0 type macvlan mode bridge && ip addr add $WEB/16 dev m0";
    a_neighbours_address_on_a_second_macvlan_that_is_up: BeforeSnapshot, ["address-conflict"],
        "ip link add m0 link eth0 up type macvlan mode bridge && ip addr add $WEB/16 dev m0";
    a_neighbours_mac_in_bridge_mode: BeforeSnapshot, ["mac-conflict"],
        "ip link add m0 link eth0 address $WEB_MAC type macvlan mode bridge
        ip link add m1 link eth0 address $API_MAC type macvlan mode bridge";
    a_neighbours_mac_in_private_mode: BeforeSnapshot, ["mac-conflict"],
        "ip link add m0 link eth0 address $WEB_MAC type macvlan mode private";
    a_neighbours_mac_in_vepa_mode: BeforeSnapshot, ["mac-conflict"],
        "ip link add m0 link eth0 address $WEB_MAC type macvlan mode vepa";
    a_neighbours_mac_in_source_mode: BeforeSnapshot, ["mac-conflict"],
        "ip link add m0 link eth0 address $WEB_MAC type macvlan mode source";
    a_neighbours_mac_as_a_source: BeforeSnapshot, [],
        "ip link add m0 link eth0 type macvlan mode source
        ip link set m0 type macvlan macaddr add $WEB_MAC";
    a_neighbours_mac_and_address: BeforeSnapshot, ["address-conflict", "mac-conflict"],
        "ip link add m0 link eth0 address $WEB_MAC type macvlan mode bridge
        ip addr add $WEB/16 dev m0 && ip addr add $WEB/32 dev eth0";
    the_hosts_address: BeforeSnapshot, ["address-conflict"],
        "ip addr add $HOST/32 dev eth0";
    the_gateways_address: BeforeSnapshot, ["address-conflict"],
        "ip addr add $GATEWAY/32 dev eth0";
    a_proxy_for_its_neighbours: BeforeSnapshot, [],
        "ip neigh add proxy $WEB dev eth0 && echo 1 >/proc/sys/net/ipv4/conf/eth0/proxy_arp";
    its_own_mac_as_the_gateways: BeforeSnapshot, [],
        "ip neigh replace $GATEWAY lladdr $OWN_MAC dev eth0 nud permanent";
    routes_to_its_neighbours: BeforeSnapshot, [],
        "ip route add $WEB dev eth0 && ip route add blackhole $API
        for i in $(seq 2 100); do ip rule add from 10.9.0.$i lookup $i; ip route add default via $GATEWAY table $i; done";
    names_of_its_neighbours: BeforeSnapshot, [],
        "ip link property add dev eth0 altname ${WEB_NETNS##*/} && ip link set eth0 alias ${WEB_NETNS##*/}";
    escapes_in_an_alias: BeforeSnapshot, [],
        "ip link set eth0 alias \"$(printf '\\033[2J\\nerror: pod web: lost')\"";
    names_that_are_no_text: BeforeSnapshot, [],
        "ip link set eth0 alias \"$(printf 'b\\374ro')\" && ip link property add dev eth0 altname \"$(printf 'b\\374ro')\"
        ip addr add 192.0.2.7/32 dev eth0 label \"$(printf 'eth0:\\374')\"";
    a_link_whose_name_is_no_text: BeforeSnapshot, ["unsupported"],
        "ip link add \"$(printf 'b\\374ro')\" link eth0 type macvlan mode bridge";
    two_thousand_routes: BeforeSnapshot, [],
        "for i in $(seq 0 1999); do echo route add 172.16.$((i / 256)).$((i % 256)) via $GATEWAY; done | ip -batch -";
    two_thousand_addresses: BeforeSnapshot, [],
        "for i in $(seq 0 1999); do echo addr add 172.16.$((i / 256)).$((i % 256))/32 dev eth0; done | ip -batch -";
    two_thousand_rules: BeforeSnapshot, [],
        "for i in $(seq 0 1999); do echo rule add pref $((1000 + i)) from 172.16.$((i / 256)).$((i % 256)) lookup main; done |
        ip -batch -";
    two_thousand_neighbours: BeforeSnapshot, [],
        "for i in $(seq 0 1999); do
            echo neigh add 10.88.$((100 + i / 200)).$((1 + i % 200)) lladdr 02:00:00:00:00:07 dev eth0 nud permanent
        done | ip -batch -";
    two_thousand_sources_of_a_macvlan: BeforeSnapshot, [],
        "ip link add m0 link eth0 type macvlan mode source
        for i in $(seq 0 1999); do
            printf 'link set m0 type macvlan macaddr add 02:00:00:00:%02x:%02x\\n' $((i / 256)) $((i % 256))
        done | ip -batch -";
    a_route_of_more_hops_than_a_message_can_hold: BeforeSnapshot, ["unsupported"],
        "ip addr add fd50::2/64 dev eth0 nodad
        for i in $(seq 1500); do printf 'route append fd51::/64 via fd50::1:%x dev eth0\\n' $i; done | ip -batch -";
    links_with_the_hosts_names: BeforeSnapshot, [],
        "for name in eth0.3 bond0 up0 macvlan0 nfx0; do ip link add $name type ifb; done";
    fifty_links: BeforeSnapshot, [],
        "for i in $(seq 50); do ip link add v$i type veth peer name w$i; done";
    another_name_for_its_link: BeforeSnapshot, ["degraded"],
        "ip link set eth0 down && ip link set eth0 name eth7 && ip link set eth7 up";
    a_program_on_its_link: BeforeSnapshot, ["unsupported"],
        "tc qdisc add dev eth0 clsact && tc filter add dev eth0 egress bpf bytecode '1,6 0 0 0' direct-action";
    a_qdisc_on_its_link: BeforeSnapshot, [],
        "tc qdisc add dev eth0 root tbf rate 1mbit burst 10k latency 50ms";
    its_link_in_a_bridge: BeforeSnapshot, [],
        "ip link add br0 type bridge && ip link set eth0 master br0";
    a_nexthop_object: BeforeSnapshot, ["unsupported", "failed"],
        "ip nexthop add id 5 via $GATEWAY dev eth0 && ip route add 192.0.2.0/24 nhid 5";
    promiscuous: BeforeSnapshot, [],
        "ip link set eth0 promisc on allmulticast on";
    a_link_of_another_kind_in_the_place_of_its_own: BeforeRestore, ["link-conflict"],
        "ip link add eth0 type veth peer name x0";
    a_macvlan_on_its_own_link_in_the_place_of_its_own: BeforeRestore, ["link-conflict"],
        "ip link add v0 type veth peer name v1 && ip link set v0 up
        ip link add eth0 link v0 address $OWN_MAC type macvlan mode bridge && ip link set eth0 up";
    its_former_index: BeforeRestore, [],
        "ip link add t0 index $INDEX type ifb";
    its_former_index_and_name: BeforeRestore, ["link-conflict"],
        "ip link add eth0 index $INDEX type ifb";
    no_ipv6: BeforeRestore, ["failed"],
        "for file in /proc/sys/net/ipv6/conf/*/disable_ipv6; do echo 1 >$file; done";
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
