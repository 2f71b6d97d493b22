# CRI v1 by protoc and curl: the calls that kubelet makes.
# shellcheck shell=bash

CRI_SOCKET=/run/containerd/containerd.sock
# The only image: one that sleeps.
IMAGE=docker.io/lab/pause:1

# cri METHOD: the request's fields on stdin, the answer's on stdout, both as protobuf text. A message on a gRPC
# stream has a header of five bytes: not compressed, and its length.
cri() {
    local message=$WORK/message.$BASHPID fields='' size
    read -r -d '' fields || :
    if [ -z "$fields" ]; then : >"$message"; else
        protoc -I "$LAB_REPO/tests/vm" --encode="runtime.v1.$1Request" cri.proto <<<"$fields" >"$message" || return
    fi
    printf -v size '%08x' "$(stat -c %s "$message")"
    # shellcheck disable=SC2059 # The format is the five bytes.
    { printf "\\x00\\x${size:0:2}\\x${size:2:2}\\x${size:4:2}\\x${size:6:2}"; cat "$message"; } >"$message.frame"
    curl -sS --http2-prior-knowledge --unix-socket "$CRI_SOCKET" -H 'Content-Type: application/grpc' -H 'TE: trailers' \
        --data-binary "@$message.frame" -D "$message.head" -o "$message.answer" "http://cri/runtime.v1.RuntimeService/$1" || return
    grep -qi '^grpc-status: 0' "$message.head" || { echo "$1: $(cat "$message.head")" >&2; return 1; }
    tail -c +6 "$message.answer" | protoc -I "$LAB_REPO/tests/vm" --decode="runtime.v1.$1Response" cri.proto || return
    rm "$message" "$message".*
}

# columns FIELD...: one line for each item of a list's answer. protobuf omits zero values.
columns() {
    awk -v names="$*" '
        BEGIN { count = split(names, name, " ") }
        /^[a-z]/ { split("", value) }
        match($0, /^ +[a-z_]+: /) { key = $1; sub(":", "", key); sub(/^ +[a-z_]+: /, ""); gsub("\"", ""); value[key] = $0 }
        /^}/ { for (n = 1; n <= count; n++) printf "%s%s", (name[n] in value ? value[name[n]] : 0), (n < count ? " " : "\n") }'
}
sandboxes() { cri ListPodSandbox </dev/null | columns "$@" | sort -V; }
containers() { cri ListContainers </dev/null | columns "$@" | sort -V; }

# sandbox_config NAME NAMESPACE UID ATTEMPT: labelled like kubelet's.
sandbox_config() {
    echo "metadata { name: '$1' namespace: '$2' uid: '$3' attempt: $4 } hostname: '$1'" \
        "labels { key: 'io.kubernetes.pod.name' value: '$1' } labels { key: 'io.kubernetes.pod.namespace' value: '$2' }" \
        "labels { key: 'io.kubernetes.pod.uid' value: '$3' }"
}

# run_sandbox CONFIG: prints its id.
run_sandbox() { cri RunPodSandbox <<<"config { $1 }" | sed -n 's/^pod_sandbox_id: "\(.*\)"$/\1/p'; }

# run_container SANDBOX CONFIG ATTEMPT: prints its id.
run_container() {
    local id
    id=$(cri CreateContainer <<<"pod_sandbox_id: '$1' sandbox_config { $2 } config { metadata { name: 'app' attempt: $3 }
        image { image: '$IMAGE' } labels { key: 'io.kubernetes.container.name' value: 'app' }
        annotations { key: 'io.kubernetes.container.restartCount' value: '$3' } }" |
        sed -n 's/^container_id: "\(.*\)"$/\1/p') || return
    cri StartContainer <<<"container_id: '$id'" >/dev/null || return
    echo "$id"
}

# remove_sandbox ID: removes it with its containers.
remove_sandbox() {
    cri StopPodSandbox <<<"pod_sandbox_id: '$1'" >/dev/null && cri RemovePodSandbox <<<"pod_sandbox_id: '$1'" >/dev/null
}

# sandbox_pid ID: the process that keeps its namespaces, from the file of containerd's shim.
sandbox_pid() { cat "/run/containerd/io.containerd.runtime.v2.task/k8s.io/$1/init.pid"; }
