#!/usr/bin/env bash
# A replacement for kubelet with dockershim: every second it queries the runtime for ready sandboxes, and the network
# namespace of each sandbox for the address of its eth0. A pod without an address gets another sandbox and container.
#
# Its pods are files in $MANIFESTS: the file name is the pod's name, the text is "NAMESPACE UID".
# shellcheck source=tests/vm/cri.sh
. "$LAB_REPO/tests/vm/cri.sh"

set -uo pipefail
MANIFESTS=/etc/kubernetes/manifests
WORK=$RUNTIME_DIRECTORY

# has_address SANDBOX: queries the kernel each time.
has_address() {
    nsenter -t "$(sandbox_pid "$1")" -n ip -o -4 address show dev eth0 scope global 2>/dev/null | grep -q .
}

# sync_pod NAME NAMESPACE UID: one pod, by $WORK/sandboxes and $WORK/containers.
sync_pod() {
    local name=$1 attempt state id starts config
    # The newest one: the list is sorted.
    read -r _ attempt state id < <(grep "^$3 " "$WORK/sandboxes" | tail -n 1) || attempt=-1 id=''
    starts=$(grep -c "^$id " "$WORK/containers")
    if [ -n "$id" ] && { [ "$state" != 0 ] || ! has_address "$id"; }; then
        echo "$2/$name: sandbox $id (attempt $attempt, state $state) has no IP address: recreating it"
        remove_sandbox "$id" || return
        id=''
    fi
    if [ -z "$id" ]; then
        starts=$((++attempt))
        id=$(run_sandbox "$(sandbox_config "$name" "$2" "$3" "$attempt")") || return
    fi
    ! grep -q "^$id CONTAINER_RUNNING " "$WORK/containers" || return 0
    config=$(sandbox_config "$name" "$2" "$3" "$attempt")
    echo "$2/$name: sandbox $id (attempt $attempt): container $(run_container "$id" "$config" "$starts")"
}

# It stops between two rounds, never with a half-created pod.
trap 'stopped=1' TERM
stopped='' rounds=0
while [ -z "$stopped" ]; do
    sleep 1
    # If the runtime cannot be queried, no pod is changed.
    sandboxes uid attempt state id >"$WORK/sandboxes" || continue
    containers pod_sandbox_id state id >"$WORK/containers" || continue
    for manifest in "$MANIFESTS"/*; do
        read -r namespace uid <"$manifest"
        sync_pod "${manifest##*/}" "$namespace" "$uid" &
    done
    until wait; do :; done
    echo $((++rounds)) >"$WORK/rounds"
done
