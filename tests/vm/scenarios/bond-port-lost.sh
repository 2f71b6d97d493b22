#!/usr/bin/env bash
# A bond survives the reload and loses its port: the pods' devices survive and must stay the same devices.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"

gw_start
gw_vlan 3 10.3.0.1/24 fd00:3::1/64
node_bond active-backup miimon 100
ip link set $NIC type bond_slave queue_id 2 prio 7
node_vlan 3 bond4.3 bond4
ip addr add 10.3.0.2/24 dev bond4.3
ip addr add 192.0.2.2/24 dev bond4
three_pods bond4.3
tcp_open one pod1 TCP:10.3.0.1
before_loss

step "driver reloaded: the bond has no port, the pods no carrier"
watch_changes
reload_driver
capture "$WORK/lost"
differs "$WORK/before" "$WORK/lost" host "${PODS[@]}"
if answers pod1 10.3.0.1; then fail "pod1 still has a gateway: nothing was lost"; fi

expect_exit 3 nf diff
expect_exit 0 nf restore --nic-wait 60s
restored
tcp_works one after
stop_watching
# Same name, MAC and ifindex could be a copy; the kernel's events show whether it ever removed a device.
for pod in "${PODS[@]}"; do
    ! grep -E '^Deleted .*(link/|eth0@)' "$WORK/changes.$pod" || fail "$pod: its device was removed"
done
! grep -E '^Deleted .*bond4' "$WORK/changes.host" | grep -v inet6 || fail "the bond or its VLAN was removed"
