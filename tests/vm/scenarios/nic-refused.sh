#!/usr/bin/env bash
# lab: netdevsim
# After an upgrade of its driver a NIC refuses what it had: each of these settings is named with its limit, and all others are set.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"
# shellcheck source=tests/vm/nic.sh
. "$LAB_REPO/tests/vm/nic.sh"

# `knob` has mounted it.
tidy() { umount /sys/kernel/debug; }

set_simulated() {
    ethtool -L "$NIC" combined 2
    ethtool -G "$NIC" rx 4096 tx 512
    ethtool -C "$NIC" rx-usecs 40 tx-usecs 30 rx-frames 7
    ethtool -A "$NIC" rx on tx on
    ethtool --set-fec "$NIC" encoding rs
    ethtool -K "$NIC" hw-tc-offload on
}

# reload: from now on its ring has fewer entries at most, and its driver refuses to set FEC.
reload() {
    forget 1
    NIC=$(simulated 1 1 4)
    knob 1 ring/rx_max_pending 1024
    knob 1 set_err 95
}

NIC=$(simulated 1 1 4)
ip link set "$NIC" up
set_simulated
pod_ns pod1
pod_link pod1 "$NIC" 0a:00:00:00:03:11
pod_net pod1 10.3.0.11/24 10.3.0.1
capture_nics "$WORK/before" "$NIC"
expect_exit 0 nf snapshot

step "the driver is another one"
reload
pods_dead
expect_exit 5 nf restore --nic-wait 20s -o json
problem setting-refused "$NIC" rings rx 4096 1024
problem setting-refused "$NIC" fec
[ "$(jq '[.problems[] | select(.severity == "error")] | length' "$OUT")" = 2 ] || fail "$(jq -c .problems "$OUT")"
capture_nics "$WORK/after" "$NIC"
for name in before after; do
    # Its maximum is another one now, and what was refused is the driver's own value.
    sed -i -E '/^ethtool -g: RX:/d; /FEC/d' "$WORK/$name/nic-$NIC"
done
same_nics "$WORK/before" "$WORK/after" "$NIC"

step "the same again, until the driver accepts it"
expect_exit '5|1' nf restore --nic-wait 20s
knob 1 ring/rx_max_pending 4096
knob 1 set_err 0
expect_exit 0 nf restore --nic-wait 20s
no_step
ethtool -g "$NIC" | sed '1,/Current/d' | grep -q 'RX:.*4096' || fail "$(ethtool -g "$NIC")"
ethtool --show-fec "$NIC" | grep -q 'Configured.*RS' || fail "$(ethtool --show-fec "$NIC")"

step "a window, in which the driver comes back with one queue: the pod is back, each setting is named, and no rollback runs for that"
echo 2 >"/sys/class/net/$NIC/queues/rx-1/rps_cpus"
echo 2 >"/sys/class/net/$NIC/queues/tx-1/xps_cpus"
capture_nics "$WORK/before" "$NIC"
expect_exit 5 nf upgrade --foreground --yes --runtime none --nic-wait 20s --watch 1s --rollback "touch $WORK/rolled-back" -- \
    sh -c 'cd /sys/bus/netdevsim && echo 1 >del_device && echo "1 1 1" >new_device'
[ ! -e "$WORK/rolled-back" ] || fail "the rollback ran"
printed "setting-refused: nic $NIC channels combined: was 2, is 1, at most 1"
printed "the NIC has 1 queue now, so netfix cannot restore nic $NIC queues tx-1/xps_cpus"
printed "the NIC has 1 queue now, so netfix cannot restore queues/rx-1/rps_cpus"
printed "Host affected: 1 of 1 pod back.*; 2 settings of NICs not restored"
expect_exit 0 "$NETFIX" --state-dir "$STATE" report
printed "^$NIC +channels combined +2 +1 +refused"
printed "^$NIC +queues tx-1/xps_cpus +2 +the default +refused"
capture "$WORK/after"
same "$WORK/before" "$WORK/after" pod1

step "the driver with four queues is back: everything is as before"
forget 1
NIC=$(simulated 1 1 4)
expect_exit 0 nf restore --nic-wait 20s
capture_nics "$WORK/after" "$NIC"
same_nics "$WORK/before" "$WORK/after" "$NIC"
no_step
