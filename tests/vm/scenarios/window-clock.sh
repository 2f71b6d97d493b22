#!/usr/bin/env bash
# lab: systemd
# The clock is set by an hour while the user's command runs: the deadline and all durations stay correct.
# shellcheck source=tests/vm/window.sh
. "$LAB_REPO/tests/vm/window.sh"

plain_node
plain_kubelet
before_window

for by in +1 -1; do
    step "the clock is set by $by hour"
    upgrade 0 --deadline 10m -- "date -s '$by hour'; sleep 2; systemctl show -P LoadState -P ActiveState $KUBELET | xargs >$WORK/during; $RELOAD"
    diff <(echo masked inactive) "$WORK/during" || fail "the deadline has come"
    recorded '.ended < 600000 and ([.phases[].to] | max) <= .ended and (.phases | all(.from <= .to))'
    recorded '[.phases[].from] == ([.phases[].from] | sort)'
    recorded '.pods | all(.answered - .lost | . >= 3000 and . < 600000)'
    recorded '.hold | .armed <= .paused and .paused + 5000 <= .resumed and .resumed < 600000'
    untouched
done

step "the deadline is on time, although the clock was set"
for by in -1 +1; do
    begun=$(cut -d. -f1 /proc/uptime)
    expect_exit 0 nf pause --deadline 25s
    date -s "$by hour"
    until kubelet_runs; do sleep 0.5; done
    took=$(($(cut -d. -f1 /proc/uptime) - begun))
    ((took >= 25 && took < 120)) || fail "the deadline of 25 s came after $took s"
    expect_exit 0 nf resume
    nothing_left
done
