#!/usr/bin/env bash
# All kinds of VLANs on one jumbo NIC: protocol, flags, QoS maps, odd names, their own sysctls.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"

gw_start
ip link set "$NIC" mtu 9000
nic_up
ip link property add dev "$NIC" altname uplink-a
ip link set "$NIC" alias "rack 7, port 12"

# kind ID NAME LINK OPTIONS: a VLAN, its gateway and a pod on it.
kind() {
    local id=$1 name=$2 proto=802.1Q
    shift 2
    [[ "$*" != *802.1ad* ]] || proto=802.1ad
    gw_vlan "$id" "10.$((id % 250)).0.1/24" -- protocol $proto
    node_vlan "$id" "$name" "$NIC" "$@"
    pod_ns "pod$id"
    pod_link "pod$id" "$name" "$(printf '0a:00:00:00:%02x:%02x' $((id / 256)) $((id % 256)))"
    pod_net "pod$id" "10.$((id % 250)).0.9/24" "10.$((id % 250)).0.1"
}
kind 3 "$NIC.3"
kind 20 "a-b_c.d+e@f" reorder_hdr off
kind 100 vlan100 ingress-qos-map 1:2 5:7 egress-qos-map 0:3 6:1
kind 7 s.tag protocol 802.1ad
kind 1000 g gvrp on mvrp on loose_binding on
kind 4094 fifteen-letters

ip link set vlan100 mtu 9000
ip -n pod100 link set eth0 mtu 9000
ip link set s.tag down
ip link set s.tag address 02:00:00:00:00:07
ip link set s.tag up
ip link set g txqueuelen 500
# Changed while it was up: its link-local address stays that of the old MAC.
ip link set a-b_c.d+e@f address 02:00:00:00:00:20
busybox sysctl -qw net/ipv6/conf/fifteen-letters/disable_ipv6=1 net/ipv4/conf/vlan100/rp_filter=2 \
    "net/ipv4/conf/$NIC/arp_ignore=1" "net/ipv6/conf/$NIC.3/accept_ra=0"
# Down on purpose stays down.
ip link add link "$NIC" name "$NIC.55" type vlan id 55

before_loss
lost
expect_exit 0 nf restore --nic-wait 60s
restored
