#!/usr/bin/env bash
# lab: systemd
# The containers of contrib/kubernetes under a real containerd, with the namespaces, rights and mounts of the manifests. In the
# namespaces of the host netfix saves every pod. With a network or process ids of its own, in a container or as a unit with
# PrivateNetwork=, it cannot see the machine: it writes nothing, and the check is UNKNOWN.
# shellcheck source=tests/vm/containerd.sh
. "$LAB_REPO/tests/vm/containerd.sh"

STATE=/var/lib/netfix
LOGS=$WORK/logs
# What a refusal is about.
REASON='namespace'

# has FILE KEY: a key of the pod that is true.
has() { [ "$2" != "$WITHOUT" ] && grep -qx " *$2: true" "$LAB_REPO/contrib/kubernetes/$1"; }
namespaces() {
    echo "namespace_options { network: $(has "$1" hostNetwork && echo NODE || echo POD) pid: $(has "$1" hostPID && echo NODE || echo CONTAINER) }"
}

# field LINE KEY: the value in a YAML map of one line.
field() { sed -n "s/.*[{ ]$2: \([^,}]*\)[,}].*/\1/p" <<<"$1"; }
# mounts FILE: those of the manifest, and netfix with its libraries, which an image would have.
mounts() {
    local line path file
    grep 'mountPath: ' "$LAB_REPO/contrib/kubernetes/$1" | while read -r line; do
        path=$(field "$(grep "{name: $(field "$line" name), hostPath: " "$LAB_REPO/contrib/kubernetes/$1")" path)
        [ -n "$path" ] || fail "no volume for: $line"
        echo "mounts { container_path: '$(field "$line" mountPath)' host_path: '$path'"
        [[ $line != *"readOnly: true"* ]] || echo "readonly: true"
        [[ $line != *HostToContainer* ]] || echo "propagation: PROPAGATION_HOST_TO_CONTAINER"
        echo "}"
    done
    echo "mounts { container_path: '/usr/bin/netfix' host_path: '$NETFIX' readonly: true }"
    for file in $(ldd "$NETFIX" | grep -o '/[^ ]*'); do
        echo "mounts { container_path: '$file' host_path: '$(realpath "$file")' readonly: true }"
    done
}

# container FILE COMMAND: the container's configuration, with another command of netfix.
container() {
    local manifest=$LAB_REPO/contrib/kubernetes/$1
    grep -qx ' *readOnlyRootFilesystem: true' "$manifest" && grep -qx ' *seccompProfile: {type: RuntimeDefault}' "$manifest" &&
        grep -qx ' *drop: \[ALL\]' "$manifest" || fail "$1 has other rights"
    echo "metadata { name: 'netfix' } image { image: '$IMAGE' } command: '/usr/bin/netfix' command: '$2' log_path: '$2.log'"
    mounts "$1"
    echo "linux { security_context { $(namespaces "$1") readonly_rootfs: true seccomp {}"
    echo "capabilities { drop_capabilities: 'ALL' $(sed -n 's/^ *add: \[\(.*\)\]$/\1/p' "$manifest" | tr -d , | xargs printf "add_capabilities: '%s' ") } } }"
}

# pod FILE COMMAND: runs `netfix COMMAND` as that pod, without the namespace $WITHOUT of the host; its output and exit code.
pod() {
    local config sandbox id status
    config="$(sandbox_config "netfix-$2" netfix "uid-of-$2" 0) log_directory: '$LOGS' linux { security_context { $(namespaces "$1") } }"
    # A pod in the host's network has no name of its own.
    config=${config/"hostname: 'netfix-$2'"/}
    rm -rf "$LOGS"
    sandbox=$(run_sandbox "$config") || fail "no sandbox"
    id=$(cri CreateContainer <<<"pod_sandbox_id: '$sandbox' sandbox_config { $config } config { $(container "$1" "$2") }" |
        sed -n 's/^container_id: "\(.*\)"$/\1/p')
    cri StartContainer <<<"container_id: '$id'" >/dev/null || fail "no container"
    wait_for 20 "the end of netfix $2" exited "$id"
    status=$(sed -n 's/^ *exit_code: //p' "$WORK/status")
    cut -d' ' -f4- "$LOGS/$2.log"
    remove_sandbox "$sandbox"
    return "${status:-0}"
}
exited() { cri ContainerStatus <<<"container_id: '$1'" >"$WORK/status" && grep -q CONTAINER_EXITED "$WORK/status"; }

as_pod() { pod "$1.yaml" "$1"; }

# unit COMMAND: `netfix COMMAND` as a service without the network of the host.
unit() { systemd-run --quiet --wait --pipe -p PrivateNetwork=yes "$NETFIX" "$1"; }

records() { (cd "$STATE" && find . -printf '%p %y %m %T@\n' | sort && find . -type f -exec sha256sum {} + | sort); }

# blind COMMAND...: snapshot and check, run so, cannot see the machine.
blind() {
    expect_exit 4 "$@" snapshot
    printed "$REASON"
    expect_exit 3 "$@" check
    printed "$REASON"
    records | diff "$WORK/records" - || fail "the records were changed"
}

WITHOUT=
containerd_node
mkdir -p /var/lib/prometheus/node-exporter
for name in web-0 web-1; do
    cri_pod "$name" "$(run_sandbox "$(sandbox_config "$name" shop "uid-of-$name" 0)")"
done
all_answer

step "in the namespaces of the host every pod is saved"
expect_exit 0 as_pod snapshot
mapfile -t saved < <(names)
written_down cri "${saved[@]}"
expect_exit 0 as_pod check
printed '2 of 2'
records >"$WORK/records"

for WITHOUT in hostNetwork hostPID; do
    step "without $WITHOUT nothing is known"
    blind as_pod
done

step "nor in a unit with a network of its own"
blind unit

step "the units of contrib/systemd see the machine, and the records are good"
install_units
systemctl start netfix-snapshot.service netfix-check.service || fail "$(journalctl -q -o cat -u 'netfix-*')"
lost
expect_exit 0 nf restore --nic-wait 60s
all_answer
