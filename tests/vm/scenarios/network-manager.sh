#!/usr/bin/env bash
# lab: systemd
# NetworkManager owns the NIC and its VLAN by profiles, with a lease: both profiles are active afterwards, and the VLAN is never
# an external device, which NetworkManager would not renew leases for.
# shellcheck source=tests/vm/managers.sh
. "$LAB_REPO/tests/vm/managers.sh"

PROFILES=/etc/NetworkManager/system-connections

tidy() {
    systemctl stop NetworkManager.service
    udev_stop
    rm -rf "$PROFILES" /run/NetworkManager /var/lib/NetworkManager
    systemctl reset-failed
}

# profile NAME LINE...
profile() { printf '%s\n' "${@:2}" >"$PROFILES/$1.nmconnection"; chmod 600 "$PROFILES/$1.nmconnection"; }

network_manager_start() {
    unpack_managers
    mkdir -p "$PROFILES" /var/lib/NetworkManager /etc/NetworkManager/conf.d
    printf '%s\n' '[main]' plugins=keyfile 'no-auto-default=*' '[keyfile]' 'unmanaged-devices=except:interface-name:eth0*' \
        >/etc/NetworkManager/NetworkManager.conf
    profile nic '[connection]' id=nic uuid=11111111-1111-4111-8111-111111111111 type=ethernet interface-name="$NIC" \
        '[ipv4]' method=manual address1=192.0.2.2/24 '[ipv6]' method=disabled
    profile vlan '[connection]' id=vlan uuid=22222222-2222-4222-8222-222222222222 type=vlan interface-name="$VLAN" "$@" \
        '[vlan]' id=3 parent="$NIC" flags=1 '[ipv4]' method=auto '[ipv6]' method=manual address1=fd00:3::2/64
    udevadm control --reload
    systemctl start NetworkManager.service
    wait_for 60 "NetworkManager to activate its profiles" is_active
}
is_active() { [ "$(nmcli -t -f DEVICE,STATE device | grep -cx 'eth0.*:connected')" = 2 ]; }

# owners: also the lease that NetworkManager has.
owners() {
    nmcli -t -f DEVICE,STATE,CONNECTION device 2>/dev/null | grep '^eth0' | sort
    nmcli -f DHCP4 device show "$VLAN" 2>/dev/null | grep -o ' ip_address = .*' || echo "no lease"
}

gateway_node
udev_start
network_manager_start
three_pods "$VLAN"
MADE_BY_OWNER=1 race

step "a profile without autoconnect: netfix tells NetworkManager to activate it"
nmcli connection modify vlan connection.autoconnect no
restore_round "$AT_ONCE" 1
as_before "a profile without autoconnect"
! grep managed-link "$OUT" "$OUT.err" || fail "netfix made the VLAN of a profile that it can have activated"
