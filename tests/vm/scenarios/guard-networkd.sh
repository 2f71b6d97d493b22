#!/usr/bin/env bash
# lab: systemd
# netfix-guard.service beside systemd-networkd, which owns the NIC and its VLAN: after a reload of the driver the owner makes both again
# and the guard restores the pods; a restart of networkd takes nothing, and the guard does nothing.
# shellcheck source=tests/vm/networkd.sh
. "$LAB_REPO/tests/vm/networkd.sh"
# shellcheck source=tests/vm/guard.sh
. "$LAB_REPO/tests/vm/guard.sh"

gateway_node
udev_start
unit 10-nic.network '[Match]' Name="$NIC" '[Network]' Address=192.0.2.2/24 VLAN="$VLAN" IPv6AcceptRA=no
vlan_unit
networkd_start
three_pods "$VLAN"
guard_beside_owner

step "networkd is restarted: nothing is lost"
systemctl restart systemd-networkd.service
wait_for 60 "networkd to configure $VLAN" is_configured "$VLAN"
sleep 10
nothing_more
as_before "a restart of networkd"

step "the unit is killed in the middle of a restore: it is started again, and completes it"
guard_forgets
reload_driver
wait_for 120 "its window" test -e "$STATE/window.json"
systemctl kill -s KILL netfix-guard.service
one_restore
as_before "kill -9"
guard_unit_stop
