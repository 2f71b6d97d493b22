#!/usr/bin/env bash
# lab: systemd
# netfix-guard.service beside ifupdown, which brings up the NIC when udev reports it, and recreates no VLAN.
# shellcheck source=tests/vm/ifupdown.sh
. "$LAB_REPO/tests/vm/ifupdown.sh"
# shellcheck source=tests/vm/guard.sh
. "$LAB_REPO/tests/vm/guard.sh"

gateway_node
systemctl start systemd-udevd.service
ifupdown_start
three_pods "$VLAN"
guard_unit --manager-wait "$GRACE"
all_answer
{ facts && owners; } >"$WORK/facts"
expect_exit 0 nf snapshot
guard_unit_start

step "the driver is reloaded"
reload_driver
one_restore
as_before "the driver is reloaded"

step "networking.service is restarted: whatever that takes away is back in the end"
guard_forgets
systemctl restart networking.service
sleep 20
wait_for 240 "the end of its window" eval "[ ! -e $STATE/window.json ]"
as_before "a restart of networking.service"
guard_unit_stop
