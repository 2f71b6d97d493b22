#!/usr/bin/env bash
# A host without pods: its NIC and all on it come back by restore and in a window, and a NIC that stays away is never called well.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"

back() {
    capture "$WORK/after"
    same "$WORK/before" "$WORK/after" host
}

vlan_node
gw_hide
ip link set "$NIC" txqueuelen 2000
ip addr add 192.0.2.2/24 dev "$NIC"
ip route add default via 192.0.2.1 dev "$NIC" metric 100
# Without an address: it is lost all the same.
ip link add link "$NIC.3" name mv0 address 0a:00:00:00:03:77 type macvlan mode bridge
ip link set mv0 up
capture "$WORK/before"
RELOAD='modprobe -r e1000e; modprobe e1000e'
expect_exit 0 nf snapshot
expect_exit 0 nf check

step "the driver is reloaded: the loss is told, and restored"
reload_driver
expect_exit 2 nf check
expect_exit 3 nf diff
printed '\+ macvlan mv0'
expect_exit 0 nf restore --nic-wait 60s
printed '^host restored in '
back
expect_exit 0 nf restore
printed 'the host is correct'
expect_exit 0 nf snapshot
expect_exit 0 nf check

step "a window without pods"
expect_exit 0 nf upgrade --dry-run -- bash -c "$RELOAD"
printed "$NIC \\(e1000e\\): 2 links, "
expect_exit 0 nf upgrade --foreground --yes --watch 2s -- bash -c "$RELOAD"
printed 'All well'
back

step "a window after which the NIC stays away"
expect_exit 5 nf upgrade --foreground --yes --nic-wait 2s --watch 1s -- modprobe -r e1000e
printed "Host affected"
! grep -q 'All well' "$OUT" || fail "well without the NIC"
expect_exit 2 nf check
expect_exit '1|5' nf snapshot
expect_exit 2 nf check
modprobe e1000e
expect_exit 0 nf restore --nic-wait 60s
back
