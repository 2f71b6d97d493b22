#!/usr/bin/env bash
# lab: igb
# `netfix guard` and a pod with a virtual function, which is lost with its device.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"
# shellcheck source=tests/vm/nic.sh
. "$LAB_REPO/tests/vm/nic.sh"
# shellcheck source=tests/vm/guard.sh
. "$LAB_REPO/tests/vm/guard.sh"

standard_node
functions "$NIC" 1
wait_for 15 "carrier on $NIC" nic_carrier
ip link set "$NIC" vf 0 mac 02:11:22:33:44:50
rebind "$(function_bus "$NIC" 0)"
wait_for 15 "the function" function_is_there "$NIC" 0
ip netns exec gw ip addr add 203.0.113.1/24 dev eth1
pod_ns pod4
pod_function pod4 "$NIC" 0 203.0.113.4/24
wait_for 15 "the gateway of the function" through_function pod4 203.0.113.1
expect_exit 0 nf snapshot
"$NETFIX" --state-dir "$STATE" guard "${SELECT[@]}" --watch 3s --manager-wait 0s >"$WORK/guard.log" 2>&1 &
GUARD=$!
wait_for 60 "the guard" grep -q "watching: nothing" "$WORK/guard.log"

step "the driver is reloaded"
reload_driver
one_restore
through_function pod4 203.0.113.1 || fail "the pod with the function does not reach its gateway"
pods_answer pod1 pod2 pod3
expect_exit 0 nf diff
kill "$GUARD"
wait "$GUARD" || fail "the guard ended with $?: $(cat "$WORK/guard.log")"
