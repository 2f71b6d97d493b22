# A Kubernetes node: containerd, and a replacement for kubelet that creates three pods and recreates those without address.
# shellcheck shell=bash
# shellcheck source=tests/vm/containerd.sh
. "$LAB_REPO/tests/vm/containerd.sh"

KUBELET=kubelet.service
MANIFESTS=/etc/kubernetes/manifests
WEBS=(web-0 web-1 web-2)

# kubelet_unit FILE [COMMAND]: a stop leaves the processes that kubelet started, as in the unit of k3s.
kubelet_unit() {
    cat >"$1" <<END
[Unit]
Description=a stand-in for kubelet
[Service]
ExecStart=${2:-/bin/bash $LAB_REPO/tests/vm/kubelet.sh}
Environment=LAB_REPO=$LAB_REPO
RuntimeDirectory=kubelet
KillMode=process
Restart=always
END
    systemctl daemon-reload
}

tidy() {
    systemctl unmask --runtime $KUBELET
    systemctl stop 'netfix-*' $KUBELET
    rm -f /usr/lib/systemd/system/$KUBELET
    systemctl daemon-reload
    systemctl reset-failed
}

# rounds_later N: waits until kubelet has checked every pod this many times.
rounds_later() { wait_for 60 "kubelet to look after its pods" looked_after $(($(rounds) + $1)); }
looked_after() { [ "$(rounds)" -ge "$1" ]; }
rounds() { cat /run/kubelet/rounds 2>/dev/null || echo 0; }

kubernetes_node() {
    local name
    containerd_node
    mkdir -p "$MANIFESTS"
    for name in "${WEBS[@]}"; do echo "shop uid-of-$name" >"$MANIFESTS/$name"; done
    kubelet_unit /usr/lib/systemd/system/$KUBELET
    systemctl start $KUBELET
    wait_for 120 "every pod's container" containers_run 0
    find_pods
}

# containers_run ATTEMPT: one container runs in each pod. It computes more than what it waits for: once a second.
containers_run() { sleep 1 && [ "$(containers state attempt | grep -cx "CONTAINER_RUNNING $1")" = ${#WEBS[@]} ]; }

# find_pods: makes the existing sandboxes pods for the helpers in lib.sh.
find_pods() {
    local name
    for name in "${PODS[@]}"; do rm "/run/netns/$name"; done
    PODS=()
    for name in "${WEBS[@]}"; do cri_pod "$name" "$(sandboxes name id | sed -n "s/^$name //p")"; done
}
