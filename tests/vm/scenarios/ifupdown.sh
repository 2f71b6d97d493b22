#!/usr/bin/env bash
# lab: systemd
# ifupdown brings up an allow-hotplug NIC when udev reports it, and recreates no VLAN.
# shellcheck source=tests/vm/ifupdown.sh
. "$LAB_REPO/tests/vm/ifupdown.sh"

gateway_node
systemctl start systemd-udevd.service
ifupdown_start
three_pods "$VLAN"
race
