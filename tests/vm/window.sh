# The maintenance window, from pause to proof, under systemd.
# shellcheck shell=bash
# shellcheck source=tests/vm/kubernetes.sh
. "$LAB_REPO/tests/vm/kubernetes.sh"

RELOAD='modprobe -r e1000e; sleep 3; modprobe e1000e'
LOG=$WORK/window.log

# plain_node: pods that no runtime knows, for all that is not about pods made again.
plain_node() {
    standard_node
    gw_hide
    # shellcheck disable=SC2317 # These take the place of others.
    lives() { local pod; for pod in "${PODS[@]}"; do echo "$pod $(ip netns pids "$pod")"; done; }
    # shellcheck disable=SC2317
    rounds_later() { :; }
}

# plain_kubelet: one that does nothing.
plain_kubelet() {
    kubelet_unit /usr/lib/systemd/system/$KUBELET '/bin/sleep infinity'
    systemctl start $KUBELET
}

before_window() {
    all_answer
    capture "$WORK/before"
    lives >"$WORK/lives"
}

# upgrade CODE[|CODE] [OPTION...] -- COMMAND, for a shell. $SETTLE: how long it watches kubelet in the end.
upgrade() {
    local code=$1
    shift
    expect_exit "$code" nf upgrade --yes --settle "${SETTLE:-5s}" "${@:1:$#-1}" bash -c "${*: -1}"
}

# in_background [OPTION...] -- COMMAND: the same, with what it says in $LOG; its exit code by exit_of_window.
in_background() {
    "$NETFIX" --state-dir "$STATE" upgrade --yes --settle 5s "${@:1:$#-1}" bash -c "${*: -1}" >"$LOG" 2>&1 &
    WINDOW=$!
}
exit_of_window() {
    local want=$1 got=0
    wait "$WINDOW" || got=$?
    cat "$LOG"
    [ "$got" = "$want" ] || fail "exit code $got, not $want"
}

# window JQ...: of the window that is open; record JQ...: of the last one that was closed.
window() { jq "$@" "$STATE/window.json"; }
record() { jq "$@" "$(printf '%s\n' "$STATE"/windows/*.json | tail -n 1)"; }
recorded() { record -e "$@" >/dev/null || fail "the record says something else than: $* -- $(record -c .)"; }

# phase: the one that the open window is in; nothing between two.
phase() { window -r '.phases[-1] | select(.to == null) | .name' 2>/dev/null; }

# kill_in PHASE: netfix, without any chance to clean up, once the phase has begun. Looked for without starting a process:
# some phases are over in the time that jq takes.
kill_in() {
    local text='' pid
    until [[ $text == *"\"name\": \"$1\""* ]]; do
        [ ! -e "$STATE/window.json" ] || read -r -d '' text 2>/dev/null <"$STATE/window.json" || :
        kill -0 "$WINDOW" || fail "the window ended before its phase $1: $(cat "$LOG")"
    done
    [[ $text =~ \"pid\":\ ([0-9]+) ]]
    pid=${BASH_REMATCH[1]}
    kill -9 "$pid"
    wait_for 10 "pid $pid to end" ended "$pid"
    [ "$(phase)" = "$1" ] || fail "killed in '$(phase)', not in $1"
}
ended() { [ ! -e "/proc/$1" ]; }

kubelet_is() { [ "$(systemctl show -P ActiveState -P LoadState $KUBELET | xargs)" = "$1" ] || return 1; }
kubelet_runs() { kubelet_is "loaded active"; }
kubelet_held() { kubelet_is "masked inactive"; }

# masks: every link that masks kubelet.
masks() { find /etc/systemd /usr/lib/systemd/system /run/systemd -name "$KUBELET" -lname /dev/null; }

masked_until_reboot() { ! masks | grep -v ^/run/ || fail "a mask outlives a reboot"; }

# nothing_left: of a window, in systemd and on the disk, once it is over.
nothing_left() {
    kubelet_runs || fail "kubelet is $(systemctl show -P ActiveState -P LoadState $KUBELET | xargs)"
    [ -z "$(masks)" ] || fail "a mask is left: $(masks)"
    wait_for 10 "netfix's units to go" no_units
    [ ! -e "$STATE/window.json" ] || fail "a window is open: $(window -c .)"
    # A log stays there where the disk has no room for it.
    [ ! -e /run/netfix ] || [[ $(record -r .log) == /run/netfix/* ]] || fail "left in /run/netfix: $(find /run/netfix)"
}
no_units() { [ -z "$(systemctl list-units --all --plain --no-legend 'netfix-*')" ]; }

# untouched: no pod is another than before the window, and neither is any network.
untouched() {
    step "the pods are the ones from before, with their whole network"
    rounds_later 2
    lives | diff "$WORK/lives" - || fail "a pod was made again"
    capture "$WORK/after"
    same "$WORK/before" "$WORK/after"
    all_answer
    nothing_left
}

# killed PHASE [OPTION...]: a window with a real reload, which goes to its end by itself; where netfix is killed beside it,
# it begins when $WORK/go is there.
killed() {
    local phase=$1
    shift
    step "killed in the phase $phase"
    rm -f "$WORK/reloaded" "$WORK/go"
    [ "$phase" = command ] || touch "$WORK/go"
    in_background "$@" -- "until [ -e $WORK/go ]; do sleep 0.1; done; $RELOAD; touch $WORK/reloaded"
    [ "$phase" != command ] || wait_for 120 "the command to run" command_runs
    kill_in "$phase"
    left_open
    masked_until_reboot
}
# left_open: whoever waits for a netfix that was killed is told what is left.
left_open() {
    exit_of_window 1
    grep -q 'ended by signal 9, and left the window open' "$LOG" || fail "it is not told that the window is open"
}
command_runs() { window -e .run.process.pid >/dev/null 2>&1; }
reloaded() { [ -e "$WORK/reloaded" ]; }

# back_by_deadline: without any other help.
back_by_deadline() {
    wait_for 120 "the deadline to start kubelet" kubelet_runs
    [ -z "$(masks)" ] || fail "a mask is left"
}
