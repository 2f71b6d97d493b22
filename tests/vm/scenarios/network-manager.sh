#!/usr/bin/env bash
# lab: systemd
# NetworkManager owns the NIC and its VLAN by profiles, with a lease: both profiles are active afterwards, and the VLAN is never
# an external device, which NetworkManager would not renew leases for.
# shellcheck source=tests/vm/network-manager.sh
. "$LAB_REPO/tests/vm/network-manager.sh"

gateway_node
udev_start
profile nic '[connection]' id=nic uuid=11111111-1111-4111-8111-111111111111 type=ethernet interface-name="$NIC" \
    '[ipv4]' method=manual address1=192.0.2.2/24 '[ipv6]' method=disabled
vlan_profile "$NIC"
network_manager_start 2
three_pods "$VLAN"
MADE_BY_OWNER=1 race

step "a profile without autoconnect: netfix has NetworkManager activate it"
nmcli connection modify vlan connection.autoconnect no
restore_round "$AT_ONCE" 1
as_before "a profile without autoconnect"
! grep managed-link "$OUT" "$OUT.err" || fail "netfix made the VLAN of a profile that it can have activated"
