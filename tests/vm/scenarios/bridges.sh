#!/usr/bin/env bash
# The NIC is a port of a bridge. With VLAN filtering, one pod has a macvlan on a VLAN of the bridge, and one is behind it by a veth.
# With a plain bridge, all pods are behind it: they keep their links and lose the network.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"

tidy() { ip link del br0; }

# behind NAME BRIDGE: a pod with a veth whose other end is a port of the bridge.
behind() {
    pod_ns "$1"
    ip link add "to-$1" type veth peer name new0 netns "$1"
    ip -n "$1" link set new0 name eth0 up
    ip link set "to-$1" master "$2" up
}

# tables FILE: what the ports have in the tables of their bridges, without what the kernel added, its timers and the indexes.
tables() {
    {
        bridge -j vlan show | jq -S 'sort_by(.ifname)[]'
        bridge -j fdb show | jq -S 'map(select(.flags | index("self") | not) | select(.state == "static"))
            | map(select(.ifname == "eth0")) | sort_by(.mac, .vlan)[]'
        bridge -j mdb show | jq -S '[.[].mdb[]? | select(.state == "permanent") | del(.index)] | sort_by(.grp, .vid)[]'
        bridge -d -j link show | jq -S 'sort_by(.ifname)[] | del(.ifindex, .link, .flags, .link_index)'
        ip -d -j link show type bridge | jq -S '.[] | {ifname, address, mtu, flags: (.flags | sort)}'
        ip -j addr show | jq -S '.[] | select(.ifname | startswith("br")) | {ifname, addr: [.addr_info[].local]}'
        ip -j route | jq -S .
    } >"$1"
}

same_tables() {
    wait_for 15 "carrier on $NIC" nic_carrier
    tables "$WORK/tables.after"
    diff -U2 "$WORK/tables.before" "$WORK/tables.after" || fail "the bridge has changed"
}

dead() {
    local pod
    for pod in "${PODS[@]}"; do
        if answers "$pod" 10.3.0.1; then fail "$pod still has a gateway: nothing was lost"; fi
    done
}

gw_start
gw_vlan 3 10.3.0.1/24
nic_up
ip link add br1 type bridge vlan_filtering 1 mcast_snooping 1
ip link set br1 up
ip link set $NIC master br1
bridge vlan del dev $NIC vid 1
bridge vlan add dev $NIC vid 10 pvid untagged
bridge vlan add dev $NIC vid 3
bridge vlan add dev $NIC vid 100-110
bridge link set dev $NIC cost 77 learning on hairpin off
bridge fdb add 02:00:00:00:00:77 dev $NIC master static vlan 3
bridge fdb add 02:00:00:00:00:78 dev $NIC master static sticky vlan 10
bridge mdb add dev br1 port $NIC grp 239.1.1.1 permanent vid 3
bridge mdb add dev br1 port $NIC grp ff0e::1 src fd00::1 permanent vid 10
bridge vlan add dev br1 vid 3 self
bridge vlan add dev br1 vid 10 self
node_vlan 3 br1.3 br1
node_vlan 10 br1.10 br1
ip addr add 192.0.2.2/24 dev br1.10
pod_ns pod1
pod_link pod1 br1.3 0a:00:00:00:03:11
pod_net pod1 10.3.0.11/24 10.3.0.1
behind pod2 br1
bridge vlan del dev to-pod2 vid 1
bridge vlan add dev to-pod2 vid 3 pvid untagged
pod_net pod2 10.3.0.12/24 10.3.0.1

before_loss
tables "$WORK/tables.before"
expect_exit 0 nf check
expect_exit 0 nf upgrade --dry-run -- true
printed 'pod1'
printed 'pod2'

step "the bridge has lost its uplink: both pods are lost, and their links are there"
reload_driver
dead
expect_exit 2 nf check
printed 'pod1.*uplink'
printed 'pod2.*uplink'
expect_exit 3 nf diff
expect_exit '1|4|5' nf snapshot
expect_exit 0 nf restore --wait 60s
cat "$OUT"
same_tables
all_answer
expect_exit 0 nf diff
expect_exit 0 nf check
expect_exit 0 nf snapshot

step "a plain bridge with veths alone"
ip link del br1
for pod in "${PODS[@]}"; do ip netns del "$pod"; done
PODS=()
GATEWAYS=()
rm -rf "${STATE:?}"/*
node_vlan 3 $NIC.3 $NIC
ip link add br0 type bridge
ip link set br0 up
ip link set $NIC.3 master br0 up
ip addr add 10.3.0.2/24 dev br0
for n in 3 4; do
    behind pod$n br0
    pod_net pod$n 10.3.0.1$n/24 10.3.0.1
done
before_loss
tables "$WORK/tables.before"
expect_exit 0 nf check
reload_driver
dead
expect_exit 2 nf check
printed 'pod3.*uplink'
expect_exit 0 nf restore --wait 60s
same_tables
all_answer
expect_exit 0 nf diff
expect_exit 0 nf check
