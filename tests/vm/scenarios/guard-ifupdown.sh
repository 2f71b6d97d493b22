#!/usr/bin/env bash
# lab: systemd
# netfix-guard.service beside ifupdown, which brings up the NIC with a hook that adds a route, and makes no VLAN again.
# shellcheck source=tests/vm/ifupdown.sh
. "$LAB_REPO/tests/vm/ifupdown.sh"
# shellcheck source=tests/vm/guard.sh
. "$LAB_REPO/tests/vm/guard.sh"

gateway_node
systemctl start systemd-udevd.service
ifupdown_start
three_pods "$VLAN"
guard_beside_owner
guard_unit_stop
