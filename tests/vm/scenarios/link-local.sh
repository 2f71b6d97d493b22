#!/usr/bin/env bash
# A MAC that was changed on a device that was up: its IPv6 link-local address still is the one of the old MAC.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"

standard_node
ip link set "$NIC.3" address 02:03:03:03:03:03
ip -n pod1 link set eth0 address 0a:00:00:00:03:99
# Neighbours learn it from the first packet on.
pods_answer pod1
before_loss
lost
expect_exit 0 nf restore --wait 60s
restored
