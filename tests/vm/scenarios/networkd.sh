#!/usr/bin/env bash
# lab: systemd
# systemd-networkd owns the NIC and its VLAN, with a lease: it makes both again, and netfix lets it go first.
# shellcheck source=tests/vm/managers.sh
. "$LAB_REPO/tests/vm/managers.sh"

FILES=/run/systemd/network

tidy() {
    systemctl stop systemd-networkd.socket systemd-networkd.service
    udev_stop
    rm -rf "$FILES" /run/systemd/netif
    systemctl reset-failed
}

networkd_start() {
    mkdir -p "$FILES"
    printf '%s\n' '[Match]' "Name=$NIC" '[Network]' Address=192.0.2.2/24 VLAN="$VLAN" IPv6AcceptRA=no >"$FILES/10-nic.network"
    printf '%s\n' '[NetDev]' Name="$VLAN" Kind=vlan '[VLAN]' Id=3 >"$FILES/20-vlan.netdev"
    printf '%s\n' '[Match]' Name="$VLAN" '[Network]' DHCP=ipv4 Address=fd00:3::2/64 IPv6AcceptRA=no >"$FILES/30-vlan.network"
    systemctl start systemd-networkd.service
    wait_for 30 "networkd to configure $VLAN" is_configured "$VLAN"
}
is_configured() { networkctl list --no-legend --no-pager 2>/dev/null | awk '{print $2, $5}' | grep -qx "$1 configured"; }

# owners: also the lease that networkd has for the link that exists now.
owners() {
    networkctl list --no-legend --no-pager | awk '$2 ~ /^eth0/ {print $2, $5}' | sort || :
    grep -h '^ADDRESS=' "/run/systemd/netif/leases/$(cat "/sys/class/net/$VLAN/ifindex")" 2>/dev/null || echo "no lease"
}

gateway_node
udev_start
networkd_start
three_pods "$VLAN"
MADE_BY_OWNER=1 race

step "networkd is told to do nothing: netfix makes the VLAN, and names its owner"
systemctl stop systemd-networkd.service
rm "$FILES/10-nic.network"
systemctl start systemd-networkd.service
unload_driver
load_driver
expect_exit 0 nf restore -o json --wait 60s --manager-grace 2s
problem managed-link "$VLAN" systemd-networkd
all_answer
