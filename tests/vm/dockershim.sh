# A node of the incident: Docker's engine, and a real kubelet with dockershim and static pods, without an API server. Everything
# that a host keeps on its disk is on /dev/vda.
# shellcheck shell=bash
# shellcheck source=tests/vm/window.sh
. "$LAB_REPO/tests/vm/window.sh"

REAL_KUBELET=$LAB_REPO/target/lab/kubelet
IMAGE=lab/pause:1
DISK=/run/netfix-disk
FOLDERS=(/var/lib/docker /var/lib/containerd /var/lib/kubelet /var/lib/cni "$MANIFESTS")
NODE=$(hostname)

# dockershim_node PARENT: containers of three pods run on this VLAN.
dockershim_node() {
    start_docker "$1"
    image_layer | docker import --change 'CMD ["/bin/sleep", "1000000"]' - "$IMAGE"
    local name
    for name in "${WEBS[@]}"; do static_pod "$name" >"$MANIFESTS/$name.json"; done
    start_kubelet
    pods_run 0
}

# pods_run ATTEMPT: waits for them.
pods_run() {
    wait_for 120 "every pod in its sandbox number $1" containers_run "$1"
    find_pods
}

mount_disk() {
    local folder
    ! mountpoint -q "$DISK" || return 0
    [ -x "$REAL_KUBELET" ] || fail "no kubelet under target/lab: run scripts/setup --all"
    modprobe -a virtio_blk ext4 overlay br_netfilter
    mkdir -p "$DISK"
    mount /dev/vda "$DISK"
    for folder in "${FOLDERS[@]}"; do
        mkdir -p "$folder" "$DISK/${folder##*/}"
        mount --bind "$DISK/${folder##*/}" "$folder"
    done
}

# start_docker PARENT
start_docker() {
    mount_disk
    cni_config "$1"
    echo 'DOCKER_OPTS="--bridge=none --iptables=false"' >/etc/default/docker
    systemctl start docker.service
}

# static_pod NAME: kubelet adds the node's name to it.
static_pod() {
    jq -n --arg name "$1" --arg image "$IMAGE" '{apiVersion: "v1", kind: "Pod", metadata: {name: $name, namespace: "shop"}, spec: {
        dnsPolicy: "Default", terminationGracePeriodSeconds: 1,
        containers: [{name: "app", image: $image, imagePullPolicy: "Never"}]}}'
}

# start_kubelet [OPTION...]: those of another runtime than dockershim.
start_kubelet() {
    [ $# -gt 0 ] || set -- --container-runtime=docker --pod-infra-container-image="$IMAGE" \
        --network-plugin=cni --cni-bin-dir=/usr/lib/cni --cni-conf-dir=/etc/cni/net.d
    kubelet_unit /usr/lib/systemd/system/$KUBELET "$REAL_KUBELET --pod-manifest-path=$MANIFESTS --sync-frequency=10s \
        $* --cgroup-driver=cgroupfs --make-iptables-util-chains=false \
        --node-ip=10.3.0.2 --address=127.0.0.1 --vmodule=kubelet=4 --eviction-hard= --fail-swap-on=false --enforce-node-allocatable="
    systemctl start $KUBELET
}

# rounds: kubelet logs each time how many pods it has.
rounds() {
    journalctl -q -u $KUBELET -o cat | awk -v pods=${#WEBS[@]} '
        match($0, /SyncLoop \(SYNC\): [0-9]+/) { sum += substr($0, RSTART + 17, RLENGTH - 17) } END { print int(sum / pods) }'
}

# identities: every container of kubelet, also those that have ended.
identities() {
    docker ps -aq --filter name=k8s_ |
        xargs -r docker inspect -f '{{.Name}} {{.Id}} {{.State.StartedAt}} {{.State.Pid}} {{.State.Running}} {{.RestartCount}}' | sort -V
}

# containers_run ATTEMPT: each pod has a sandbox and a container, with this number.
containers_run() {
    local name
    for name in "${WEBS[@]}"; do
        echo "/k8s_POD_$name-${NODE}_shop_$1"
        echo "/k8s_app_$name-${NODE}_shop_$1"
    done | sort -V | cmp -s - <(docker ps --format '/{{.Names}}' --filter name=k8s_ | sed 's/_[^_]*_\([0-9]*\)$/_\1/' | sort -V)
}

find_pods() {
    local name
    for name in "${PODS[@]}"; do rm "/run/netns/$name"; done
    PODS=()
    for name in "${WEBS[@]}"; do
        engine_pod "$name" "$(docker ps -q --filter "name=k8s_POD_$name-" | xargs docker inspect -f '{{.State.Pid}}')"
    done
}

tidy() {
    systemctl unmask --runtime $KUBELET
    systemctl stop 'netfix-*' $KUBELET
    docker ps -aq | xargs -r docker rm -f
    systemctl disable --now docker.socket docker.service containerd.service
    umount "${FOLDERS[@]}" "$DISK"
    rm -rf "/usr/lib/systemd/system/$KUBELET" /run/docker.sock /etc/default/docker /run/docker /run/containerd
    systemctl daemon-reload
    systemctl reset-failed
    busybox sysctl -qw net.ipv4.ip_forward=0
}
