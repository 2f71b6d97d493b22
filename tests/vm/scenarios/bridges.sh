#!/usr/bin/env bash
# The NIC is a port of a bridge with VLAN filtering: one pod has a macvlan on a VLAN of the bridge, and one is behind it by a veth.
# shellcheck source=tests/vm/bridge.sh
. "$LAB_REPO/tests/vm/bridge.sh"

tidy() { ip link del br1; }

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
uplink_lost
uplink_back

step "the uplink carries the pods' VLAN no more: only that VLAN's pods are lost, and it comes back"
bridge vlan del dev $NIC vid 3
dead
for round in 1 2; do
    expect_exit 2 nf check
    for pod in "${PODS[@]}"; do printed "$pod.*VLAN"; done
    [ "$round" = 2 ] || expect_exit '1|4|5' nf snapshot
done
expect_exit 0 nf restore
same_tables
all_answer
expect_exit 0 nf check

step "another VLAN of the uplink is no pod's way"
bridge vlan del dev $NIC vid 105
expect_exit '0|1' nf check
all_answer
bridge vlan add dev $NIC vid 105
expect_exit 0 nf check
