#!/usr/bin/env bash
# lab: systemd cgroup-v1 disk
# A real kubelet around windows: a pod that crashes again and again, and one that is deleted meanwhile. Then netfix is killed while
# COMMAND runs: every command names the same next one, and resume starts no kubelet over pods without network. Beside a live
# window neither the check nor the timer's unit fails.
# shellcheck source=tests/vm/dockershim.sh
. "$LAB_REPO/tests/vm/dockershim.sh"

vlan_node
gw_hide
dockershim_node "$NIC.3"

# sandbox POD: its sandbox, running or not.
sandbox() { docker ps -aq --no-trunc --filter "name=k8s_POD_$1-"; }
# has_restarted N: a container of the pod has this number.
has_restarted() { docker ps -a --format '{{.Names}}' --filter name=k8s_app_crash- | grep -q "_$1$"; }
in_record() { recorded ".pods[] | select(.name | startswith(\"$1-\")) | $2"; }

step "a pod crashes again and again"
static_pod crash | jq '.spec.containers[0].command = ["/bin/sh", "-c", "sleep 9; exit 1"]' >"$MANIFESTS/crash.json"
wait_for 180 "its first restart" has_restarted 1
of_crash=$(sandbox crash)
all_answer

step "a window beside it: the pod is the same, with its network, and its restarts are no failure"
SETTLE=30s upgrade 0 -- "modprobe -r e1000e; sleep 14; modprobe e1000e"
printed '4 of 4 pods'
in_record crash '.rebuilt == false and .state == "restored" and (.fate == "restarted" or .fate == "ended" or .fate == "same")'
recorded '[.problems[] | select(.severity == "error")] == []'
[ "$(sandbox crash)" = "$of_crash" ] || fail "the pod was rebuilt"
all_answer
nothing_left
rm "$MANIFESTS/crash.json"
wait_for 120 "kubelet to remove it" eval '[ -z "$(docker ps -q --filter name=k8s_POD_crash-)" ]'

step "a pod is deleted while kubelet is paused: kubelet tears it down after the resume, and netfix does not work against it"
SETTLE=60s upgrade 0 -- "rm $MANIFESTS/web-2.json; $RELOAD"
printed '2 of 3 pods back.*1 gone'
in_record web-2 '.rebuilt == false and .fate == "gone" and (.unexpected | not)'
recorded '[.problems[] | select(.severity == "error")] == []'
recorded '[.problems[] | select(.code == "degraded")] == []'
[ -z "$(docker ps -q --filter name=k8s_POD_web-2-)" ] || fail "the deleted pod runs"
nothing_left
static_pod web-2 >"$MANIFESTS/web-2.json"
pods_back() { [ "$(docker ps -q --filter name=k8s_app_web- | wc -l)" = 3 ]; }
wait_for 120 "the pod again" pods_back
find_pods

install_units
STATE=/var/lib/netfix

step "beside a live window the check names it, and the unit of the timer does not fail"
before_window
nf upgrade --yes --watch 5s -- bash -c "modprobe -r e1000e; until [ -e $WORK/go ]; do sleep 0.2; done; modprobe e1000e" >"$WORK/upgrade" 2>&1 &
client=$!
wait_for 60 "the phase command" in_phase command
wait_for 60 "the NIC to go" eval "! [ -e /sys/class/net/$NIC ]"
pods_dead
expect_exit 1 nf check
printed 'a window runs: phase command'
! grep -q 'netfix restore' "$OUT" || fail "the check advises a restore"
systemctl start netfix-snapshot.service || fail "the snapshot's unit failed: $(journalctl -u netfix-snapshot.service -o cat)"
expect_exit 4 "$NETFIX" --state-dir "$STATE" resume
printed 'lock-held'
touch "$WORK/go"
wait $client || fail "the window went wrong: $(cat "$WORK/upgrade")"
untouched
[ -z "$(systemctl list-units --state=failed --plain --no-legend)" ] || fail "failed units: $(systemctl list-units --state=failed)"

DEADLINE=600
rm "$WORK/go"
killed_in command "modprobe -r e1000e; until [ -e $WORK/go ]; do sleep 0.2; done; modprobe e1000e"
wait_for 60 "the NIC to go" eval "! [ -e /sys/class/net/$NIC ]"
pid=$(window -r .run.process.pid)

# next_is WORDS: every command that speaks of the window names these.
next_is() {
    local command
    for command in status report check; do
        expect_exit '[0-9]' nf $command
        printed "$1"
    done
}

step "COMMAND still runs: it is named, and resume starts no kubelet"
next_is "pid $pid"
expect_exit 4 "$NETFIX" --state-dir "$STATE" resume
printed "$pid"
kubelet_is "masked inactive" || fail "kubelet was started"
touch "$WORK/go"
wait_for 60 "COMMAND to end" eval "! kill -0 $pid 2>/dev/null"

step "the pods have no network: restore comes first"
next_is 'netfix restore.*netfix resume'
expect_exit 4 "$NETFIX" --state-dir "$STATE" resume
printed 'netfix restore'
kubelet_is "masked inactive" || fail "kubelet was started"
expect_exit 0 nf restore --nic-wait 60s

step "the pods are back: only resume is left"
next_is 'netfix resume'
! grep -q 'netfix restore' "$OUT" || fail "the check advises a restore"
expect_exit '0|5' nf resume
untouched
