#!/usr/bin/env bash
# lab: netdevsim
# Parameters of a device come back once for all its ports. What only a person brings back is named before the loss and after it: a
# parameter that the driver takes when it starts, the embedded switch with its representors, options of single VLANs.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"
# shellcheck source=tests/vm/nic.sh
. "$LAB_REPO/tests/vm/nic.sh"

DEVICE=netdevsim/netdevsim1
SELECT=()
tidy() { ip link del br0; }

# parameter NAME: its value. parameter NAME VALUE MODE: sets it.
parameter() {
    if [ $# = 1 ]; then
        devlink -j dev param show $DEVICE name "$1" | jq -r '.param[][].values[].value'
    else
        devlink dev param set $DEVICE name "$1" value "$2" cmode "$3"
    fi
}

# ports: the names of its network devices.
ports() { ls /sys/bus/netdevsim/devices/netdevsim1/net; }

up() {
    local port
    for port in $(ports); do ip link set "$port" up; done
}

switchdev() {
    devlink dev eswitch set $DEVICE mode switchdev
    wait_for 5 "the representors" test "$(ports | wc -l)" = 4
    up
}

reload() {
    forget 1
    NIC=$(simulated 1 2 4)
}

NIC=$(simulated 1 2 4)
OTHER=$(ports | tail -n 1)
[ "$OTHER" != "$NIC" ] || fail "one port"
parameter max_macs 64 driverinit
devlink dev reload $DEVICE
parameter work 20 runtime
up
ethtool -G "$NIC" rx 512
pod_ns pod1
pod_link pod1 "$NIC" 0a:00:00:00:03:11
pod_net pod1 10.3.0.11/24 10.3.0.1
expect_exit 0 nf snapshot

step "the driver of the device was loaded again, with a value that it takes when it starts"
reload
parameter max_macs 64 driverinit
devlink dev reload $DEVICE
expect_exit 3 nf diff
settings "$NIC rings rx = 512 \(now [0-9]+\)" "$NIC devlink work = 20 \(now 0\)"
[ "$(grep -c 'devlink work' "$OUT")" = 1 ] || fail "a parameter of the device for each port"
expect_exit 0 nf restore --nic-wait 20s
[ "$(parameter work)" = 20 ] || fail "work: $(parameter work)"
no_step

step "a person changes it: that stays"
expect_exit 0 nf snapshot
parameter work 30 runtime
expect_exit 0 nf restore
[ "$(parameter work)" = 30 ] || fail "work: $(parameter work)"
parameter work 40 runtime
expect_exit 0 nf snapshot

step "without that value the driver refuses the parameter"
reload
expect_exit '5|1' nf restore --nic-wait 20s -o json
problem setting-refused "$NIC" devlink work 40 0 ERANGE
problem setting-differs "$NIC" devlink_init max_macs 64 32
[ "$(jq '[.problems[] | select(.severity == "error")] | length' "$OUT")" = 2 ] || fail "$(jq -c .problems "$OUT")"
[ "$(parameter max_macs)" = 32 ] || fail "max_macs: $(parameter max_macs)"
parameter max_macs 64 driverinit
devlink dev reload $DEVICE
expect_exit 0 nf restore --nic-wait 20s
[ "$(parameter work)" = 40 ] || fail "work: $(parameter work)"
no_step

step "the embedded switch and options of VLANs are named before the loss"
echo 2 >/sys/bus/netdevsim/devices/netdevsim1/sriov_numvfs
switchdev
ip link add br0 up type bridge vlan_filtering 1
ip link set "$OTHER" master br0
bridge vlan add dev "$OTHER" vid 10-12
bridge vlan set dev "$OTHER" vid 11 state 4
REPRESENTORS=$(ports | grep -vx -e "$NIC" -e "$OTHER" | paste -sd ' ' | sed 's/ /, /')
expect_exit 5 nf snapshot
printed "devlink eswitch mode switchdev.* of .*$NIC.*netdevsim1.* with representors $REPRESENTORS"
printed "VLAN options of $OTHER: 11 state 4"
expect_exit '1|2' nf check -v
printed 'devlink eswitch mode switchdev'

step "and after it"
reload
parameter max_macs 64 driverinit
devlink dev reload $DEVICE
expect_exit '5|1' nf restore --nic-wait 20s
printed 'devlink eswitch mode switchdev'
printed "VLAN options of $OTHER: 11 state 4"
for representor in ${REPRESENTORS//,/}; do printed "$representor: .*missing"; done
[ "$(cat /sys/bus/netdevsim/devices/netdevsim1/sriov_numvfs)" = 2 ] || fail "the number of functions"
[ "$(parameter work)" = 40 ] || fail "work: $(parameter work)"
switchdev
bridge vlan set dev "$OTHER" vid 11 state 4
expect_exit 0 nf restore
no_step
