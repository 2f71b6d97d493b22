#!/usr/bin/env bash
# lab: systemd
# No room on the disk: before the pause nothing is begun; after it the window goes to its end from memory.
# shellcheck source=tests/vm/window.sh
. "$LAB_REPO/tests/vm/window.sh"

STATE=/mnt/state
fill() { ! dd if=/dev/zero of="$STATE/full" bs=4k 2>/dev/null || fail "the disk is not full"; }

mkdir -p "$STATE"
mount -t tmpfs -o size=24m,mode=700 tmpfs "$STATE"
plain_node
plain_kubelet
before_window

step "full before the pause: refused, nothing is changed"
pid=$(systemctl show -P MainPID $KUBELET)
fill
expect_exit 4 "$NETFIX" --state-dir "$STATE" upgrade --yes -- touch "$WORK/was-run"
said 'no-space'
[ ! -e "$WORK/was-run" ] || fail "the command was run"
[ "$(systemctl show -P MainPID $KUBELET)" = "$pid" ] || fail "kubelet was stopped"
untouched
rm "$STATE/full"

step "filled by the command"
upgrade 0 -- "dd if=/dev/zero of=$STATE/full bs=4k; $RELOAD"
said 'No space left'
untouched
record . >/dev/null
rm "$STATE/full"

step "room again"
upgrade 0 -- "$RELOAD"
recorded '.exit == 0 and .ended != null and (.pods | all(.state == "restored"))'
untouched
