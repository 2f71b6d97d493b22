#!/usr/bin/env bash
# Pods with all kinds of interfaces: ipvlan in its modes, macvtap, a VLAN and a device that were moved in, a port of a VRF.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"

standard_node

# pod_of PREFIX NUMBER PARENT TYPE OPTIONS: a pod at PREFIX.NUMBER with this kind of link.
pod_of() {
    local prefix=$1 number=$2 parent=$3
    shift 3
    pod_ns "pod$number"
    pod_link "pod$number" "$parent" - "$@"
    pod_net "pod$number" "$prefix.$number/24" "$prefix.1"
}

step "ipvlans: their link-local addresses depend on the order in which they were made"
gw_vlan 4 10.4.0.1/24
node_vlan 4 "$NIC.4" "$NIC"
pod_of 10.4.0 25 "$NIC.4" ipvlan mode l2
pod_of 10.4.0 24 "$NIC.4" ipvlan mode l2
gw_vlan 5 10.5.0.1/24
node_vlan 5 "$NIC.5" "$NIC"
pod_of 10.5.0 26 "$NIC.5" ipvlan mode l2 private
gw_vlan 6
node_vlan 6 "$NIC.6" "$NIC"
for number in 27 28; do
    pod_ns "pod$number"
    pod_link "pod$number" "$NIC.6" - ipvlan mode l3s vepa
    ip -n "pod$number" addr add "10.6.0.$number/24" dev eth0
    ip -n "pod$number" route add default dev eth0
    # A router of the host is in between, which this wire lacks.
    GATEWAYS[pod$number]=
done

step "a macvtap, and a port of a VRF"
pod_of 10.3.0 30 "$NIC.3" macvtap mode bridge
pod_ns pod31
pod_link pod31 "$NIC.3" -
ip -n pod31 link add blue type vrf table 10
ip -n pod31 link set blue up
ip -n pod31 link set eth0 master blue
ip -n pod31 addr add 10.3.0.31/24 dev eth0
ip -n pod31 addr add fd00:3::31/64 dev eth0 nodad
ip -n pod31 route add 10.77.0.0/16 via 10.3.0.1 table 10
GATEWAYS[pod31]=10.3.0.1

step "a VLAN that was moved into a pod has the MAC of its parent"
gw_vlan 8 10.8.0.1/24
ip link add link "$NIC" name moved type vlan id 8 egress-qos-map 0:3
pod_ns pod32
ip link set moved netns pod32
ip -n pod32 link set moved name eth0 up
pod_net pod32 10.8.0.32/24 10.8.0.1

step "a device of another driver that was moved into a pod"
reload_second
pod_ns pod33
ip link set eth1 netns pod33
ip -n pod33 link set eth1 name eth0 mtu 1400 up
pod_net pod33 192.0.2.33/24 192.0.2.1
inside pod33 busybox sysctl -qw net/ipv4/conf/eth0/rp_filter=2

tidy() { modprobe -r e1000; }
before_loss

step "both drivers are reloaded; the device is the host's now"
reload_driver
reload_second
capture "$WORK/lost"
differs "$WORK/before" "$WORK/lost" host "${PODS[@]}"
expect_exit 3 nf diff
expect_exit 0 nf restore --nic-wait 60s
[ ! -e /sys/class/net/eth1 ] || fail "the device is still the host's"
step "everything is as before; an ipvlan has a known operational state only once its parent had no carrier"
capture "$WORK/after"
same_but 'eth0.operstate = ' "$WORK/before" "$WORK/after" host "${PODS[@]}"
all_answer
expect_exit 0 nf diff
expect_exit 0 nf restore
capture "$WORK/again"
same "$WORK/after" "$WORK/again"

step "a VLAN in a pod still follows the MAC of its parent"
mac=02:00:00:00:00:99
ip link set "$NIC" address "$mac"
[ "$(ip -n pod32 -j link show eth0 | jq -r '.[].address')" = "$mac" ] || fail "the VLAN does not follow its parent"
ip link set "$NIC" address 52:54:00:00:00:01

step "a device that the host uses meanwhile is not taken from it"
reload_second
ip addr add 192.0.2.40/24 dev eth1
expect_exit 5 nf restore -o json
problem link-conflict pod33 eth1 192.0.2.40
[ -e /sys/class/net/eth1 ] || fail "the device was taken from the host"
ip addr del 192.0.2.40/24 dev eth1
expect_exit 0 nf restore
all_answer

step "a device that does not return is named"
modprobe -r e1000
expect_exit 5 nf restore -o json
problem parent-missing pod33 eth0 e1000
modprobe e1000
expect_exit 0 nf restore --nic-wait 30s
all_answer
