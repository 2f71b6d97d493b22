#!/usr/bin/env bash
# lab: systemd
# netfix is killed in each phase, and no person acts: at the deadline the pods are back before kubelet, which would recreate
# every pod without an address, starts.
# shellcheck source=tests/vm/window.sh
. "$LAB_REPO/tests/vm/window.sh"

# before_its_pause: netfix was killed before the first change, so no window is open, and kubelet has run all the time.
before_its_pause() {
    [ ! -e "$STATE/window.json" ] || fail "a window is open: $(window -c .)"
    [ "$(systemctl show -P MainPID $KUBELET)" = "$1" ] || fail "kubelet was started again"
    identities | diff "$WORK/identities" - || fail "a pod was rebuilt"
    capture "$WORK/after"
    same "$WORK/before" "$WORK/after"
    all_answer
}

kubernetes_node
kubelet_pid=$(systemctl show -P MainPID $KUBELET)

step "netfix is killed in the phase check, which lasts as long as a runtime is silent"
before_window
systemctl kill --signal=STOP containerd.service
nf upgrade --yes --answer-wait 60s -- bash -c "$RELOAD" >"$OUT" 2>&1 &
client=$!
wait_for 30 "netfix to begin" systemctl -q is-active netfix-upgrade.service
sleep 3
systemctl kill --kill-whom=main --signal=KILL netfix-upgrade.service
! wait $client || fail "the client of a killed netfix ended with 0"
grep -q "no window is open" "$OUT" || fail "the client reports a window: $(cat "$OUT")"
systemctl kill --signal=CONT containerd.service
before_its_pause "$kubelet_pid"

step "netfix is killed in the phase snapshot, between two checkpoints"
points=$WORK/points
rm -rf "$STATE"
NETFIX_FAILPOINT_LOG=$points nf upgrade --yes --foreground --watch 0s -- true >"$OUT" 2>&1 || fail "the window went wrong: $(cat "$OUT")"
second=$(awk '$2 == "rename"' "$points" | sed -n '2s/ .*//p')
rm -r "$STATE"
kubelet_pid=$(systemctl show -P MainPID $KUBELET)
before_window
! NETFIX_FAILPOINT=$second:kill nf upgrade --yes --foreground -- bash -c "$RELOAD" >"$OUT" 2>&1 ||
    fail "netfix was not killed: $(cat "$OUT")"
written=$(find "$STATE/checkpoints" -type f ! -name '.*' | wc -l)
((written > 0 && written < ${#PODS[@]})) || fail "not between two checkpoints: $(find "$STATE")"
before_its_pause "$kubelet_pid"

# The stand-in for kubelet stops between two rounds, so the phase lasts. Whether COMMAND would have run is not known.
killed_in pause true
until_deadline

killed_in command "modprobe -r e1000e; sleep 15; modprobe e1000e"
until_deadline

killed_in restore "modprobe -r e1000e; (sleep 15; modprobe e1000e) &" --nic-wait 40s
until_deadline

# The gateway answers again before the deadline.
killed_in verify "$RELOAD; ip -n gw addr del 10.3.0.1/24 dev eth1.3" --answer-wait 60s
ip -n gw addr add 10.3.0.1/24 dev eth1.3
until_deadline

mkdir -p /run/systemd/system/$KUBELET.d
printf '[Service]\nExecStartPre=/bin/sleep 8\n' >/run/systemd/system/$KUBELET.d/slow.conf
systemctl daemon-reload
killed_in resume "$RELOAD"
until_deadline
rm -r /run/systemd/system/$KUBELET.d
systemctl daemon-reload

killed_in proof "$RELOAD" --watch 60s
until_deadline

step "the deadline is stopped by hand: after its time, the snapshot's unit makes up for it"
install_units
STATE=/var/lib/netfix
killed_in command "modprobe -r e1000e; sleep 15; modprobe e1000e"
systemctl stop 'netfix-deadline-*.timer'
sleep $DEADLINE
! kubelet_runs || fail "kubelet runs without a deadline"
systemctl start netfix-snapshot.service && fail "a snapshot of lost pods is a success"
systemctl reset-failed netfix-snapshot.service
until_deadline
