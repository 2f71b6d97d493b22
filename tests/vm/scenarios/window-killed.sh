#!/usr/bin/env bash
# lab: systemd
# netfix is killed before the pods have their network back: kubelet comes back by the deadline, and whatever is called
# next ends in the right state.
# shellcheck source=tests/vm/window.sh
. "$LAB_REPO/tests/vm/window.sh"

plain_node
plain_kubelet
before_window

killed pause --deadline 25s
back_by_deadline
! reloaded || fail "the command was run"
upgrade 0 -- "$RELOAD"
untouched

killed command --deadline 10m
expect_exit 4 "$NETFIX" --state-dir "$STATE" upgrade --yes -o json -- touch "$WORK/was-run"
problem window-open 'still runs'
[ ! -e "$WORK/was-run" ] || fail "two commands ran at once"
touch "$WORK/go"
wait_for 60 "the command to end by itself" reloaded
pods_dead
kubelet_held || fail "kubelet runs while no pod has a network"
upgrade 0 -- true
recorded '.pods | all(.state == "restored" and .rebuilt == false)'
untouched

killed command --deadline 25s
touch "$WORK/go"
wait_for 60 "the command to end by itself" reloaded
expect_exit 0 nf restore --wait 60s
back_by_deadline
expect_exit 0 nf resume
untouched

killed restore --deadline 10m
expect_exit 0 nf restore --wait 60s
kubelet_held || fail "a restore has started kubelet"
expect_exit 0 nf resume
untouched
