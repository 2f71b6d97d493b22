#!/usr/bin/env bash
# lab: systemd
# netfix-guard.service beside NetworkManager, which owns the NIC and its VLAN by profiles.
# shellcheck source=tests/vm/network-manager.sh
. "$LAB_REPO/tests/vm/network-manager.sh"
# shellcheck source=tests/vm/guard.sh
. "$LAB_REPO/tests/vm/guard.sh"

gateway_node
udev_start
profile nic '[connection]' id=nic uuid=11111111-1111-4111-8111-111111111111 type=ethernet interface-name="$NIC" \
    '[ipv4]' method=manual address1=192.0.2.2/24 '[ipv6]' method=disabled
vlan_profile "$NIC"
network_manager_start 2
three_pods "$VLAN"
guard_beside_owner

step "NetworkManager is restarted: nothing is lost"
systemctl restart NetworkManager.service
sleep 20
nothing_more
as_before "a restart of NetworkManager"
guard_unit_stop
