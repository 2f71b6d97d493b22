#!/usr/bin/env bash
# lab: igb
# A pod on the physical function and a pod with a virtual one, whose driver is another: a reload takes the network of both, so neither
# is left out of a check, a window or its report.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"
# shellcheck source=tests/vm/nic.sh
. "$LAB_REPO/tests/vm/nic.sh"

# not_left_out: the command before counts both pods.
not_left_out() { ! grep -qi 'left out' "$OUT" "$OUT.err" || fail "a pod is left out"; }

vlan_node
pod_ns pod1
pod_link pod1 "$NIC.3" 0a:00:00:00:03:11
pod_net pod1 10.3.0.11/24 10.3.0.1
ip -n gw addr add 203.0.113.1/24 dev eth1
functions "$NIC" 1
ip link set "$NIC" vf 0 mac 02:11:22:33:44:50
rebind "$(function_bus "$NIC" 0)"
wait_for 15 "the function" function_is_there "$NIC" 0
pod_ns pod2
pod_function pod2 "$NIC" 0 203.0.113.4/24
wait_for 15 "the gateway of the function" through_function pod2 203.0.113.1

expect_exit 0 nf snapshot
expect_exit 0 nf check
printed '2 of 2'
not_left_out
expect_exit 0 nf check --nic "$NIC"
printed '2 of 2'
not_left_out
for select in '' "--nic $NIC"; do
    # shellcheck disable=SC2086 # Two words or none.
    expect_exit 0 nf upgrade --dry-run $select -- bash -c 'modprobe -r igb; modprobe igb'
    not_left_out
done

step "the operator of virtual functions is named before a window"
mkdir -p /etc/sriov-operator/pci
expect_exit 0 nf check -o json
problem sriov-operator host
rmdir -p /etc/sriov-operator/pci 2>/dev/null || :

step "a window"
expect_exit 0 nf upgrade --foreground --yes --watch 2s -- bash -c 'modprobe -r igb; modprobe igb'
printed '2 of 2'
not_left_out
pods_answer pod1
through_function pod2 203.0.113.1 || fail "the pod with the function does not reach its gateway"
expect_exit 0 "$NETFIX" --state-dir "$STATE" report
not_left_out
! grep -q absent "$OUT" || fail "a NIC is absent in the report"

# again_and_again BUS: its driver is unbound and bound from the time on that $WORK/resets is there, until it is not.
again_and_again() {
    local driver=/sys/bus/pci/drivers/igbvf
    until [ -e "$WORK/resets" ]; do sleep 0.2; done
    while [ -e "$WORK/resets" ]; do
        echo "$1" >"$driver/unbind" || :
        sleep 1
        echo "$1" >"$driver/bind" || :
        sleep 1
    done
}

step "the driver of the function starts again and again: that is named at once, and the rollback, which ends it, brings the pod back"
again_and_again "$(function_bus "$NIC" 0)" 2>/dev/null &
expect_exit 1 nf upgrade --foreground --yes --watch 2s --rollback "rm $WORK/resets; sleep 3" -- bash -c "modprobe -r igb; modprobe igb; touch $WORK/resets"
printed "kernel: igbvf .*\(the driver of a virtual function starts again and again"
printed "^Rolled back: 2 of 2 pods back"
pods_answer pod1
through_function pod2 203.0.113.1 || fail "the pod with the function does not reach its gateway"
