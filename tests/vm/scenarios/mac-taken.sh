#!/usr/bin/env bash
# Another macvlan took a lost pod's MAC: that pod is an error, and not half restored.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"

standard_node
vlan_index=$(cat "/sys/class/net/$NIC.3/ifindex")
before_loss
lost

step "a macvlan on the host has pod1's MAC"
nic_up
ip link add link "$NIC" name "$NIC.3" index "$vlan_index" type vlan id 3
ip link set "$NIC.3" up
ip link add link "$NIC.3" name squatter address 0a:00:00:00:03:11 type macvlan mode bridge
ip link set squatter up
expect_exit 5 nf restore --wait 60s -o json
problem mac-conflict pod1 squatter 0a:00:00:00:03:11 EADDRINUSE
capture "$WORK/after"
same "$WORK/lost" "$WORK/after" pod1
same "$WORK/before" "$WORK/after" pod2 pod3
same_but squatter "$WORK/before" "$WORK/after" host
pods_answer pod2 pod3

step "the squatter goes"
ip link del squatter
expect_exit 0 nf restore --wait 60s
restored
