# ifupdown of Debian as the owner of the NIC and of the VLAN on it.
# shellcheck shell=bash
# shellcheck source=tests/vm/managers.sh
. "$LAB_REPO/tests/vm/managers.sh"

tidy() {
    systemctl stop 'ifup@*' networking.service ifupdown-pre.service
    udev_stop
    # Without it the hook of udev brings up the NIC of the next scenario too.
    rm -rf /run/network /etc/network/interfaces
    systemctl reset-failed
}

ifupdown_start() {
    unpack_managers
    # The packages bring a second manager.
    rm -f /etc/network/interfaces.d/*
    cat >/etc/network/interfaces <<END
allow-hotplug $NIC
iface $NIC inet static
    address 192.0.2.2/24
    up ip route add 198.51.100.0/24 via 192.0.2.1

auto $VLAN
iface $VLAN inet static
    address 10.3.0.2/24
iface $VLAN inet6 static
    address fd00:3::2/64
END
    mkdir -p /run/network
    udevadm control --reload
    udevadm trigger --action=add "/sys/class/net/$NIC"
    udevadm settle
    wait_for 30 "ifupdown to bring up $NIC" systemctl -q is-active "ifup@$NIC.service"
    systemctl start networking.service
    [ -e "/sys/class/net/$VLAN" ] || fail "ifupdown did not make $VLAN"
}

# owners: ifupdown forgets the VLANs of a device that vanishes, whoever makes them again.
owners() {
    ifquery --state "$NIC" || :
    systemctl is-active "ifup@$NIC.service" || :
}
