#!/usr/bin/env bash
# lab: systemd
# containerd with the CNI macvlan plugin on a VLAN, its pods made over CRI as kubelet makes them.
# shellcheck source=tests/vm/engine.sh
. "$LAB_REPO/tests/vm/engine.sh"

SOCKET=/run/containerd/containerd.sock
PAUSE=docker.io/lab/pause:1
declare -A IDS=()

configure() {
    mkdir -p /etc/containerd /etc/cni/net.d
    cat >/etc/containerd/config.toml <<END
version = 2
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "$PAUSE"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "/etc/cni/net.d"
END
    cat >/etc/cni/net.d/10-vlan3.conflist <<END
{"cniVersion": "0.4.0", "name": "vlan3", "plugins": [{"type": "macvlan", "master": "$NIC.3", "mode": "bridge", "ipam": {
    "type": "host-local", "routes": [{"dst": "0.0.0.0/0"}],
    "ranges": [[{"subnet": "10.3.0.0/24", "rangeStart": "10.3.0.11", "rangeEnd": "10.3.0.13", "gateway": "10.3.0.1"}]]}}]}
END
}

# The archive that `docker save` would write of the image.
import_pause() {
    local folder=$WORK/pause sum
    mkdir "$folder"
    image_layer >"$folder/layer.tar"
    sum=$(sha256sum "$folder/layer.tar" | cut -d' ' -f1)
    jq -n --arg sum "sha256:$sum" '{architecture: "amd64", os: "linux", config: {Entrypoint: ["/bin/sleep", "1000000"]},
        rootfs: {type: "layers", diff_ids: [$sum]}}' >"$folder/config.json"
    jq -n --arg name "$PAUSE" '[{Config: "config.json", RepoTags: [$name], Layers: ["layer.tar"]}]' >"$folder/manifest.json"
    tar -C "$folder" -c . | ctr -n k8s.io images import -
}

# cri METHOD: the request's fields on stdin, the answer's on stdout, both as protobuf's text. A message on a gRPC
# stream comes after five bytes: not compressed, and its length.
cri() {
    local message=$WORK/message
    protoc -I "$LAB_REPO/tests/vm" --encode="runtime.v1.$1Request" cri.proto >"$message"
    { printf '%010x' "$(stat -c %s "$message")" | busybox xxd -r -p; cat "$message"; } >"$message.frame"
    curl -sS --http2-prior-knowledge --unix-socket "$SOCKET" -H 'Content-Type: application/grpc' -H 'TE: trailers' \
        --data-binary "@$message.frame" -D "$message.head" -o "$message.answer" "http://cri/runtime.v1.RuntimeService/$1"
    grep -qi '^grpc-status: 0' "$message.head" || fail "$1: $(cat "$message.head")"
    tail -c +6 "$message.answer" | protoc -I "$LAB_REPO/tests/vm" --decode="runtime.v1.$1Response" cri.proto
}

# run_pod NAME CONFIG
run_pod() {
    local answer
    answer=$(cri RunPodSandbox <<<"config { metadata { name: '$1' namespace: 'shop' uid: 'uid-of-$1' } $2 }")
    IDS[$1]=$(sed -n 's/^pod_sandbox_id: "\(.*\)"$/\1/p' <<<"$answer")
}
pid_of() { ctr -n k8s.io tasks ls | awk -v id="${IDS[$1]}" '$1 == id { print $2 }'; }

lives() {
    local name
    for name in "${!IDS[@]}"; do
        echo "$name $(pid_of "$name")"
        cri PodSandboxStatus <<<"pod_sandbox_id: '${IDS[$name]}'"
    done
}
names() { local name; for name in "${PODS[@]}"; do echo "$name ${IDS[$name]} shop uid-of-$name"; done; }

vlan_node
gw_hide
engine_folders /var/lib/containerd
configure
systemctl start containerd.service
import_pause
for name in web-0 web-1 web-2; do
    run_pod "$name" "hostname: '$name'"
    engine_pod "$name" "$(pid_of "$name")"
done
# A pod on the host's network is none.
run_pod agent 'linux { security_context { namespace_options { network: NODE } } }'

incident cri lives names
