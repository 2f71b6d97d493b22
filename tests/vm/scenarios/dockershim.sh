#!/usr/bin/env bash
# lab: systemd cgroup-v1 disk
# The incident as it was: a real kubelet with dockershim. It does not notice the loss; its next start rebuilds every pod.
# Between `upgrade` and netfix killed without a person who acts, no pod is rebuilt, also not by a start of kubelet.
# shellcheck source=tests/vm/dockershim.sh
. "$LAB_REPO/tests/vm/dockershim.sh"

# kubelet_starts_anew: and looks after every pod.
kubelet_starts_anew() {
    systemctl restart $KUBELET
    rounds_later 2
}

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
lives | diff "$WORK/lives" - || fail "a pod was rebuilt"
expect_exit 0 nf restore --wait 60s
kubelet_starts_anew
untouched

step "upgrade: every pod is the one from before, also after another start of kubelet"
upgrade 0 -- "$RELOAD"
said '3 of 3 pods'
recorded '.exit == 0 and .hold.unit == "'$KUBELET'"'
recorded '[.pods[].name] | sort == ["web-0-'"$NODE"'", "web-1-'"$NODE"'", "web-2-'"$NODE"'"]'
recorded '.pods | all(.rebuilt == false and .state == "restored" and .lives_before == .lives_after)'
untouched
kubelet_starts_anew
untouched

killed_in command "modprobe -r e1000e; sleep 15; modprobe e1000e"
until_deadline
kubelet_starts_anew
untouched

step "without netfix: the NIC is configured again as a network manager does, and the next start of kubelet rebuilds every pod"
reload_driver
nic_up
node_vlan 3 "$NIC.3" "$NIC"
ip addr add 10.3.0.2/24 dev "$NIC.3"
systemctl restart $KUBELET
pods_run 1
all_answer
