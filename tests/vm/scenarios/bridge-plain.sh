#!/usr/bin/env bash
# The NIC is a port of a plain bridge: pods behind it by a veth keep their links and lose the network, and so does a macvlan on a VLAN of
# the bridge. The NIC is down after the loss.
# shellcheck source=tests/vm/bridge.sh
. "$LAB_REPO/tests/vm/bridge.sh"

tidy() { ip link del br0; }

gw_start
gw_vlan 3 10.3.0.1/24
nic_up
ip link add br0 type bridge mcast_snooping 1
ip link set br0 up
ip link set "$NIC" master br0
bridge link set dev "$NIC" cost 77 hairpin on
bridge fdb add 02:00:00:00:00:77 dev "$NIC" master static
bridge mdb add dev br0 port "$NIC" grp 239.1.1.1 permanent
ip addr add 192.0.2.2/24 dev br0
node_vlan 3 br0.3 br0
pod_ns pod1
pod_link pod1 br0.3 0a:00:00:00:03:11
pod_net pod1 10.3.0.11/24 10.3.0.1
behind pod2 br0
pod_net pod2 192.0.2.12/24 192.0.2.1

before_loss
tables "$WORK/tables.before"
expect_exit 0 nf check
expect_exit 0 nf upgrade --dry-run -- true
printed pod1
printed pod2

step "a macvlan on a VLAN of the bridge, and a veth"
reload_driver
dead
uplink_lost
uplink_back

step "a veth alone"
ip netns del pod1
PODS=(pod2)
ip link del br0.3
rm -rf "${STATE:?}"/*
before_loss
tables "$WORK/tables.before"
expect_exit 0 nf check
expect_exit 0 nf upgrade --dry-run -- true
printed pod2
reload_driver
dead
! ip -br link show "$NIC" | grep -q '[<,]UP[,>]' || fail "the NIC is up"
uplink_lost
uplink_back

step "and the guard, after a loss without a window"
before_loss
reload_driver
dead
expect_exit 0 nf guard --once --watch 0s --manager-wait 0s
all_answer
