#!/usr/bin/env bash
# NICs that are ports of a bond, and of a bridge with VLAN filtering, get their ifindexes back. The firewall of the bridge names the port by
# its number.
# shellcheck source=tests/vm/bridge.sh
. "$LAB_REPO/tests/vm/bridge.sh"
# shellcheck source=tests/vm/nic.sh
. "$LAB_REPO/tests/vm/nic.sh"

tidy() { nft flush ruleset; ip link del bond4; ip link del br1; }

works() { all_answer; }
ports() { ls /sys/class/net/"$1"/lower_* -d | sed 's,.*/lower_,,' | xargs; }
bond_carrier() { [ "$(cat /sys/class/net/bond4/carrier)" = 1 ]; }

step "a bond of two NICs, which backs up one by the other, with pods on its VLAN"
gw_start
gw_hide
gw_vlan 3 10.3.0.1/24 fd00:3::1/64
modprobe e1000
wait_for 10 "the second NIC" test -e /sys/class/net/eth1
modprobe bonding max_bonds=0
ip link add bond4 type bond mode active-backup miimon 100
ip link set eth0 down master bond4
ip link set eth1 down master bond4
ip link set bond4 up
wait_for 15 "carrier on bond4" bond_carrier
node_vlan 3 bond4.3 bond4
ip addr add 10.3.0.2/24 dev bond4.3
three_pods bond4.3
nft -f - <<'RULES'
table inet host {
    chain input {
        type filter hook input priority 0; policy drop;
        iif { lo, "eth0", "eth1", "bond4.3" } accept
    }
}
RULES
indexes_back "modprobe -r e1000e e1000; modprobe e1000e; modprobe e1000" eth0 eth1
[ "$(ports bond4)" = "eth0 eth1" ] || fail "bond4 has $(ports bond4)"

step "a bridge with VLAN filtering, with the NIC as its port, and a pod behind it"
nft flush ruleset
ip link del bond4
for pod in "${PODS[@]}"; do ip netns pids "$pod" | xargs -r kill; ip netns del "$pod"; done
modprobe -r e1000
rm -rf "$STATE"
mkdir -p "$STATE"
PODS=()
GATEWAYS=()
nic_up
ip link add br1 type bridge vlan_filtering 1
ip link set br1 up
ip link set "$NIC" master br1
bridge vlan add dev "$NIC" vid 3
behind pod4 br1
bridge vlan add dev to-pod4 vid 3 pvid untagged
pod_net pod4 10.3.0.14/24 10.3.0.1
nft -f - <<'RULES'
table bridge ports {
    chain between {
        type filter hook forward priority 0; policy drop;
        iif "eth0" accept
        oif "eth0" accept
    }
}
RULES
tables "$WORK/tables.before"
indexes_back "modprobe -r e1000e; modprobe e1000e" "$NIC"
same_tables
