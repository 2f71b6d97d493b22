#!/usr/bin/env bash
# lab: systemd cgroup-v1 disk
# The machine is reset in the middle of a window, while the NIC is gone. After the boot nothing of the window is in force: kubelet
# runs, rebuilds its pods as after each boot, and the next window is as good as any.
# shellcheck source=tests/vm/dockershim.sh
. "$LAB_REPO/tests/vm/dockershim.sh"

# The second boot begins here too; only the disk has survived.
mount_disk
STATE=$DISK/netfix
vlan_node
gw_hide

if [ ! -e "$DISK/sandboxes" ]; then
    dockershim_node "$NIC.3"
    all_answer
    docker ps -q --no-trunc --filter name=k8s_POD >"$DISK/sandboxes"
    sync
    step "the machine is reset while COMMAND runs"
    nf upgrade --yes -- bash -c "modprobe -r e1000e; touch /run/lab/again; echo b >/proc/sysrq-trigger"
    fail "the machine was not reset"
fi

step "the checkpoints and the window's record are whole; nothing is paused"
expect_exit 0 nf status
printed 'ended by a reboot'
id=$(window -r .id)
for command in report "report $id"; do
    # shellcheck disable=SC2086 # Two words.
    expect_exit '[0-9]' nf $command
    printed 'reboot'
    ! grep -qE 'is paused|netfix resume' "$OUT" || fail "the report speaks of a pause that the reboot has ended"
done
expect_exit 5 nf wait "$id"
expect_exit 0 nf list
expect_exit 0 nf status -o json
jq -e '.status.window.ended_by_reboot and .status.window.paused_for == null' "$OUT" >/dev/null || fail "status: $(cat "$OUT")"

step "kubelet starts with the machine, and rebuilds each pod"
start_docker "$NIC.3"
start_kubelet
pods_run 1
all_answer
! docker ps -q --no-trunc --filter name=k8s_POD | grep -qFf "$DISK/sandboxes" || fail "a sandbox of the first boot runs"

step "no checkpoint of the first boot is used for a pod of this one"
watch_changes
for command in diff restore; do
    expect_exit 4 "$NETFIX" --state-dir "$STATE" $command
    printed "before this machine's last boot"
done
no_changes

step "the next snapshot closes the window's record, which is true afterwards too"
expect_exit 0 nf snapshot
recorded '.closed_by == "reboot" and .exit == 5'
expect_exit 5 nf wait "$id"
expect_exit '[0-9]' nf report
printed 'reboot'
nothing_left

step "the next window"
before_window
upgrade 0 -- "$RELOAD"
printed '3 of 3 pods back; no pod was rebuilt'
untouched
