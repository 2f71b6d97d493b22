#!/usr/bin/env bash
# VLAN 3 was recreated under another name: its pods cannot be restored, the others are.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"

gw_start
gw_vlan 3 10.3.0.1/24 fd00:3::1/64
gw_vlan 5 10.5.0.1/24
nic_up
node_vlan 3 "$NIC.3" "$NIC"
node_vlan 5 "$NIC.5" "$NIC"
three_pods "$NIC.3"
pod_ns pod5
pod_link pod5 "$NIC.5" 0a:00:00:00:05:15
pod_net pod5 10.5.0.15/24 10.5.0.1
before_loss
lost
capture "$WORK/lost"

step "VLAN 3 is now called storage"
nic_up
ip link add link "$NIC" name storage type vlan id 3
ip link set storage up
capture "$WORK/taken"
expect_exit 5 nf restore --nic-wait 60s -o json
problem link-conflict eth0.3 storage
for pod in pod1 pod2 pod3; do problem parent-missing "$pod" eth0.3; done
capture "$WORK/after"
same "$WORK/lost" "$WORK/after" pod1 pod2 pod3
same "$WORK/before" "$WORK/after" pod5
same_but 'storage|eth0\.3[^0-9]' "$WORK/before" "$WORK/after" host
diff <(grep storage "$WORK/taken/host") <(grep storage "$WORK/after/host") || fail "storage was changed"
pods_answer pod5

step "the name is corrected by hand"
ip link del storage
expect_exit 0 nf restore --nic-wait 60s
restored
