#!/usr/bin/env bash
# No snapshot, and the driver was reloaded: the pods are restored from what libcni recorded at their creation.
# Macvlans on VLAN 3, one of them with tuning, a VLAN that a plugin created inside a pod, and one on the NIC itself.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"
# shellcheck source=tests/vm/cni.sh
. "$LAB_REPO/tests/vm/cni.sh"

gw_start
gw_vlan 3 10.3.0.1/24
gw_vlan 5 10.5.0.1/24
gw_vlan 0 10.1.0.1/24
ip link set "$NIC" mtu 1600
nic_up
node_vlan 3 "$NIC.3" "$NIC"
ip addr add 10.3.0.2/24 dev "$NIC.3"
network pod1 10.3.0.11/24 10.3.0.1 '{type: "macvlan", master: "eth0.3", mode: "bridge", mtu: 1400}'
network pod2 10.3.0.12/24 10.3.0.1 '{type: "macvlan", master: "eth0.3", mode: "private"}' \
    '{type: "tuning", mtu: 1300, sysctl: {"net.ipv4.conf.eth0.rp_filter": "2"}}'
network pod3 10.5.0.13/24 10.5.0.1 '{type: "vlan", master: "eth0", vlanId: 5, mtu: 1450}'
network pod4 10.1.0.14/24 10.1.0.1 '{type: "macvlan", master: "eth0", mode: "vepa"}'
all_answer
for pod in "${PODS[@]}"; do check "$pod"; done
capture "$WORK/before"

step "driver reloaded: the pods have no network"
reload_driver
pods_dead
for pod in "${PODS[@]}"; do ! check "$pod" >/dev/null || fail "CHECK of $pod passes without its interface"; done
# pods_are STATE COUNT: in the JSON document in $OUT.
pods_are() {
    jq -e --arg state "$1" --argjson count "$2" '[.pods[].state | select(. == $state)] | length == $count' "$OUT" >/dev/null ||
        fail "not $2 pods are $1: $(jq -c '[.pods[] | [.name, .state]]' "$OUT")"
}
from_cache() { nf "$@" --source cni-cache --cni-cache-dir "$CACHE" --runtime none; }
expect_exit 3 from_cache plan --exit-code
printed '^ *\+ vlan eth0\.3 on eth0 id 3'
expect_exit 0 from_cache restore --nic-wait 60s -o json
problem partial-source eth0.3
pods_are restored 4

step "the pods are as before, except what libcni does not record"
all_answer
for pod in "${PODS[@]}"; do check "$pod" || fail "CHECK of $pod"; done
capture "$WORK/after"
# The NIC came back with 1500, and pod4 has the MTU of its parent; this release of the plugin sets neither queue length
# nor ndisc_notify.
same_but 'ifindex|link_index|txqlen|ndisc_notify' "$WORK/before" "$WORK/after" pod1 pod2 pod3
same_but 'ifindex|link_index|txqlen|ndisc_notify|mtu' "$WORK/before" "$WORK/after" pod4
[ "$(cat "/sys/class/net/$NIC.3/mtu")" = "$(cat "/sys/class/net/$NIC/mtu")" ] || fail "the VLAN's MTU is not the NIC's"

step "a second restore changes nothing"
watch_changes
expect_exit 0 from_cache restore
no_changes
expect_exit 0 from_cache plan --exit-code

step "the VLAN alone is gone"
ip link del "$NIC.3"
expect_exit 0 from_cache restore --pod 'shop/pod1' -o json
pods_answer pod1
pods_are restored 1
expect_exit 0 from_cache restore
all_answer

step "the imported checkpoints of i40e_net_fix, after another reload"
mkdir -p "$WORK/origin"
for pod in pod1 pod2; do
    id=$(id_of "$pod")
    jq -n --arg pod "$pod" --arg id "$id" --argjson result "${RESULTS[$pod]}" '{netns: "/var/run/netns/\($pod)",
        podname: $pod, sandbox: $id, ifname: "eth0", result: ($result | .ips[].version = "4")}' >"$WORK/origin/${id:0:12}"
done
expect_exit 0 "$NETFIX" --state-dir "$STATE" import "$WORK/origin" --runtime none -o json
jq -e '.pods | length == 2' "$OUT" >/dev/null || fail "not two pods: $(jq -c .pods "$OUT")"
reload_driver
pods_dead
expect_exit 0 "$NETFIX" --state-dir "$STATE" restore --netns '/run/netns/pod[12]' --parent "$NIC.3" --nic-wait 60s --runtime none
pods_answer pod1 pod2
