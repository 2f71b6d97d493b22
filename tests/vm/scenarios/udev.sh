#!/usr/bin/env bash
# lab: systemd
# udev renames the NIC once the driver has made it, as on every distribution with predictable names: netfix waits until
# that is over, for udev cannot rename a NIC that is up.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"

ROUNDS=10
# What rename_nic adds.
LINK_FILE=/run/systemd/network/10-lan0.link

tidy() {
    rm -f "$LINK_FILE"
    systemctl stop systemd-udevd.service systemd-udevd-control.socket systemd-udevd-kernel.socket
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

# reload_beside COMMAND...: netfix waits while the driver makes the NIC.
reload_beside() {
    local waiting
    unload_driver
    pods_dead
    nf restore --wait 60s >"$OUT" 2>"$OUT.err" &
    waiting=$!
    sleep 1
    "$@"
    wait "$waiting" || fail "netfix restore: exit code $?: $(cat "$OUT" "$OUT.err")"
    udevadm settle
    [ -e "/sys/class/net/$NIC" ] || fail "the NIC is not $NIC again: $(ip -br link; cat "$OUT" "$OUT.err")"
}

rename_nic
standard_node
before_loss
for ((round = 1; round <= ROUNDS; round++)); do
    probe=(modprobe e1000e)
    ((round % 2)) || probe+=(async_probe)
    step "round $round: ${probe[*]}"
    reload_beside "${probe[@]}"
done
restored

step "udev is not there to rename it: netfix says how to get the name back"
systemctl stop systemd-udevd.service systemd-udevd-control.socket systemd-udevd-kernel.socket
reload_driver
expect_exit 0 nf restore --wait 60s
said 'lan0: is now named eth0.*ip link set eth0 name lan0'
expect_exit 3 nf diff
said "the host's lan0 has another name"
NIC=eth0
nic_up
all_answer
ip link set eth0 down
ip link set eth0 name lan0
NIC=lan0
expect_exit 0 nf restore
restored
