# NetworkManager as the owner of host links.
# shellcheck shell=bash
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
profile() {
    mkdir -p "$PROFILES"
    printf '%s\n' "${@:2}" >"$PROFILES/$1.nmconnection"
    chmod 600 "$PROFILES/$1.nmconnection"
}

# vlan_profile PARENT: $VLAN with a lease and an IPv6 address.
vlan_profile() {
    profile vlan '[connection]' id=vlan uuid=22222222-2222-4222-8222-222222222222 type=vlan interface-name="$VLAN" \
        '[vlan]' id=3 parent="$1" flags=1 '[ipv4]' method=auto '[ipv6]' method=manual address1=fd00:3::2/64
}

# network_manager_start N: with N profiles that it activates.
network_manager_start() {
    unpack_managers
    mkdir -p /var/lib/NetworkManager
    printf '%s\n' '[main]' plugins=keyfile 'no-auto-default=*' '[keyfile]' \
        'unmanaged-devices=*,except:interface-name:eth0*,except:interface-name:bond4*' >/etc/NetworkManager/NetworkManager.conf
    udevadm control --reload
    systemctl start NetworkManager.service
    wait_for 60 "NetworkManager to activate its profiles" is_active "$1"
}
is_active() { [ "$(nmcli -t -f DEVICE,STATE device | grep -cE '^(eth0|bond4).*:connected$')" = "$1" ]; }

# owners: also the lease that NetworkManager has.
owners() {
    nmcli -t -f DEVICE,STATE,CONNECTION device 2>/dev/null | grep -E '^(eth0|bond4)' | sort
    nmcli -f DHCP4 device show "$VLAN" 2>/dev/null | grep -o ' ip_address = .*' || echo "no lease"
}
