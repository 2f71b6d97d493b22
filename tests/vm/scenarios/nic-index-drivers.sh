#!/usr/bin/env bash
# NICs of e1000e and of virtio_net get their ifindexes back: a firewall that drops what no rule lets through the NIC by its number works as before.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"
# shellcheck source=tests/vm/nic.sh
. "$LAB_REPO/tests/vm/nic.sh"

tidy() { nft flush ruleset; }

firewall() {
    nft -f - <<'RULES'
table inet host {
    set nics { typeof iif; elements = { "eth0" }; }
    chain input {
        type filter hook input priority 0; policy drop;
        iif lo accept
        iif "eth0" icmp type echo-request accept
        iif @nics meta l4proto icmpv6 accept
    }
}
RULES
}
reaches() { ip netns exec gw busybox ping -c 1 -W 2 192.0.2.2 >/dev/null; }
works() { wait_for 5 "an answer of the host" reaches; all_answer; }

standard_node
gw_hide
ip addr add 192.0.2.2/24 dev "$NIC"
firewall
indexes_back "modprobe -r e1000e; modprobe e1000e" "$NIC"

step "virtio_net: both NICs change their places on the wire"
tidy
exec {GW}<&-
for pod in "${PODS[@]}" ; do ip netns pids "$pod" | xargs -r kill; ip netns del "$pod"; done
rm -rf "$STATE" /run/netns/gw
PODS=()
GATEWAYS=()
SELECT=(--netns '/run/netns/pod*')
ip link del "$NIC.3"
wait_for 10 "the second NIC" test -e /sys/class/net/eth1
ip link set "$NIC" down
ip addr flush dev "$NIC"
ip link set "$NIC" name wire0
ip link set eth1 name eth0
ip link set wire0 name eth1
mkdir -p "$STATE"
standard_node
gw_hide
ip addr add 192.0.2.2/24 dev "$NIC"
firewall
indexes_back "modprobe -r virtio_net; modprobe virtio_net" "$NIC"
