#!/usr/bin/env bash
# lab: systemd cgroup-v1 disk
# netfix-guard.service beside a real kubelet with dockershim: losses of all kinds at random moments. kubelet rebuilds pods only where it starts
# over a loss itself.
# shellcheck source=tests/vm/dockershim.sh
. "$LAB_REPO/tests/vm/dockershim.sh"
# shellcheck source=tests/vm/losses.sh
. "$LAB_REPO/tests/vm/losses.sh"

add_pod() { static_pod "$1" >"$MANIFESTS/$1.json"; }
remove_pod() { rm "$MANIFESTS/$1.json"; }
# Those that run: kubelet removes others while they are asked.
of_webs() {
    docker ps -q --filter name=_web- | xargs -r docker inspect -f '{{.Name}} {{.Id}} {{.State.StartedAt}} {{.State.Pid}} {{.RestartCount}}' | sort -V
}
of_extra() { docker ps -q --filter name=k8s_app_extra-; }
find_webs() { [ "$(docker ps -q --filter name=k8s_app_web- | wc -l)" = ${#WEBS[@]} ] && find_pods; }

vlan_node
gw_hide
dockershim_node "$NIC.3"
losses
