#!/usr/bin/env bash
# lab: systemd netdevsim
# A driver that gains a port of devlink(7): udev gives the NIC another name at its second load, as for i40e and ice. A configuration of CNI
# still has the former one: that is an error of the window, with the commands that give the name back.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"
# shellcheck source=tests/vm/nic.sh
. "$LAB_REPO/tests/vm/nic.sh"

RULES=/run/udev/rules.d/80-lab.rules
NETWORK=/etc/cni/net.d/10-lab.conf
RELOAD='cd /sys/bus/netdevsim && echo 1 >del_device && echo "1 1 4" >new_device && udevadm settle'

tidy() {
    rm -f "$RULES" "$NETWORK"
    systemctl stop systemd-udevd.service systemd-udevd-control.socket systemd-udevd-kernel.socket
}

# named NAME: from its next load on.
named() {
    echo "SUBSYSTEM==\"net\", ACTION==\"add\", SUBSYSTEMS==\"netdevsim\", ATTR{phys_port_name}==\"p?\", NAME=\"$1\"" >"$RULES"
    udevadm control --reload
}
has_name() { [ "$(ls /sys/bus/netdevsim/devices/netdevsim1/net)" = "$1" ]; }

mkdir -p "${RULES%/*}" "${NETWORK%/*}"
systemctl start systemd-udevd.service
named ens1f0
echo "1 1 4" >/sys/bus/netdevsim/new_device
wait_for 20 "the NIC" has_name ens1f0
NIC=ens1f0
SELECT=()
ip link set "$NIC" up
ethtool -L "$NIC" combined 2
pod_ns pod1
pod_link pod1 "$NIC" 0a:00:00:00:03:11
pod_net pod1 10.3.0.11/24 10.3.0.1
echo '{"cniVersion": "0.4.0", "name": "lab", "type": "macvlan", "master": "ens1f0", "ipam": {"type": "host-local", "subnet": "10.3.0.0/24"}}' >"$NETWORK"
capture_nics "$WORK/before" "$NIC"

step "a window: the NIC has another name after it"
named ens1f0np1
expect_exit 5 nf upgrade --foreground --yes --runtime none --no-pause --nic-wait 20s --watch 1s -- sh -c "$RELOAD"
has_name ens1f0np1 || fail "udev has not renamed the NIC"
printed "error: device-renamed: ens1f0: is now named ens1f0np1.*but $NETWORK still names ens1f0, so new pods or its manager fail"
printed 'run .ip link set ens1f0np1 down., .ip link set ens1f0np1 name ens1f0. and .netfix restore.'
printed 'Host affected: 1 of 1 pod back'
expect_exit 0 "$NETFIX" --state-dir "$STATE" report
printed '^ens1f0 +netdevsim .*same, now named ens1f0np1'
NIC=ens1f0np1
capture "$WORK/after"
same "$WORK/before" "$WORK/after" pod1

step "the name is given back by these commands: everything is as before"
ip link set ens1f0np1 down
ip link set ens1f0np1 name ens1f0
NIC=ens1f0
expect_exit 0 nf restore --nic-wait 20s
capture_nics "$WORK/after" "$NIC"
same_nics "$WORK/before" "$WORK/after" "$NIC"
no_step

step "the same window without that configuration: the name is a warning"
rm "$NETWORK"
expect_exit 0 nf upgrade --foreground --yes --runtime none --no-pause --nic-wait 20s --watch 1s -- sh -c "$RELOAD"
printed "warning: device-renamed: ens1f0: is now named ens1f0np1"
