#!/usr/bin/env bash
# lab: systemd
# The NIC does not come back, and kubelet is to wait for a person: who repairs it and resumes; or netfix is killed meanwhile.
# shellcheck source=tests/vm/window.sh
. "$LAB_REPO/tests/vm/window.sh"

holding() { in_background --hold --wait 1s --deadline 10m -- "modprobe -r e1000e"; }
holds() { [ "$(phase)" = hold ]; }

# repaired: by a person, while the window is open.
repaired() {
    kubelet_held || fail "kubelet does not wait"
    pods_dead
    load_driver
    expect_exit 0 nf restore --wait 60s
    kubelet_held || fail "a restore has started kubelet"
    expect_exit 0 nf resume
}

plain_node
plain_kubelet
before_window

step "a person repairs it and resumes: the window ends well"
holding
wait_for 120 "netfix to wait for a person" holds
repaired
exit_of_window 0
recorded '.exit == 0 and (.pods | all(.rebuilt == false and .answered != null))'
recorded '.hold.resumed > .hold.paused and any(.phases[]; .name == "hold" and .ok)'
untouched

step "nobody comes: the deadline starts kubelet, and no pod is called restored"
in_background --hold --wait 1s --deadline 25s -- "modprobe -r e1000e"
exit_of_window 5
kubelet_runs || fail "kubelet does not run"
recorded '.exit == 5 and (.pods | all(.state != "restored" and .answered == null))'
load_driver
expect_exit 0 nf restore --wait 60s
untouched

step "netfix is killed while it waits"
holding
kill_in hold
left_open
repaired
untouched
