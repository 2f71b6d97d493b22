#!/usr/bin/env bash
# An ipvlan pod cannot be restored: netfix reports it, the exit code shows it, and the others are restored.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"

standard_node
gw_vlan 4 10.4.0.1/24
node_vlan 4 "$NIC.4" "$NIC"
pod_ns pod4
pod_link pod4 "$NIC.4" - ipvlan mode l2
pod_net pod4 10.4.0.14/24 10.4.0.1
all_answer
capture "$WORK/before"
expect_exit '0|5' nf snapshot
printed pod4

lost
capture "$WORK/lost"
expect_exit 5 nf plan -o json
problem unsupported pod4 ipvlan
expect_exit 5 nf restore --wait 60s -o json
problem unsupported pod4 ipvlan
step "the other pods are as before"
capture "$WORK/after"
same "$WORK/before" "$WORK/after" host pod1 pod2 pod3
same "$WORK/lost" "$WORK/after" pod4
pods_answer pod1 pod2 pod3
expect_exit 5 nf restore --wait 60s
printed unsupported
printed pod4
