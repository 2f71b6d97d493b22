#!/usr/bin/env bash
# lab: systemd
# Which units are paused, how they are held, and that whatever they were like before they are again: pause, resume and a
# deadline that nobody comes before.
# shellcheck source=tests/vm/window.sh
. "$LAB_REPO/tests/vm/window.sh"

# unit FILE COMMAND: it runs, and is the one that everything here is about.
unit() {
    kubelet_unit "$1" "$2"
    KUBELET=${1##*/}
    systemctl start "$KUBELET"
    wait_for 10 "$KUBELET" kubelet_runs
}
no_unit() {
    systemctl stop "$KUBELET" || :
    rm "$1"
    systemctl daemon-reload
    systemctl reset-failed
}
main_pid() { systemctl show -P MainPID "$KUBELET"; }

# pause_and_resume STOPPED: held meanwhile, even against a start by hand; then it runs again and nothing is left.
pause_and_resume() {
    local pid
    pid=$(main_pid)
    expect_exit 0 nf pause --deadline 10m
    kubelet_is "masked $1" || fail "$KUBELET is not held: $(systemctl show -P LoadState -P ActiveState "$KUBELET")"
    ! systemctl start "$KUBELET" 2>/dev/null || fail "$KUBELET could be started"
    [ "$(systemctl show -P ActiveState "$(window -r .hold.timer)")" = active ] || fail "there is no deadline"
    masked_until_reboot
    expect_exit 4 "$NETFIX" --state-dir "$STATE" pause
    said 'window-open|already'
    expect_exit 0 nf resume
    kubelet_runs || fail "$KUBELET does not run again"
    [ "$(main_pid)" != "$pid" ] || fail "$KUBELET was never stopped"
    nothing_left
    recorded '.command == "pause" and .exit == 0 and .closed_by == "resume" and .hold.resumed > .hold.paused'
}

# left_as_it_is: neither an upgrade nor a pause changes a unit that does not run.
left_as_it_is() {
    local before
    before=$(state)
    expect_exit 0 nf pause
    upgrade 0 -- "$RELOAD"
    expect_exit 0 nf resume
    [ "$(state)" = "$before" ] || fail "it was: $before; it is: $(state)"
    [ ! -e "$STATE/window.json" ] || fail "a window is open"
    wait_for 10 "netfix's units to go" no_units
}
state() { systemctl show -P LoadState -P ActiveState -P UnitFileState -P InvocationID "$KUBELET" | xargs; masks; }

plain_node
before_window

step "a packaged unit"
unit /usr/lib/systemd/system/kubelet.service '/bin/sleep infinity'
pause_and_resume inactive

step "the deadline starts it, and what is left is tidied by the next command"
expect_exit 0 nf pause --deadline 20s
kubelet_held || fail "it is not held"
wait_for 60 "the deadline" kubelet_runs
[ -z "$(masks)" ] || fail "a mask is left"
wait_for 10 "the timer to go" no_units
expect_exit 0 nf resume
nothing_left

step "it stops so slowly that the deadline comes before: it is not paused, for nothing would start it again"
no_unit /usr/lib/systemd/system/kubelet.service
unit /usr/lib/systemd/system/kubelet.service '/bin/bash -c "trap \"sleep 10; exit\" TERM; while :; do sleep 0.1; done"'
expect_exit 4 "$NETFIX" --state-dir "$STATE" pause --deadline 5s
said 'the deadline came before kubelet.service was stopped'
wait_for 60 "$KUBELET" kubelet_runs
nothing_left
no_unit /usr/lib/systemd/system/kubelet.service
unit /usr/lib/systemd/system/kubelet.service '/bin/sleep infinity'

step "it does not run: left as it is"
systemctl stop "$KUBELET"
left_as_it_is

step "it does not run and somebody else has masked it: left as it is"
systemctl mask -q --runtime "$KUBELET"
left_as_it_is
systemctl unmask -q --runtime "$KUBELET"
no_unit /usr/lib/systemd/system/kubelet.service

step "a unit in /etc, as k3s installs it, where a mask in /run/systemd/system is hidden; it fails when it is stopped"
unit /etc/systemd/system/k3s.service '/bin/bash -c "trap \"exit 1\" TERM; while :; do sleep 0.1; done"'
pause_and_resume failed
upgrade 0 -- "$RELOAD"
nothing_left
no_unit /etc/systemd/system/k3s.service

step "a unit of another name"
unit /run/systemd/system/our-kubelet.service '/bin/sleep infinity'
expect_exit 0 nf pause
kubelet_runs || fail "a unit was paused that nobody has named"
upgrade 0 --unit our-kubelet -- "systemctl show -P LoadState -P ActiveState $KUBELET | xargs >$WORK/during; $RELOAD"
diff <(echo masked inactive) "$WORK/during"
nothing_left

step "every window has put the network back"
capture "$WORK/after"
same "$WORK/before" "$WORK/after"
all_answer
