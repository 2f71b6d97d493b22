#!/usr/bin/env bash
# lab: systemd
# The terminal goes away in the middle of a window, which goes on to its end, and can be watched from another login.
# shellcheck source=tests/vm/window.sh
. "$LAB_REPO/tests/vm/window.sh"

# terminal_lost [OPTION...]: the window is started from a terminal, which goes while the command runs.
terminal_lost() {
    local terminal watcher records
    records=$(records)
    rm -f "$WORK/going" "$WORK/gone"
    printf -v command '%q ' "$NETFIX" --state-dir "$STATE" upgrade --yes --settle 5s "$@" -- \
        bash -c "echo 'said by COMMAND'; touch $WORK/going; until [ -e $WORK/gone ]; do sleep 0.1; done; echo 'and later'; $RELOAD"
    setsid script -qfec "$command" "$WORK/typescript" </dev/null >/dev/null 2>&1 &
    terminal=$!
    wait_for 120 "the command to run" test -e "$WORK/going"
    wait_for 10 "the command's words" grep -q 'said by COMMAND' "$WORK/typescript"
    "$NETFIX" --state-dir "$STATE" status --follow >"$LOG" 2>&1 &
    watcher=$!
    kill -9 "$terminal"
    wait "$terminal" 2>/dev/null || :
    touch "$WORK/gone"
    wait "$watcher" || fail "status --follow: $(cat "$LOG")"
    cat "$LOG"
    [ "$(grep -c 'said by COMMAND$' "$LOG")" = 1 ] || fail "what was said before is not shown once"
    grep -q '^and later' "$LOG" || fail "what was said later is not shown"
    grep -q 'are proven to be the ones from before' "$LOG" || fail "it does not show the end"
    ! grep -q '^and later' "$WORK/typescript" || fail "the terminal was still there"
    [ "$(records)" = $((records + 1)) ] || fail "there is no record"
    recorded '.exit == 0 and .run.exit == 0 and (.pods | all(.state == "restored"))'
    untouched
}

records() { { find "$STATE/windows" -name "*.json" 2>/dev/null || :; } | wc -l; }

plain_node
plain_kubelet
before_window

step "as a unit"
terminal_lost

step "as a child of the terminal's shell"
terminal_lost --foreground
