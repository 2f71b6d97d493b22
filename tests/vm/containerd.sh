# containerd with the CNI macvlan plugin on a VLAN, and pods created over CRI.
# shellcheck shell=bash
# shellcheck source=tests/vm/engine.sh
. "$LAB_REPO/tests/vm/engine.sh"
# shellcheck source=tests/vm/cri.sh
. "$LAB_REPO/tests/vm/cri.sh"

declare -A IDS=() # pod -> its sandbox

# containerd_node: a VLAN, and containerd that gives each pod a macvlan on it.
containerd_node() {
    vlan_node
    gw_hide
    engine_folders /var/lib/containerd
    configure_containerd
    cni_config "$NIC.3"
    systemctl start containerd.service
    import_image
}

# On a busy machine a shim may be silent for more than two seconds: containerd then takes its task for process 0.
configure_containerd() {
    mkdir -p /etc/containerd
    cat >/etc/containerd/config.toml <<END
version = 2
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "$IMAGE"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "/etc/cni/net.d"
[timeouts]
"io.containerd.timeout.task.state" = "60s"
"io.containerd.timeout.shim.load" = "60s"
END
}

# cni_config PARENT: a macvlan on it for each pod.
cni_config() {
    mkdir -p /etc/cni/net.d
    cat >/etc/cni/net.d/10-vlan3.conflist <<END
{"cniVersion": "0.4.0", "name": "vlan3", "plugins": [{"type": "macvlan", "master": "$1", "mode": "bridge", "ipam": {
    "type": "host-local", "routes": [{"dst": "0.0.0.0/0"}],
    "ranges": [[{"subnet": "10.3.0.0/24", "rangeStart": "10.3.0.11", "rangeEnd": "10.3.0.18", "gateway": "10.3.0.1"}]]}}]}
END
}

# An archive like that of `docker save`.
import_image() {
    local folder=$WORK/pause sum
    mkdir "$folder"
    image_layer >"$folder/layer.tar"
    sum=$(sha256sum "$folder/layer.tar" | cut -d' ' -f1)
    jq -n --arg sum "sha256:$sum" '{architecture: "amd64", os: "linux", config: {Entrypoint: ["/bin/sleep", "1000000"]},
        rootfs: {type: "layers", diff_ids: [$sum]}}' >"$folder/config.json"
    jq -n --arg name "$IMAGE" '[{Config: "config.json", RepoTags: [$name], Layers: ["layer.tar"]}]' >"$folder/manifest.json"
    tar -C "$folder" -c . | ctr -n k8s.io images import - >/dev/null
}

# cri_pod NAME ID: makes a sandbox a pod for the helpers in lib.sh.
cri_pod() {
    IDS[$1]=$2
    engine_pod "$1" "$(sandbox_pid "$2")"
}

# names: the pods, in the format of written_down.
names() { local name; for name in "${PODS[@]}"; do echo "$name ${IDS[$name]} shop uid-of-$name"; done; }

# identities: everything that CRI reports of every sandbox and container, on the host's network or not. A pod that is
# recreated, or whose container is restarted, differs.
identities() {
    sandboxes name namespace uid attempt state created_at id
    containers name attempt state created_at pod_sandbox_id id
}
