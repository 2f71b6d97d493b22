#!/usr/bin/env bash
# A program holds a reference to the NIC: the unload of its driver does not end, and the kernel logs that it waits. netfix reports that
# while COMMAND hangs, ends COMMAND at its limit, and runs the rollback, which ends the program or only loads the driver.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"

RELOAD="modprobe -r $DRIVER && modprobe $DRIVER"
WAITING="unregister_netdevice: waiting for $NIC to become free"

# hold: sends to the NIC on a packet socket whose send buffer is full of frames that wait on another link. The kernel takes a reference
# to the NIC before it waits for room.
hold() {
    modprobe sch_tbf
    ip link add full0 up type dummy
    tc qdisc add dev full0 root tbf rate 8bit burst 2000 limit 1000000
    perl -MSocket -e '
        my ($full, $nic) = map { pack("S n i S C C x8", 17, 0x88b5, $_, 0, 0, 6) } @ARGV;
        socket(my $packet, 17, SOCK_RAW, 0) or die "socket: $!";
        setsockopt($packet, SOL_SOCKET, SO_SNDBUF, 1) or die "setsockopt: $!";
        while (defined(send($packet, "\xff" x 1000, MSG_DONTWAIT, $full))) {}
        $!{EAGAIN} or die "send: $!";
        send($packet, "\xff" x 100, 0, $nic);
    ' "$(cat /sys/class/net/full0/ifindex)" "$(cat "/sys/class/net/$NIC/ifindex")" &
    HOLDER=$!
    wait_for 10 "the program to wait" holder_waits
    dmesg -C
}
holder_waits() { [[ $(cat "/proc/$HOLDER/wchan") == sock_alloc* ]]; }
release() {
    kill "$HOLDER" 2>/dev/null || :
    wait "$HOLDER" || :
    ip link del full0
}

unloading() { pgrep -fx "modprobe -r $DRIVER" >"$WORK/unload"; }
logged() { dmesg | grep -qF "$WAITING"; }
followed() { grep -qF "kernel: $WAITING" "$WORK/follow"; }

# window CODE ROLLBACK RESULT: COMMAND hangs, netfix reports why while it does, and the rollback runs.
window() {
    local window follow code=0
    { nf upgrade --foreground --yes --runtime none --nic-wait 5s --watch 1s --no-rehearsal --command-timeout 30s --rollback "$2" -- \
        sh -c "$RELOAD" >"$OUT" 2>"$OUT.err" || exit $?; } &
    window=$!
    wait_for 60 "COMMAND" unloading
    { nf status --follow >"$WORK/follow" 2>&1 || exit $?; } &
    follow=$!
    wait_for 30 "the line of the kernel" logged
    wait_for 1 "its line in status --follow: $(cat "$WORK/follow")" followed
    unloading || fail "COMMAND has ended"
    [ "$(jq -r '.phases[-1].name' "$STATE/window.json")" = command ] || fail "the phase: $(jq -c .phases "$STATE/window.json")"
    grep -qF "kernel: $WAITING" "$(jq -r .log "$STATE/window.json")" || fail "the log: $(cat "$(jq -r .log "$STATE/window.json")")"
    grep -F "kernel: $WAITING" "$WORK/follow"
    wait "$window" || code=$?
    cat "$OUT" "$OUT.err"
    [ "$code" = "$1" ] || fail "exit code $code, not $1"
    code=0
    wait "$follow" || code=$?
    [ "$code" = "$1" ] || fail "status --follow: exit code $code, not $1"
    expect_exit 0 nf report
    printed "$WAITING"
    printed "COMMAND was killed after 30 s .*; $NIC was missing after COMMAND; the rollback $3"
}

standard_node
gw_hide
before_loss

step "only the driver is loaded again, which the kernel refuses as long as it unloads it: no pod is back"
hold
window 5 "modprobe $DRIVER" failed
printed "^Pods affected: 0 of 3 pods back"
printed "^error: kernel-log: $NIC: a program or the kernel holds a reference .*4 problems of the device come from that"
! grep -q "Load its driver" "$OUT" || fail "the kernel refuses that while it unloads the driver"
release
wait_for 60 "the unload" eval '! unloading'
load_driver
expect_exit 0 nf restore --nic-wait 20s
restored

step "the rollback ends the program: the pods are back"
hold
window 1 "kill $HOLDER; while pgrep -fx 'modprobe -r $DRIVER'; do sleep 0.2; done; modprobe $DRIVER" succeeded
printed "^Rolled back: 3 of 3 pods back"
release
restored
