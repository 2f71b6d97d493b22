#!/usr/bin/env bash
# lab: systemd
# netfix is killed in each phase, and no person acts: at the deadline the pods are back before kubelet, which would recreate
# every pod without an address, starts.
# shellcheck source=tests/vm/window.sh
. "$LAB_REPO/tests/vm/window.sh"

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

# until_deadline: waits until kubelet has looked after its pods again.
until_deadline() {
    wait_for $((2 * DEADLINE + 60)) "kubelet to start at the deadline" kubelet_runs
    rounds_later 3
    lives | diff "$WORK/lives" - || fail "a pod was rebuilt"
    capture "$WORK/after"
    same "$WORK/before" "$WORK/after"
    all_answer
    step "resume closes the window"
    expect_exit '0|5' nf resume
    lives | diff "$WORK/lives" - || fail "a pod was rebuilt"
    nothing_left
}

kubernetes_node

# The stand-in for kubelet stops between two rounds, so the phase lasts. Whether COMMAND would have run is not known.
killed_in pause true
until_deadline

killed_in command "modprobe -r e1000e; sleep 15; modprobe e1000e"
until_deadline

killed_in restore "modprobe -r e1000e; (sleep 15; modprobe e1000e) &" --wait 40s
until_deadline

# The gateway answers again before the deadline.
killed_in verify "$RELOAD; ip -n gw addr del 10.3.0.1/24 dev eth1.3" --timeout 60s
ip -n gw addr add 10.3.0.1/24 dev eth1.3
until_deadline

killed_in proof "$RELOAD" --settle 60s
until_deadline
