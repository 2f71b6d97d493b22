# netfix-guard.service, started as an administrator does, and what its records say.
# shellcheck shell=bash
# The scenario has read tests/vm/lib.sh.

# How many restores of the guard were expected so far.
DONE=0
SINCE=0

# guard_unit OPTION...: the unit watches over the pods, by the snapshot that the next line of the scenario takes.
guard_unit() {
    install_units
    STATE=/var/lib/netfix
    # Of another scenario in this machine.
    rm -rf "$STATE"
    mkdir -p /etc/default "$STATE"
    printf 'NETFIX_GUARD_OPTIONS=%s\n' "${SELECT[*]} --watch 3s --backoff ${BACKOFF:-1s} $*" >/etc/default/netfix
}
guard_unit_start() {
    SINCE=$(date +%s)
    systemctl start netfix-guard.service
    wait_for 120 "the guard" guard_said "watching: nothing"
}
guard_unit_stop() {
    systemctl stop netfix-guard.service
    [ "$(systemctl show -P Result netfix-guard.service)" = success ] || fail "the unit: $(guard_log)"
    # The journal is searched by seconds.
    sleep 1.1
}
guard_log() { journalctl -q -u netfix-guard.service -o cat --since "@$SINCE"; }
guard_said() { guard_log | grep -q -- "$1"; }
# guard_forgets: a loss after this is the first one again.
guard_forgets() {
    guard_unit_stop
    rm -f "$STATE/guard.json"
    guard_unit_start
}

# guard_beside_owner: the driver is reloaded, its owner makes the host's links again, and the guard the pods'. Needs tests/vm/managers.sh.
guard_beside_owner() {
    local round
    BACKOFF=100ms guard_unit --manager-wait "$GRACE"
    all_answer
    { facts && owners; } >"$WORK/facts"
    expect_exit 0 nf snapshot
    guard_unit_start
    for round in $(seq "${NETFIX_ROUNDS:-1}"); do
        step "round $round: the driver is reloaded"
        reload_driver
        one_restore
        as_before "round $round"
    done
}

# unplanned: how many windows of the guard are closed.
unplanned() { cat "$STATE"/windows/*.json 2>/dev/null | jq -s '[.[] | select(.kind == "unplanned" and .ended != null)] | length'; }
has_unplanned() { [ "$(unplanned)" = "$1" ] && [ ! -e "$STATE/window.json" ]; }
last_record() { printf '%s\n' "$STATE"/windows/*.json | tail -n 1; }
# one_restore: the guard restores once more.
one_restore() {
    DONE=$((DONE + 1))
    wait_for 240 "restore $DONE of the guard" has_unplanned "$DONE"
    jq -e '.exit == 0' "$(last_record)" >/dev/null || fail "the record: $(jq -c '{exit, problems, pods}' "$(last_record)")"
}
# nothing_more: it has done nothing since.
nothing_more() { has_unplanned "$DONE" || fail "$(unplanned) windows, not $DONE: $(ls "$STATE")"; }
