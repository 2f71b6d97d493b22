# The maintenance window, from the pause to the rebuild check, under systemd.
# shellcheck shell=bash
# shellcheck source=tests/vm/kubernetes.sh
. "$LAB_REPO/tests/vm/kubernetes.sh"

RELOAD="modprobe -r $DRIVER; sleep 3; modprobe $DRIVER"

# plain_node: pods without a runtime, for tests without recreated pods.
plain_node() {
    standard_node
    gw_hide
    # shellcheck disable=SC2317 # These replace other functions.
    identities() { local pod; for pod in "${PODS[@]}"; do echo "$pod $(ip netns pids "$pod")"; done; }
    # shellcheck disable=SC2317
    rounds_later() { :; }
}

# plain_kubelet: a kubelet that does nothing.
plain_kubelet() {
    kubelet_unit /usr/lib/systemd/system/$KUBELET '/bin/sleep infinity'
    systemctl start $KUBELET
}

before_window() {
    all_answer
    capture "$WORK/before"
    identities >"$WORK/identities"
}

# upgrade CODE[|CODE] [OPTION...] -- COMMAND, for a shell. $SETTLE: how long it watches kubelet at the end.
upgrade() {
    local code=$1
    shift
    expect_exit "$code" nf upgrade --yes --watch "${SETTLE:-5s}" "${@:1:$#-1}" bash -c "${*: -1}"
}

# window JQ...: of the open window; record JQ...: of the last closed one.
window() { jq "$@" "$STATE/window.json"; }
record() { jq "$@" "$(printf '%s\n' "$STATE"/windows/*.json | tail -n 1)"; }
recorded() { record -e "$@" >/dev/null || fail "the record does not match: $* -- $(record -c .)"; }

kubelet_is() { [ "$(systemctl show -P ActiveState -P LoadState $KUBELET | xargs)" = "$1" ] || return 1; }
kubelet_runs() { kubelet_is "loaded active"; }

# masks: every link that masks kubelet.
masks() { find /etc/systemd /usr/lib/systemd/system /run/systemd -name "$KUBELET" -lname /dev/null; }

# nothing_left: nothing of a closed window is left in systemd and on the disk.
nothing_left() {
    kubelet_runs || fail "kubelet is $(systemctl show -P ActiveState -P LoadState $KUBELET | xargs)"
    [ -z "$(masks)" ] || fail "a mask is left: $(masks)"
    wait_for 10 "netfix's units to go" no_units
    [ ! -e "$STATE/window.json" ] || fail "a window is open: $(window -c .)"
    # A log stays there if the disk has no space for it.
    # The directory itself stays where it is the guard's.
    local left
    left=$(find /run/netfix -mindepth 1 2>/dev/null || :)
    [ -z "$left" ] || [[ $(record -r .log) == /run/netfix/* ]] || fail "left in /run/netfix: $left"
}
no_units() { [ -z "$(systemctl list-units --all --plain --no-legend 'netfix-*')" ]; }

# untouched: every pod is the one from before the window, with its former network.
untouched() {
    step "no pod was rebuilt, and every pod has its whole network"
    rounds_later 2
    identities | diff "$WORK/identities" - || fail "a pod was rebuilt"
    capture "$WORK/after"
    same "$WORK/before" "$WORK/after"
    all_answer
    nothing_left
}

# ---- netfix is killed, and no person acts

DEADLINE=45

in_phase() { [ "$(window -r '.phases[-1] | select(.to == null) | .name' 2>/dev/null)" = "$1" ]; }

# killed_in PHASE COMMAND [OPTION...]: begins a window, and kills netfix in this phase.
killed_in() {
    local phase=$1 command=$2
    step "netfix is killed in the phase $phase"
    before_window
    nf upgrade --yes --deadline ${DEADLINE}s "${@:3}" -- bash -c "$command" >"$OUT" 2>&1 &
    local client=$!
    wait_for 60 "the phase $phase" in_phase "$phase"
    systemctl kill --kill-whom=main --signal=KILL netfix-upgrade.service
    ! wait $client || fail "the client of a killed netfix ended with 0"
    [ -e "$STATE/window.json" ] || fail "the window is closed"
}

# until_deadline: waits until kubelet has checked its pods again.
until_deadline() {
    wait_for $((2 * DEADLINE + 60)) "kubelet to start at the deadline" kubelet_runs
    rounds_later 3
    identities | diff "$WORK/identities" - || fail "a pod was rebuilt"
    capture "$WORK/after"
    same "$WORK/before" "$WORK/after"
    all_answer
    step "resume closes the window"
    expect_exit '0|5' nf resume
    identities | diff "$WORK/identities" - || fail "a pod was rebuilt"
    nothing_left
}
