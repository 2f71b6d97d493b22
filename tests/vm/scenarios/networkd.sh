#!/usr/bin/env bash
# lab: systemd
# systemd-networkd owns the NIC and its VLAN, with a lease: it makes both again, and netfix lets it go first.
# shellcheck source=tests/vm/networkd.sh
. "$LAB_REPO/tests/vm/networkd.sh"

gateway_node
udev_start
unit 10-nic.network '[Match]' Name="$NIC" '[Network]' Address=192.0.2.2/24 VLAN="$VLAN" IPv6AcceptRA=no
vlan_unit
networkd_start
three_pods "$VLAN"
MADE_BY_OWNER=1 race

step "networkd is configured to do nothing: netfix makes the VLAN, and names its owner"
systemctl stop systemd-networkd.service
rm "$FILES/10-nic.network"
systemctl start systemd-networkd.service
unload_driver
load_driver
expect_exit 0 nf restore -o json --nic-wait 60s --manager-wait 2s
problem managed-link "$VLAN" systemd-networkd
all_answer
