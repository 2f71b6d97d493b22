#!/usr/bin/env bash
# Pods of every CNI plugin that makes or tunes interfaces: after loss and restore each CHECK passes, and all is as before.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"
# shellcheck source=tests/vm/cni.sh
. "$LAB_REPO/tests/vm/cni.sh"

gw_start
gw_vlan 3 10.3.0.1/24
gw_vlan 4 10.4.0.1/24
gw_vlan 5 10.5.0.1/24
nic_up
node_vlan 3 "$NIC.3" "$NIC"
node_vlan 4 "$NIC.4" "$NIC"
ip addr add 10.3.0.2/24 dev "$NIC.3"

network pod1 10.3.0.11/24 10.3.0.1 '{type: "macvlan", master: "eth0.3", mode: "bridge"}' \
    '{type: "tuning", mac: "0a:00:00:00:03:99", promisc: true, sysctl: {"net.ipv4.conf.eth0.arp_filter": "1"}}'
network pod2 10.3.0.12/24 10.3.0.1 '{type: "macvlan", master: "eth0.3", mode: "private"}' '{type: "sbr"}'
network pod3 10.4.0.13/24 10.4.0.1 '{type: "ipvlan", master: "eth0.4", mode: "l2"}'
network pod4 10.4.0.14/24 10.4.0.1 '{type: "ipvlan", master: "eth0.4", mode: "l2", mtu: 1400}'
network pod5 10.5.0.15/24 10.5.0.1 '{type: "vlan", master: "eth0", vlanId: 5, mtu: 1450}'
reload_second
network pod6 192.0.2.16/24 192.0.2.1 '{type: "host-device", device: "eth1"}'
network pod7 10.87.0.17/24 10.87.0.1 '{type: "ptp"}' '{type: "bandwidth", ingressRate: 8000000, ingressBurst: 80000}'
network pod8 10.86.0.18/24 10.86.0.1 '{type: "bridge", bridge: "cni0", isGateway: true}'
tidy() { modprobe -r e1000; ip link del cni0; }

# The CHECK of macvlan misses the routes that sbr has moved to its table.
checked() {
    local pod
    for pod in "${PODS[@]}"; do [ "$pod" = pod2 ] || check "$pod" || fail "CHECK of $pod"; done
}
checked
before_loss

step "both drivers are reloaded"
reload_driver
reload_second
for pod in pod1 pod2 pod3 pod4 pod5 pod6; do
    [ "$(ip -n "$pod" -br link | awk '{print $1}' | xargs)" = lo ] || fail "$pod still has its interface"
done
for pod in pod1 pod3 pod5 pod6; do ! check "$pod" >/dev/null || fail "CHECK of $pod passes without its interface"; done
expect_exit 0 nf restore --nic-wait 60s

step "each CHECK passes, and everything is as before"
checked
capture "$WORK/after"
# A timer of the bridge; and the index of a veth's peer may be that of the NIC by chance.
same_but 'eth0.operstate = |gc_timer = |veth[0-9a-f]+.link_index = ' "$WORK/before" "$WORK/after" host "${PODS[@]}"
all_answer
expect_exit 0 nf diff
