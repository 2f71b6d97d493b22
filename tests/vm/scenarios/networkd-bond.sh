#!/usr/bin/env bash
# lab: systemd
# systemd-networkd owns a bond, its port and the VLAN on it, with a lease. The bond outlives the reload, and networkd gives it
# its port back.
# shellcheck source=tests/vm/networkd.sh
. "$LAB_REPO/tests/vm/networkd.sh"

gateway_node
over_bond
udev_start
unit 05-bond.netdev '[NetDev]' Name=bond4 Kind=bond MACAddress=0a:00:00:00:04:01 '[Bond]' Mode=active-backup MIIMonitorSec=100ms
unit 10-nic.network '[Match]' Name="$NIC" '[Network]' Bond=bond4
unit 15-bond.network '[Match]' Name=bond4 '[Network]' Address=192.0.2.2/24 VLAN="$VLAN" IPv6AcceptRA=no
vlan_unit
networkd_start
three_pods "$VLAN"
MADE_BY_OWNER=1 race

step "the bond is gone too: networkd makes only links that are missing when it starts, so netfix makes them and names their owner"
unload_driver
ip link delete bond4
load_driver
expect_exit 0 nf restore -o json --nic-wait 60s --manager-wait 2s
problem managed-link bond4 systemd-networkd
problem managed-link "$VLAN" systemd-networkd
all_answer
