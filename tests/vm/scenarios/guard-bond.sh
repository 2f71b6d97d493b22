#!/usr/bin/env bash
# lab: systemd
# netfix-guard.service and a bond: it loses its only port with the driver, and the pods their carrier. The guard makes the NIC a port again.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"
# shellcheck source=tests/vm/guard.sh
. "$LAB_REPO/tests/vm/guard.sh"

gw_start
gw_vlan 3 10.3.0.1/24 fd00:3::1/64
node_bond active-backup miimon 100
node_vlan 3 bond4.3 bond4
ip addr add 10.3.0.2/24 dev bond4.3
three_pods bond4.3
guard_unit --manager-wait 0s
before_loss
guard_unit_start

step "the driver is reloaded: the bond has no port"
reload_driver
one_restore
restored

step "the record has the lines of the driver, as the kernel has them"
jq -r --arg nic "$NIC" '.kernel.lines[] | select(.device == $nic) | .text' "$(last_record)" >"$WORK/kernel"
grep -q "^e1000e 0000:.* $NIC: " "$WORK/kernel" || fail "the record: $(jq -c .kernel "$(last_record)")"
dmesg >"$WORK/dmesg"
while read -r line; do
    grep -qF -- "$line" "$WORK/dmesg" || fail "the kernel has not logged: $line"
done <"$WORK/kernel"

step "somebody takes the port out: it stays out"
guard_forgets
ip link set "$NIC" nomaster
sleep 10
nothing_more
[ ! -e "/sys/class/net/$NIC/master" ] || fail "the NIC is a port again"
ip link set "$NIC" down
ip link set "$NIC" master bond4
guard_unit_stop
