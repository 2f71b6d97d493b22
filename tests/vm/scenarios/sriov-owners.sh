#!/usr/bin/env bash
# lab: systemd igb
# udev makes virtual functions at the return of their device (systemd.link(5)), and renames them: netfix accepts its functions, gives
# them their MACs and settings, and never changes another number than 0.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"
# shellcheck source=tests/vm/nic.sh
. "$LAB_REPO/tests/vm/nic.sh"

FILES=/run/systemd/network

tidy() {
    rm -f "$FILES"/10-igb*.link
    systemctl stop systemd-udevd.service systemd-udevd-kernel.socket systemd-udevd-control.socket
}

# by_udev COUNT: so many functions come with the device, and have names of their place. NamePolicy= is off in this VM (net.ifnames=0).
by_udev() {
    mkdir -p "$FILES"
    printf '%s\n' '[Match]' Driver=igb '[Link]' NamePolicy= Name="$NIC" "SR-IOVVirtualFunctions=$1" >"$FILES/10-igb.link"
    local number
    for number in 0 1; do
        printf '%s\n' '[Match]' "Path=pci-0000:01:10.$((2 * number))" '[Link]' "Name=enp1s0v$number" >"$FILES/10-igbvf$number.link"
    done
    udevadm control --reload
}

systemctl start systemd-udevd.service
standard_node
ip -n gw addr add 203.0.113.1/24 dev eth1
by_udev 2
functions "$NIC" 2
udevadm settle
host_vf=$(function_name "$NIC" 1)
[[ $host_vf != eth* ]] || fail "udev has not renamed the function: $host_vf"
ip link set "$NIC" vf 0 mac 02:11:22:33:44:50
ip link set "$NIC" vf 0 trust on
ip link set "$NIC" vf 1 mac 02:11:22:33:44:51
for number in 0 1; do rebind "$(function_bus "$NIC" "$number")"; done
udevadm settle
wait_for 15 "the functions" function_is_there "$NIC" 1
ip link set "$host_vf" up
ip addr add 198.51.100.5/24 dev "$host_vf"
pod_ns pod4
pod_function pod4 "$NIC" 0 203.0.113.4/24
wait_for 15 "the gateway of the function" through_function pod4 203.0.113.1
capture_nics "$WORK/before" "$NIC"
expect_exit 0 nf snapshot

step "udev makes as many functions, with random MACs"
lost
expect_exit 0 nf restore --nic-wait 60s
capture_nics "$WORK/after" "$NIC"
same_nics "$WORK/before" "$WORK/after" "$NIC"
through_function pod4 203.0.113.1 || fail "the pod with the function does not reach its gateway"
[ "$(function_name "$NIC" 1)" = "$host_vf" ] || fail "the host's function has another name"

step "udev makes none: netfix does, and udev renames them"
by_udev 0
lost
expect_exit 0 nf restore --nic-wait 60s
capture_nics "$WORK/after" "$NIC"
same_nics "$WORK/before" "$WORK/after" "$NIC"
through_function pod4 203.0.113.1 || fail "the pod with the function does not reach its gateway"

step "udev makes fewer: the pod has its function back, and the host's is named"
by_udev 1
reload_driver
udevadm settle
expect_exit 5 nf restore --nic-wait 10s -o json
problem setting-differs "$NIC"
problem parent-missing "$host_vf"
through_function pod4 203.0.113.1 || fail "the pod with the function does not reach its gateway"
[ "$(cat "/sys/class/net/$NIC/device/sriov_numvfs")" = 1 ] || fail "netfix changed the number"
pods_answer pod1 pod2 pod3
