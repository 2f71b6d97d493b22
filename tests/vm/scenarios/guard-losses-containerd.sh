#!/usr/bin/env bash
# lab: systemd cgroup-v1 disk
# netfix-guard.service beside a real kubelet with containerd: losses of all kinds at random moments, and no pod is another one after them.
# shellcheck source=tests/vm/dockershim.sh
. "$LAB_REPO/tests/vm/dockershim.sh"
# shellcheck source=tests/vm/losses.sh
. "$LAB_REPO/tests/vm/losses.sh"

IMAGE=docker.io/lab/pause:1

add_pod() { static_pod "$1" >"$MANIFESTS/$1.json"; }
remove_pod() { rm "$MANIFESTS/$1.json"; }
# A sandbox in state 0 is ready.
of_webs() {
    sandboxes state name attempt created_at id | grep '^0 web-' | tee "$WORK/own"
    containers pod_sandbox_id state attempt created_at id | grep -F -f <(awk '{ print $NF }' "$WORK/own")
}
of_extra() { sandboxes name state | grep '^extra-.* 0$'; }
find_webs() {
    local name id
    for name in "${PODS[@]}"; do rm "/run/netns/$name"; done
    PODS=()
    for name in "${WEBS[@]}"; do
        id=$(sandboxes state name id | sed -n "s/^0 $name-$NODE //p")
        [ -n "$id" ] && cri_pod "$name" "$id" || return 1
    done
}

vlan_node
gw_hide
mount_disk
configure_containerd
cni_config "$NIC.3"
systemctl start containerd.service
import_image
for name in "${WEBS[@]}"; do static_pod "$name" >"$MANIFESTS/$name.json"; done
start_kubelet --container-runtime=remote --container-runtime-endpoint="unix://$CRI_SOCKET"
wait_for 120 "every pod in its sandbox" find_webs
wait_for 120 "every container" eval '[ "$(containers name state | grep -c "^app CONTAINER_RUNNING")" = ${#WEBS[@]} ]'
losses
