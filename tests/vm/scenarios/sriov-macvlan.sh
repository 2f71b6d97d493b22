#!/usr/bin/env bash
# lab: igb
# ice receives all packets of its device once virtual functions are made while no other link does, and every macvlan is refused after
# that. Here igb has functions and pods with macvlans, and a bridge does what ice does.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"
# shellcheck source=tests/vm/nic.sh
. "$LAB_REPO/tests/vm/nic.sh"

tidy() { ip link del ice0; }

# as_ice: once functions are made it tries to become the receiver, a single time.
as_ice() {
    local vfs=0 file=/sys/class/net/$NIC/device/sriov_numvfs
    until [ "$vfs" -gt 0 ]; do
        read -r vfs 2>/dev/null <"$file" || vfs=0
        sleep 0.05
    done
    if ip link set "$NIC" master ice0 2>>"$WORK/ice"; then echo receives; else echo refused; fi >"$WORK/ice-state"
}
ice_has() { [ "$(cat "$WORK/ice-state" 2>/dev/null)" = "$1" ]; }
ice_begin() {
    rm -f "$WORK/ice-state"
    ip link add ice0 type bridge
    as_ice &
}

# nf_slow COMMAND...: netfix with a pause after it has written the number of functions, so that the other one is not too late, as ice
# never is.
nf_slow() {
    local file
    file=$(readlink -f "/sys/class/net/$NIC/device")/sriov_numvfs
    strace -f --seccomp-bpf -qq -o "$WORK/strace" -P "$file" -P "${file#/sys}" -e trace=write -e inject=write:delay_exit=4000000 \
        "$NETFIX" --state-dir "$STATE" "$1" "${SELECT[@]}" "${@:2}"
}

modprobe bridge
gw_start
gw_vlan 0 10.3.0.1/24 fd00:3::1/64
nic_up
three_pods "$NIC"
functions "$NIC" 2
ip link set "$NIC" vf 0 mac 02:11:22:33:44:50
ip link set "$NIC" vf 1 mac 02:11:22:33:44:51
for number in 0 1; do rebind "$(function_bus "$NIC" "$number")"; done
wait_for 15 "the functions" function_is_there "$NIC" 1
all_answer
capture_nics "$WORK/before" "$NIC"
expect_exit 0 nf snapshot

step "a restore makes the functions while the device has a receiver"
reload_driver
modprobe igbvf
pods_dead
ice_begin
expect_exit 0 nf_slow restore --nic-wait 20s
wait_for 15 "the other receiver" ice_has refused
ip link del ice0
grep -q DELAYED "$WORK/strace" || fail "the write was not delayed: $(cat "$WORK/strace")"
all_answer
capture_nics "$WORK/after" "$NIC"
same_nics "$WORK/before" "$WORK/after" "$NIC"
no_step

step "others made the functions first: the cause is named, with the way out"
reload_driver
ice_begin
wait_for 15 "the NIC" test -e "/sys/class/net/$NIC"
functions "$NIC" 2
wait_for 15 "the other receiver" ice_has receives
expect_exit 1\|5 nf restore --nic-wait 20s
printed "eth0 takes no such link"
printed "echo 0 >/sys/class/net/eth0/device/sriov_numvfs"
pods_dead
echo 0 >"/sys/class/net/$NIC/device/sriov_numvfs"
# ice receives nothing then, either.
ip link del ice0
ice_begin
expect_exit 0 nf_slow restore --nic-wait 20s
wait_for 15 "the other receiver" ice_has refused
ip link del ice0
all_answer
capture_nics "$WORK/after" "$NIC"
same_nics "$WORK/before" "$WORK/after" "$NIC"
