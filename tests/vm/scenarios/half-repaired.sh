#!/usr/bin/env bash
# A repair by hand was started: netfix completes it, and leaves correct parts unchanged.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"

standard_node
ip addr add 192.0.2.2/24 dev "$NIC"
vlan_index=$(cat "/sys/class/net/$NIC.3/ifindex")
before_loss
lost

step "repaired by hand: NIC and VLAN, pod1 completely, pod2 partly"
nic_up
ip link add link "$NIC" name "$NIC.3" index "$vlan_index" type vlan id 3
ip link set "$NIC.3" up
pod_link pod1 "$NIC.3" 0a:00:00:00:03:11
ip -n pod1 addr add 10.3.0.11/24 dev eth0
ip -n pod1 route add default via 10.3.0.1 dev eth0
pod_link pod2 "$NIC.3" 0a:00:00:00:03:12
ip -n pod2 link set eth0 down
capture "$WORK/half"
# The repair by hand gave the device a new ifindex; netfix must not take a working pod down for that.
index=$(inside pod1 cat /sys/class/net/eth0/ifindex 2>/dev/null || ip -n pod1 -j link show eth0 | jq '.[0].ifindex')
watch_changes
expect_exit 0 nf restore --nic-wait 60s
stop_watching
[ ! -s "$WORK/changes.pod1" ] || fail "pod1 was right and was touched: $(cat "$WORK/changes.pod1")"
[ "$(ip -n pod1 -j link show eth0 | jq '.[0].ifindex')" = "$index" ] || fail "pod1 has another device now"

step "everything is as before, except the ifindexes chosen by hand"
capture "$WORK/after"
same "$WORK/half" "$WORK/after" pod1
same_but '^link eth0.ifindex' "$WORK/before" "$WORK/after" pod1 pod2
same "$WORK/before" "$WORK/after" host pod3
all_answer
