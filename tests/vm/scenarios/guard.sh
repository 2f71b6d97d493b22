#!/usr/bin/env bash
# `netfix guard` over a real driver: a reload, one that resets twice, a NIC that comes late or under another name, a window that is opened, a
# guard that is killed, and links that somebody deletes. The records show that it did nothing else.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"
# shellcheck source=tests/vm/guard.sh
. "$LAB_REPO/tests/vm/guard.sh"

ROUNDS=${NETFIX_ROUNDS:-1}
# After how many seconds a NIC comes back that is late.
LATE=${NETFIX_LATE:-20}
LOG=$WORK/guard.log

guard_start() {
    # Not by a function: its process would be a shell.
    "$NETFIX" --state-dir "$STATE" guard "${SELECT[@]}" --watch 3s --manager-wait 0s --backoff 1s "$@" >>"$LOG" 2>&1 &
    GUARD=$!
    wait_for 60 "the guard" said "watching: nothing"
}
guard_stop() {
    kill "$GUARD"
    wait "$GUARD" || fail "the guard ended with $?: $(cat "$LOG")"
    : >"$LOG"
}
said() { grep -q -- "$1" "$LOG"; }
# one_more: the guard has restored once more, and all is as before.
one_more() {
    one_restore
    restored
}

standard_node
before_loss
guard_start

for round in $(seq "$ROUNDS"); do
    step "round $round: the driver is reloaded"
    reload_driver
    one_more
    jq -e '.exit == 0 and .phases[0].name == "loss" and all(.pods[]; .lost != null and .answered != null)' "$(last_record)" >/dev/null ||
        fail "the record: $(jq -c . "$(last_record)")"
    # The pause between losses of which each is a new one. Only the last records are kept.
    guard_stop
    rm -r "$STATE/guard.json" "$STATE/windows"
    DONE=0
    guard_start
done

step "the NIC comes back late"
unload_driver
wait_for 60 "the wait for the NIC" said "waiting for $NIC"
sleep "$LATE"
pods_dead
nothing_more
load_driver
one_more

step "the driver resets twice"
reload_driver
wait_for 60 "the second restore" said "restoring the pods on .*$NIC"
reload_driver
wait_for 240 "the pods" answers pod3 10.3.0.1
wait_for 120 "the end of the window" eval "[ ! -e $STATE/window.json ]"
sleep 5
wait_for 120 "the end of the last window" eval "[ ! -e $STATE/window.json ]"
restored
DONE=$(unplanned)

step "the VLAN is deleted by hand: told, and not made again"
guard_stop
rm "$STATE/guard.json"
guard_start
ip link del "$NIC.3"
wait_for 60 "the report" said "link-deleted: $NIC.3"
sleep 5
nothing_more
[ ! -e "/sys/class/net/$NIC.3" ] || fail "the VLAN is back"
guard_stop
expect_exit 0 nf guard --once --also-deleted --watch 1s --manager-wait 0s
one_more

step "a window is opened: the guard leaves its loss to it"
guard_start
expect_exit 0 nf upgrade --foreground --yes --watch 2s -- bash -c "modprobe -r $DRIVER; sleep 3; modprobe $DRIVER"
wait_for 60 "the guard" said "the window of .netfix upgrade. is open"
sleep 3
nothing_more
restored

step "a window is opened while the guard restores: it waits for the guard if it may, and the loss in it is left to it"
guard_stop
rm -f "$STATE/guard.json"
guard_start
reload_driver
wait_for 60 "its window" test -e "$STATE/window.json"
expect_exit 4 nf upgrade --foreground --yes --lock-wait 0s -- true
grep -q "lock-held: .*(guard)" "$OUT.err" || fail "it does not name the guard: $(cat "$OUT.err")"
expect_exit 0 nf upgrade --foreground --yes --lock-wait 120s --watch 2s -- bash -c "modprobe -r $DRIVER; sleep 3; modprobe $DRIVER"
one_more

step "the guard is killed in the middle; the next one completes its window"
guard_stop
rm -f "$STATE/guard.json"
reload_driver
"$NETFIX" --state-dir "$STATE" guard --once "${SELECT[@]}" --watch 60s --manager-wait 0s >"$OUT" 2>&1 &
guard=$!
wait_for 60 "its window" test -e "$STATE/window.json"
kill -9 $guard
wait $guard || :
guard_start
one_more

step "the NIC comes back under another name"
guard_stop
rm "$STATE/guard.json"
guard_start
unload_driver
wait_for 60 "the wait for the NIC" said "waiting for $NIC"
# Before the guard looks again.
load_driver && ip link set "$NIC" name ens1
NIC=ens1
one_restore
all_answer
guard_stop
