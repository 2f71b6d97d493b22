#!/usr/bin/env bash
# lab: systemd
# udev renames the NIC once the driver has made it, as on every distribution with predictable names: netfix waits until
# that is over, for udev cannot rename a NIC that is up.
# shellcheck source=tests/vm/managers.sh
. "$LAB_REPO/tests/vm/managers.sh"

# What rename_nic adds.
LINK_FILE=/run/systemd/network/10-lan0.link

tidy() {
    rm -f "$LINK_FILE"
    udev_stop
}

# rename_nic: as a distribution does it at boot.
rename_nic() {
    mkdir -p "${LINK_FILE%/*}"
    printf '%s\n' '[Match]' Driver=e1000e '[Link]' Name=lan0 >"$LINK_FILE"
    systemctl start systemd-udevd.service
    ip link set "$NIC" down
    udevadm trigger --action=add /sys/class/net/*
    udevadm settle
    NIC=lan0
    [ -e "/sys/class/net/$NIC" ] || fail "udev did not rename the NIC"
}

has_ifindex() { grep -qx "$1" /sys/class/net/*/ifindex; }

# owners: by which file udev has named the NIC.
owners() { udevadm info -q property "/sys/class/net/$NIC" | grep -E '^(INTERFACE|ID_NET_LINK_FILE)='; }

rename_nic
standard_node
before_loss
race
udevadm settle
restored

step "udev is behind: what it has of the former NIC with the ifindex is not taken for what it has of the new one"
INDEX=$(cat "/sys/class/net/$NIC/ifindex")
udevadm control --stop-exec-queue
reload_driver
[ -e "/run/udev/data/n$INDEX" ] || fail "udev has no entry of the former NIC"
# Longer than netfix waits for another program that renames NICs.
{ wait_for 30 "the ifindex" has_ifindex "$INDEX" && sleep 4 && udevadm control --start-exec-queue; } &
expect_exit 0 nf restore --nic-wait 60s
udevadm settle
[ "$(cat "/sys/class/net/$NIC/ifindex")" = "$INDEX" ] || fail "$(ip -br link)"
restored

step "udev is not there to rename it: netfix reports how to get the name back"
udev_stop
reload_driver
expect_exit 0 nf restore --nic-wait 60s
printed 'lan0: is now named eth0.*ip link set eth0 name lan0'
expect_exit 3 nf diff
printed "the host's lan0 has another name"
NIC=eth0
nic_up
all_answer
ip link set eth0 down
ip link set eth0 name lan0
NIC=lan0
expect_exit 0 nf restore --nic-wait 60s
restored
