#!/usr/bin/env bash
# lab: systemd
# Without netfix: after a driver reload a kubelet that asks the namespaces live makes every pod again. This is what the
# maintenance window is to prevent, so here the stand-in for kubelet is shown to do it.
# shellcheck source=tests/vm/kubernetes.sh
. "$LAB_REPO/tests/vm/kubernetes.sh"

# attempts_are N: every pod is in its sandbox number N, and so is its container.
attempts_are() {
    diff <(printf "%s 0 $1\n" "${WEBS[@]}") <(sandboxes name state attempt) &&
        diff <(printf "%.0sapp CONTAINER_RUNNING $1\n" "${WEBS[@]}") <(containers name state attempt)
}

kubernetes_node
attempts_are 0 || fail "these are not the pods' first sandboxes"
all_answer
lives >"$WORK/lives"

step "while all have an address, no pod is touched"
rounds_later 2
lives | diff "$WORK/lives" - || fail "a pod was touched"

step "the driver is reloaded, and the NIC configured again as a network manager does"
reload_driver
nic_up
node_vlan 3 "$NIC.3" "$NIC"
ip addr add 10.3.0.2/24 dev "$NIC.3"
wait_for 120 "every pod to be made again" containers_run 1
attempts_are 1 || fail "not every pod was made again"
find_pods
all_answer
for name in "${WEBS[@]}"; do
    ! grep -q "${IDS[$name]}" "$WORK/lives" || fail "$name is in the sandbox from before"
done
