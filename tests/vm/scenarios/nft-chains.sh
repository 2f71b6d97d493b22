#!/usr/bin/env bash
# Kernels before 6.16 delete a chain of nftables with the device that it is bound to: it is named before the loss, and as lost after it. A
# MAC that was added to the device comes back.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"

standard_node
nft -f - <<'RULES'
table netdev t {
    chain c {
        type filter hook ingress device eth0 priority 0
        tcp dport 9 drop
    }
}
RULES
bridge fdb add 02:00:00:00:99:01 dev "$NIC" self
all_answer
expect_exit 5 nf snapshot
printed 'nft chain netdev t c on eth0'
expect_exit '1|2' nf check
printed 'nft chain netdev t c on eth0'
# Links in pods have MACs of their own on the device.
[ "$(jq -c '[.state.links[] | select(.name == "eth0") | .fdb[].lladdr]' "$STATE/node.json")" = '["02:00:00:00:99:01"]' ] ||
    fail "$(jq -c '.state.links[] | select(.name == "eth0") | .fdb' "$STATE/node.json")"

lost
nft list ruleset | grep -q 'chain c' && fail "this kernel keeps the chain"
expect_exit 5 nf restore --nic-wait 20s
printed 'nft chain netdev t c on eth0'
all_answer
bridge fdb show dev "$NIC" | grep -q '02:00:00:00:99:01 self' || fail "$(bridge fdb show dev "$NIC")"
expect_exit 2 nf check
printed 'nft chain netdev t c on eth0'
