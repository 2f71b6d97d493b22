# systemd-networkd as the owner of host links.
# shellcheck shell=bash
# shellcheck source=tests/vm/managers.sh
. "$LAB_REPO/tests/vm/managers.sh"

FILES=/run/systemd/network

tidy() {
    systemctl stop systemd-networkd.socket systemd-networkd.service
    udev_stop
    rm -rf "$FILES" /run/systemd/netif
    systemctl reset-failed
}

# unit NAME LINE...: a file of networkd.
unit() {
    mkdir -p "$FILES"
    printf '%s\n' "${@:2}" >"$FILES/$1"
}

# vlan_unit: $VLAN with a lease and an IPv6 address.
vlan_unit() {
    unit 20-vlan.netdev '[NetDev]' Name="$VLAN" Kind=vlan '[VLAN]' Id=3
    unit 30-vlan.network '[Match]' Name="$VLAN" '[Network]' DHCP=ipv4 Address=fd00:3::2/64 IPv6AcceptRA=no
}

networkd_start() {
    systemctl start systemd-networkd.service
    wait_for 30 "networkd to configure $VLAN" is_configured "$VLAN"
}
is_configured() { networkctl list --no-legend --no-pager 2>/dev/null | awk '{print $2, $5}' | grep -qx "$1 configured"; }

# owners: also the lease that networkd has for the link that exists now.
owners() {
    networkctl list --no-legend --no-pager | awk '$2 ~ /^(eth0|bond4)/ {print $2, $5}' | sort || :
    grep -h '^ADDRESS=' "/run/systemd/netif/leases/$(cat "/sys/class/net/$VLAN/ifindex")" 2>/dev/null || echo "no lease"
}
