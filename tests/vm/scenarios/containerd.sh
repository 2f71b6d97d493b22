#!/usr/bin/env bash
# lab: systemd
# containerd with the CNI macvlan plugin on a VLAN, its pods made over CRI as kubelet makes them.
# shellcheck source=tests/vm/containerd.sh
. "$LAB_REPO/tests/vm/containerd.sh"

# What CRI says of each pod, its network included, and the process that has its namespace.
told() {
    local name
    lives
    for name in "${PODS[@]}"; do
        sandbox_pid "${IDS[$name]}"
        cri PodSandboxStatus <<<"pod_sandbox_id: '${IDS[$name]}'"
    done
}

containerd_node
for name in web-0 web-1 web-2; do
    cri_pod "$name" "$(run_sandbox "$(sandbox_config "$name" shop "uid-of-$name" 0)")"
done
# A pod on the host's network is none.
run_sandbox "metadata { name: 'agent' namespace: 'shop' uid: 'uid-of-agent' } linux { security_context { namespace_options { network: NODE } } }"

incident cri told names
