#!/usr/bin/env bash
# lab: systemd
# The deadline comes while the pods have no network, and a NIC that does not come back: kubelet runs in time, the pods are
# restored as soon as they can be, and nothing is called well that is not.
# shellcheck source=tests/vm/window.sh
. "$LAB_REPO/tests/vm/window.sh"

# trusting: kubelet believes the runtime, which remembers the address: it leaves the pods as they are.
trusting() {
    mkdir -p /run/systemd/system/$KUBELET.d
    printf '%s\n' '[Service]' Environment=TRUSTS_RUNTIME=1 >/run/systemd/system/$KUBELET.d/trusting.conf
    systemctl daemon-reload
    systemctl restart $KUBELET
}
distrusting() {
    rm /run/systemd/system/$KUBELET.d/trusting.conf
    systemctl daemon-reload
    systemctl restart $KUBELET
}

kubernetes_node
trusting
before_window

step "the command hangs past the deadline: kubelet runs before the pods do, which is told; they are restored in the end"
upgrade 5 -o json --deadline 30s -- "modprobe -r e1000e
    until [ \$(systemctl show -P ActiveState $KUBELET) = active ]; do sleep 0.2; done; modprobe e1000e"
problem kubelet-not-paused "$KUBELET" deadline
recorded '.exit == 5 and .run.exit == 0 and (.pods | all(.state == "restored" and .rebuilt == false))'
untouched

step "the NIC does not come back: kubelet runs, no pod is called restored; once it is there a restore brings all back"
upgrade 5 -o json --wait 5s -- "modprobe -r e1000e"
recorded '.exit == 5 and .run.exit == 0 and (.pods | all(.state != "restored" and .answered == null))'
for name in "${WEBS[@]}"; do
    jq -e --arg name "$name" 'any(.pods[]; .name == $name and .state != "restored")' "$OUT" >/dev/null || fail "nothing is said of $name"
done
pods_dead
nothing_left
load_driver
expect_exit 0 nf restore --wait 60s
untouched

step "the same beside a kubelet that asks the pods: it makes them again, and this is told of every pod"
distrusting
SETTLE=60s upgrade 5 -o json --wait 1s -- "modprobe -r e1000e"
for name in "${WEBS[@]}"; do problem pod-rebuilt "shop/$name"; done
recorded '.exit == 5 and (.pods | all(.rebuilt))'
nothing_left
