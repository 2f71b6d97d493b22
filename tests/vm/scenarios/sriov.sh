#!/usr/bin/env bash
# lab: igb
# Three virtual functions, of a pod, of the host and for a program, are lost with their device, and come back: with their MACs from
# the start, their settings, drivers, names, addresses and routes. One that a new pod gets once kubelet may run again is not called missing.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"
# shellcheck source=tests/vm/nic.sh
. "$LAB_REPO/tests/vm/nic.sh"

standard_node
modprobe pci-stub
functions "$NIC" 3
# A rate needs the speed of the link, which the number of functions resets.
wait_for 15 "carrier on $NIC" nic_carrier
ip link set "$NIC" vf 0 mac 02:11:22:33:44:50
ip link set "$NIC" vf 1 mac 02:11:22:33:44:51
ip link set "$NIC" vf 0 spoofchk off
ip link set "$NIC" vf 0 trust on
ip link set "$NIC" vf 0 max_tx_rate 100
ip link set "$NIC" vf 2 vlan 5 qos 2
for number in 0 1; do rebind "$(function_bus "$NIC" "$number")"; done
wait_for 15 "the functions" function_is_there "$NIC" 1
bus=$(function_bus "$NIC" 2)
echo pci-stub >"/sys/bus/pci/devices/$bus/driver_override"
rebind "$bus" 2>/dev/null || echo "$bus" >/sys/bus/pci/drivers_probe
# No name of the kernel: the function has to get it back.
host_vf=lan1
ip link set "$(function_name "$NIC" 1)" name "$host_vf"
ip link set "$host_vf" up
ip addr add 198.51.100.5/24 dev "$host_vf"
ip route add 10.60.0.0/16 via 198.51.100.1 dev "$host_vf"
ip netns exec gw ip addr add 203.0.113.1/24 dev eth1
pod_ns pod4
pod_function pod4 "$NIC" 0 203.0.113.4/24
wait_for 15 "the gateway of the function" through_function pod4 203.0.113.1
capture_nics "$WORK/before" "$NIC"
expect_exit 0 nf snapshot
expect_exit 0 nf restore
expect_exit 0 nf diff
expect_exit 0 nf check
printed '4 of 4'
jq -e '.state.links[] | select(.name == "eth0") | .nic.sriov | .vfs == 3 and (.functions | length == 3)' "$STATE/node.json" ||
    fail "no functions are recorded"

step "the driver is reloaded"
reload_driver
[ "$(cat "/sys/class/net/$NIC/device/sriov_numvfs")" = 0 ] || fail "the functions are still there"
expect_exit 2 nf check
expect_exit 3 nf diff
printed 'sriov_numvfs = 3'
printed 'vf 0 mac 02:11:22:33:44:50'
expect_exit 0 nf restore --nic-wait 20s
capture_nics "$WORK/after" "$NIC"
same_nics "$WORK/before" "$WORK/after" "$NIC"
pods_answer pod1 pod2 pod3
through_function pod4 203.0.113.1 || fail "the pod with the function does not reach its gateway"
[ "$(function_name "$NIC" 1)" = "$host_vf" ] || fail "the host's function has another name"
ip -br addr show "$host_vf" | grep -q 198.51.100.5 || fail "the host's function has no address"
ip route show 10.60.0.0/16 | grep -q "$host_vf" || fail "the route is lost"
expect_exit 0 nf restore
printed 'nothing to do'
expect_exit 0 nf diff

step "a window names the pod, and brings it back"
expect_exit 0 nf upgrade --dry-run -- bash -c 'modprobe -r igbvf igb; modprobe -a igb igbvf'
printed 'pod4'
expect_exit 0 nf upgrade --foreground --yes --watch 2s -- bash -c 'modprobe -r igbvf igb; modprobe -a igb igbvf'
printed '4 of 4'
through_function pod4 203.0.113.1 || fail "the pod with the function does not reach its gateway"

step "the host's function goes to a new pod while the window watches the pods: that is no loss"
ip route del 10.60.0.0/16
ip addr del 198.51.100.5/24 dev "$host_vf"
expect_exit 0 nf snapshot --accept host
pod_ns pod5
nf upgrade --foreground --yes --watch 10s -- bash -c 'modprobe -r igbvf igb; modprobe -a igb igbvf' >"$OUT" 2>"$OUT.err" &
window=$!
wait_for 60 "the phase proof" eval "jq -e '.phases[-1] | .name == \"proof\"' $STATE/window.json >/dev/null 2>&1"
wait_for 15 "the host's function" test -e "/sys/class/net/$host_vf"
ip link set "$host_vf" netns pod5
ip -n pod5 addr add 198.51.100.5/24 dev "$host_vf"
ip -n pod5 link set "$host_vf" up
wait $window || fail "the window went wrong: $(cat "$OUT" "$OUT.err")"
printed 'All restored: 4 of 4'
record=$(printf '%s\n' "$STATE"/windows/*.json | tail -n 1)
jq -e --arg name "$host_vf" '.nics[] | select(.before.name == $name) | .present == null and .after == null' "$record" >/dev/null ||
    fail "the function in the record: $(jq -c .nics "$record")"
