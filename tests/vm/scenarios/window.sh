#!/usr/bin/env bash
# lab: systemd
# A whole maintenance window around a real driver's reload, beside a kubelet that recreates pods without an address. At the
# end the same reload without netfix shows that it does.
# shellcheck source=tests/vm/window.sh
. "$LAB_REPO/tests/vm/window.sh"

# attempts_are N: every pod is in its sandbox number N, and so is its container.
attempts_are() {
    diff <(printf "%s 0 $1\n" "${WEBS[@]}") <(sandboxes name state attempt) &&
        diff <(printf "%.0sapp CONTAINER_RUNNING $1\n" "${WEBS[@]}") <(containers name state attempt)
}

kubernetes_node
attempts_are 0 || fail "these are not the first sandboxes of the pods"
before_window

step "a driver upgrade as one window"
upgrade 0 -- "
    systemctl show -P ActiveState -P LoadState $KUBELET | xargs >$WORK/during
    systemctl list-timers --all --plain --no-legend 'netfix-deadline-*' >>$WORK/during
    find /etc/systemd /usr/lib/systemd/system /run/systemd -name $KUBELET -lname /dev/null >$WORK/masks
    cat /proc/self/cgroup >$WORK/cgroup
    echo 'stdout of COMMAND'; echo 'stderr of COMMAND' >&2
    $RELOAD"
printed '^stdout of COMMAND$'
printed '^stderr of COMMAND$'
untouched

step "during the window kubelet was masked until the next boot, a timer was armed, and the window was a unit"
diff <(echo masked inactive) <(sed -n 1p "$WORK/during")
grep -q 'netfix-deadline-[0-9]*.timer' "$WORK/during" || fail "no timer: $(cat "$WORK/during")"
diff <(echo "/run/systemd/system/$KUBELET") "$WORK/masks"
grep -q /netfix-upgrade.service "$WORK/cgroup" || fail "it ran in $(cat "$WORK/cgroup")"

step "the record and the journal contain it"
recorded '.command == "upgrade" and .exit == 0 and .run.exit == 0 and .hold.unit == "'$KUBELET'"'
recorded '.hold | .armed <= .paused and .paused < .resumed'
recorded '[.phases[] | select(.ok) | .name] == ["check", "snapshot", "pause", "command", "restore", "verify", "resume", "proof"]'
recorded '[.pods[].name] | sort == ["web-0", "web-1", "web-2"]'
recorded '.pods | all(.rebuilt == false and .state == "restored" and .lives_before == .lives_after)'
recorded '.pods | all(.lives_before | .attempt == 0 and (.containers | length) == 1 and .containers[0].restarts == 0)'
recorded '.pods | all(.answered - .lost >= 3000)'
grep -q '^stdout of COMMAND$' "$(record -r .log)" || fail "the log does not contain the output of COMMAND"
for phase in pause command resume; do
    journalctl -q -o cat "PHASE=$phase" | grep -q . || fail "the journal has nothing of the phase $phase"
done

step "the report verdict is good, and its page names every pod"
expect_exit 0 "$NETFIX" --state-dir "$STATE" report --html "$WORK/report.html" -o json
jq -e '.report.computed | .verdict == "well" and .pods.back == 3 and .outages.worst_ms >= 3000' "$OUT" >/dev/null ||
    fail "the report has: $(jq -c .report.computed "$OUT")"
for text in web-0 web-1 web-2 'stdout of COMMAND' 'stderr of COMMAND'; do
    grep -q "$text" "$WORK/report.html" || fail "$text is not on the page"
done
expect_exit 0 nf report -v
for name in "${WEBS[@]}"; do printed "shop/$name"; done

step "without netfix: the NIC is configured again as a network manager does, and kubelet recreates every pod"
reload_driver
nic_up
node_vlan 3 "$NIC.3" "$NIC"
ip addr add 10.3.0.2/24 dev "$NIC.3"
wait_for 120 "every pod to be recreated" containers_run 1
attempts_are 1 || fail "not every pod was recreated"
find_pods
all_answer
for name in "${WEBS[@]}"; do
    ! grep -q "${IDS[$name]}" "$WORK/identities" || fail "$name is in the sandbox from before"
done
