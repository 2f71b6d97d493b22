#!/usr/bin/env bash
# lab: systemd
# NetworkManager owns a bond, its port and the VLAN on it, with a lease. The bond outlives the reload, and NetworkManager gives
# it its port back.
# shellcheck source=tests/vm/network-manager.sh
. "$LAB_REPO/tests/vm/network-manager.sh"

gateway_node
over_bond
udev_start
profile bond '[connection]' id=bond uuid=33333333-3333-4333-8333-333333333333 type=bond interface-name=bond4 \
    '[bond]' mode=active-backup miimon=100 '[ipv4]' method=manual address1=192.0.2.2/24 '[ipv6]' method=disabled
profile port '[connection]' id=port uuid=11111111-1111-4111-8111-111111111111 type=ethernet interface-name="$NIC" \
    master=bond4 slave-type=bond
vlan_profile bond4
network_manager_start 3
three_pods "$VLAN"
MADE_BY_OWNER=1 race
