#!/usr/bin/env bash
# Old kernels look a new link up in the sender's namespace: the host owns an eth0, and the pods' old ifindex too.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"

standard_node
ip addr add 192.0.2.2/24 dev "$NIC"
index=$(ip -n pod1 -j link show eth0 | jq '.[0].ifindex')
before_loss
lost

step "a device of the host takes ifindex $index"
ip link add name squatter index "$index" type dummy
ip link set squatter up
capture "$WORK/squatted"
expect_exit 0 nf restore --wait 60s
[ -e "/sys/class/net/$NIC" ] || fail "the host lost its own $NIC"
capture "$WORK/after"
same "$WORK/before" "$WORK/after" "${PODS[@]}"
same_but 'squatter' "$WORK/before" "$WORK/after" host
diff <(grep squatter "$WORK/squatted/host") <(grep squatter "$WORK/after/host") || fail "squatter was changed"
all_answer
expect_exit 0 nf diff
