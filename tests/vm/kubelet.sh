#!/usr/bin/env bash
# A stand-in for kubelet with dockershim: every second it asks the runtime which sandboxes are ready, and each sandbox's
# network namespace for the address of its eth0. A pod without one gets another sandbox and another container.
#
# Its pods are files in $MANIFESTS: the name is the pod's, the text "NAMESPACE UID".
# shellcheck source=tests/vm/cri.sh
. "$LAB_REPO/tests/vm/cri.sh"

set -uo pipefail
MANIFESTS=/etc/kubernetes/manifests
WORK=$RUNTIME_DIRECTORY

# has_address SANDBOX: queries the kernel each time, remembers nothing.
has_address() {
    nsenter -t "$(sandbox_pid "$1")" -n ip -o -4 address show dev eth0 scope global 2>/dev/null | grep -q .
}

# sync_pod NAME NAMESPACE UID: one pod, from what $WORK/sandboxes and $WORK/containers say.
sync_pod() {
    local name=$1 attempt state id starts config
    # The newest: the list is sorted.
    read -r _ attempt state id < <(grep "^$3 " "$WORK/sandboxes" | tail -n 1) || attempt=-1 id=''
    starts=$(grep -c "^$id " "$WORK/containers")
    if [ -n "$id" ] && { [ "$state" != 0 ] || ! has_address "$id"; }; then
        echo "$2/$name: sandbox $id (attempt $attempt, state $state) has no IP address: it is made again"
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

# Stopped between two rounds, never with a pod half made.
trap 'stopped=1' TERM
stopped='' rounds=0
while [ -z "$stopped" ]; do
    sleep 1
    # A runtime that cannot be asked has told nothing: no pod is touched.
    sandboxes uid attempt state id >"$WORK/sandboxes" || continue
    containers pod_sandbox_id state id >"$WORK/containers" || continue
    for manifest in "$MANIFESTS"/*; do
        read -r namespace uid <"$manifest"
        sync_pod "${manifest##*/}" "$namespace" "$uid" &
    done
    until wait; do :; done
    echo $((++rounds)) >"$WORK/rounds"
done
