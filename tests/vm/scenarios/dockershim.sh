#!/usr/bin/env bash
# lab: systemd cgroup-v1 disk
# The incident, with a real kubelet and dockershim: kubelet does not notice the loss, and its next start rebuilds every pod. With
# `restore`, with `upgrade`, and after a netfix that is killed while no person acts, a start of kubelet rebuilds none.
# shellcheck source=tests/vm/dockershim.sh
. "$LAB_REPO/tests/vm/dockershim.sh"

vlan_node
gw_hide
dockershim_node "$NIC.3"
rounds_later 1
before_window

step "the reload alone: kubelet does not notice that the pods have no network; restore brings it back"
expect_exit 0 nf snapshot
reload_driver
rounds_later 2
pods_dead
identities | diff "$WORK/identities" - || fail "a pod was rebuilt"
expect_exit 0 nf restore --nic-wait 60s
systemctl restart $KUBELET
untouched

step "upgrade: every pod is the one from before, also after another start of kubelet"
upgrade 0 -- "$RELOAD"
printed '3 of 3 pods'
recorded '.exit == 0 and .hold.unit == "'$KUBELET'"'
recorded '[.pods[].name] | sort == ["web-0-'"$NODE"'", "web-1-'"$NODE"'", "web-2-'"$NODE"'"]'
recorded '.pods | all(.rebuilt == false and .state == "restored" and .lives_before == .lives_after)'
untouched
systemctl restart $KUBELET
untouched

killed_in command "modprobe -r e1000e; sleep 15; modprobe e1000e"
until_deadline
systemctl restart $KUBELET
untouched

step "without netfix: the NIC is configured again as a network manager does, and the next start of kubelet rebuilds every pod"
reload_driver
nic_up
node_vlan 3 "$NIC.3" "$NIC"
ip addr add 10.3.0.2/24 dev "$NIC.3"
systemctl restart $KUBELET
pods_run 1
all_answer
