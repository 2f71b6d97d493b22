#!/usr/bin/env bash
# lab: igb
# What is set on a NIC is lost with its driver, and comes back before the NIC is up: it gets its carrier once.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"
# shellcheck source=tests/vm/nic.sh
. "$LAB_REPO/tests/vm/nic.sh"

# back: everything is set again, and nothing is left to do.
back() {
    capture_nics "$WORK/after" "$NIC"
    same_nics "$WORK/before" "$WORK/after" "$NIC"
    all_answer
    no_step
}

standard_node
gw_hide
set_igb
all_answer
capture_nics "$WORK/before" "$NIC"
expect_exit 0 nf snapshot
no_step

lost
nic_state "$NIC" >"$WORK/lost"
! cmp -s "$WORK/lost" "$WORK/before/nic-$NIC" || fail "nothing is lost"
expect_exit 3 nf diff
settings "$NIC private legacy-rx = on \(.*off" "$NIC channels combined = 2 \(.*4" "$NIC rings rx = 512 \(.*256" "$NIC rings tx = 1024 \(.*256" \
    "$NIC coalesce rx-usecs = 50 \(.*3" "$NIC features rx-gro = off \(.*on" "$NIC features rx-all = on \(.*off" \
    "$NIC features tx-tcp-segmentation = off \(.*on" "$NIC pause autoneg = off \(.*on" "$NIC pause rx = off \(.*on" "$NIC pause tx = off \(.*on" \
    "$NIC link advertise = " "$NIC wol " "$NIC msglvl "
dmesg -C
expect_exit 0 nf restore --nic-wait 20s
[ "$(link_ups "$NIC")" = 1 ] || fail "the NIC got its carrier $(link_ups "$NIC") times: $(dmesg)"
back

step "the driver is reloaded, and something else sets the NIC up before the restore: one more loss of carrier"
reload_driver
nic_up
dmesg -C
expect_exit 0 nf restore --nic-wait 20s
[ "$(link_ups "$NIC")" = 1 ] || fail "the NIC got its carrier $(link_ups "$NIC") times: $(dmesg)"
back

step "what somebody changed on a NIC that was not lost is shown, and left"
expect_exit 0 nf snapshot
ethtool -G "$NIC" rx 2048
wait_for 15 "carrier on $NIC" nic_carrier
expect_exit '0|3' nf diff
settings "$NIC rings rx = 512 \(.*2048"
expect_exit 0 nf restore
ethtool -g "$NIC" | grep -q 'RX:.*2048' || fail "netfix changed the ring"

step "a window restores all of it, and its report lists each setting"
expect_exit 0 nf upgrade --foreground --yes --runtime none --nic-wait 20s --watch 1s -- bash -c "modprobe -r $DRIVER; modprobe $DRIVER"
ethtool -g "$NIC" | grep -q 'RX:.*2048' || fail "the window did not restore the ring"
expect_exit 0 "$NETFIX" --state-dir "$STATE" report
grep -qE "^settings +$NIC: [0-9]+ settings restored$" "$OUT" || fail "no number of settings"
grep -qE "^$NIC +rings rx +2048 +256 +restored$" "$OUT" || fail "no line for the ring"
grep -qE "^$NIC +features rx-gro +off +on +restored$" "$OUT" || fail "no line for the feature"
