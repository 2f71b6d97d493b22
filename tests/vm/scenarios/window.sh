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

# sniff FILE [WORD...]: writes what the node's NIC sends and what its peer receives to FILE.out and FILE.in, from now on.
sniff() {
    tcpdump -pqnUw "$1.out" -Q out -i "$NIC" 2>"$1.err" &
    SNIFFERS=($!)
    ip netns exec gw tcpdump -qnUw "$1.in" -Q in -i eth1 2>"$1.err.in" &
    SNIFFERS+=($!)
    wait_for 30 "the capture" eval "grep -q 'listening on' $1.err && grep -q 'listening on' $1.err.in"
}
# sniffed FILE: ends the capture; $LEFT frames have left the NIC, $ARRIVED have arrived at its peer.
sniffed() {
    # A frame is in the buffer of the socket for up to a second.
    sleep 2
    kill -INT "${SNIFFERS[@]}"
    wait "${SNIFFERS[@]}" || :
    LEFT=$(frames "$1.out" | wc -l) ARRIVED=$(frames "$1.in" | wc -l)
}
frames() { tcpdump -enr "$1" 2>/dev/null; }
# no_solicitations: nothing asks for a router any more. The kernel does so for hours where none answers.
no_solicitations() {
    local pod none='for each in /proc/sys/net/ipv6/conf/*/router_solicitations; do echo 0 >"$each"; done'
    sh -c "$none"
    for pod in "${PODS[@]}"; do inside "$pod" sh -c "$none"; done
}
is_quiet() {
    sniff "$WORK/idle"
    sniffed "$WORK/idle"
    [ "$LEFT $ARRIVED" = "0 0" ]
}

kubernetes_node
attempts_are 0 || fail "these are not the first sandboxes of the pods"
no_solicitations
before_window
expect_exit 0 nf snapshot

step "a rehearsal sends nothing: no frame leaves the node, and none arrives at the other end of its wire"
wait_for 60 "the wire to be quiet" is_quiet
watch_changes
sniff "$WORK/rehearsal"
expect_exit 0 nf check --rehearse
sniffed "$WORK/rehearsal"
no_changes
[ "$LEFT $ARRIVED" = "0 0" ] || fail "$LEFT frames left, $ARRIVED arrived: $(frames "$WORK/rehearsal.out") $(frames "$WORK/rehearsal.in")"
printed 'rehearsed.*3 of 3.* come back identical'
untouched

step "the capture sees what pods send"
sniff "$WORK/arping"
all_answer
sniffed "$WORK/arping"
for name in "${PODS[@]}"; do
    mac=$(ip -n "$name" -j link show eth0 | jq -r ".[0].address")
    for file in out in; do
        frames "$WORK/arping.$file" | grep -q "$mac > " || fail "$name sends, and arping.$file has: $(frames "$WORK/arping.$file")"
    done
done

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
printed 'rehearsed.*3 of 3.* come back identical'
recorded '.rehearsal | .pods == 3 and .identical == 3 and .unproven == 0 and .host'
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
