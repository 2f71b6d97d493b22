#!/usr/bin/env bash
# A node becomes immune in one window: a bond of one port comes between the NIC and the pods' VLAN (docs/immune.md). From then
# on a reload of the driver takes nothing from the pods.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"

window() { expect_exit "$1" nf upgrade --yes --runtime none --watch 5s "${@:2}"; }
indexes() { local pod; for pod in "${PODS[@]}"; do echo "$pod $(inside "$pod" cat /sys/class/net/eth0/ifindex /sys/class/net/eth0/address | xargs)"; done; }
parent_of() { basename "$(readlink -f "/sys/class/net/$1/lower_"*)"; }

standard_node
ip route add 198.51.100.0/24 via 10.3.0.1 dev "$NIC.3"
tcp_open one pod1 TCP:10.3.0.1
all_answer
"$LAB_REPO/scripts/to-bond" --prepare "$NIC"
capture "$WORK/before"
indexes >"$WORK/indexes"

step "the migration fails after the VLAN is gone: netfix restores the old structure"
window 1 -- sh -c "$LAB_REPO/scripts/to-bond $NIC bond4 && $LAB_REPO/scripts/to-bond --undo $NIC bond4; exit 1"
[ ! -e /sys/class/net/bond4 ] || fail "bond4 is left"
[ "$(parent_of "$NIC.3")" = "$NIC" ] || fail "$NIC.3 is on $(parent_of "$NIC.3")"
capture "$WORK/after"
same "$WORK/before" "$WORK/after"
all_answer
tcp_works one "after the failed migration"

step "a NIC with an address of its own is refused, and nothing is lost"
ip addr add 192.0.2.2/24 dev "$NIC"
window 1 -- "$LAB_REPO/scripts/to-bond" "$NIC" bond4
printed 'has addresses of its own'
ip addr del 192.0.2.2/24 dev "$NIC"
capture "$WORK/after"
same "$WORK/before" "$WORK/after"

step "the migration as one window"
window 0 --rollback "$LAB_REPO/scripts/to-bond --undo $NIC bond4" -- "$LAB_REPO/scripts/to-bond" "$NIC" bond4
[ "$(cat /sys/class/net/bond4/bonding/slaves)" = "$NIC" ] || fail "$NIC is not the port of bond4"
[ "$(parent_of "$NIC.3")" = bond4 ] || fail "$NIC.3 is on $(parent_of "$NIC.3")"
capture "$WORK/after"
same "$WORK/before" "$WORK/after" "${PODS[@]}"
indexes | diff "$WORK/indexes" -
ip route show 198.51.100.0/24 | grep -q "via 10.3.0.1 dev $NIC.3" || fail "the host's route is lost"
ip addr show dev "$NIC.3" | grep -q 10.3.0.2/24 || fail "the host's address is lost"
all_answer
tcp_works one "after the migration"

step "a new snapshot describes the node with the bond"
expect_exit 0 nf snapshot --runtime none
expect_exit 0 nf diff
capture "$WORK/before"

step "a driver reload inside a window: the pods lose nothing, netfix puts the port back"
watch_changes
# In COMMAND, after the reload: what netfix would have to do.
window 0 -- sh -c "modprobe -r e1000e; modprobe e1000e; $NETFIX --state-dir $STATE plan --netns '/run/netns/pod*' --runtime none -o json >$WORK/plan"
stop_watching
jq -c '{host: .node.steps, pods: [.pods[] | {name, state, steps: (.steps // [] | length)}]}' "$WORK/plan"
jq -e '(.pods | length) == 3 and all(.pods[]; (.steps // []) == [])' "$WORK/plan" >/dev/null || fail "a step in a pod: $(jq -c . "$WORK/plan")"
jq -e '.node.steps | tojson | contains("bond4")' "$WORK/plan" >/dev/null || fail "no step for the port: $(jq -c .node "$WORK/plan")"
for pod in "${PODS[@]}"; do
    ! grep -E '^Deleted' "$WORK/changes.$pod" || fail "$pod has lost something"
done
! grep -E "^Deleted .*(bond4|$NIC[.]3)" "$WORK/changes.host" | grep -v inet6 || fail "the bond or its VLAN was removed"
[ "$(cat /sys/class/net/bond4/bonding/slaves)" = "$NIC" ] || fail "$NIC is not the port of bond4"
capture "$WORK/after"
same "$WORK/before" "$WORK/after"
indexes | diff "$WORK/indexes" -
all_answer
tcp_works one "after the reload"
