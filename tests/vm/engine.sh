# Real container engines under systemd, and the whole incident with their containers.
# shellcheck shell=bash
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"

# On an emulated processor an engine can exceed netfix's time limit; then netfix refuses, and the test repeats the command.
nf() {
    local status attempt
    for attempt in 1 2 3 4 5; do
        status=0
        "$NETFIX" --state-dir "$STATE" "$@" || status=$?
        [ "$status" = 4 ] || break
        echo "attempt $attempt was refused"
    done
    return "$status"
}

# engine_folders DIR...: engines stack overlays on them, which the VM's root, itself an overlay, does not support.
engine_folders() {
    modprobe -a overlay br_netfilter
    local dir
    for dir in "$@"; do
        mkdir -p "$dir"
        mount -t tmpfs tmpfs "$dir"
    done
}

# image_layer: the only layer of an image with busybox, as a tar archive.
image_layer() {
    mkdir -p "$WORK/image/bin"
    cp "$(command -v busybox)" "$WORK/image/bin/sleep"
    ln -sf sleep "$WORK/image/bin/sh"
    tar -C "$WORK/image" -c .
}

# engine_pod NAME PID: makes the container with this process a pod for the helpers in lib.sh.
engine_pod() {
    ns_name "$1" "/proc/$2/ns/net"
    PODS+=("$1")
    GATEWAYS[$1]=10.3.0.1
}

# written_down SOURCE "NAME ID NAMESPACE UID"...: there is a checkpoint for each, with the engine's name, and no other.
written_down() {
    local source=$1 pod name id rest file files=()
    shift
    for pod in "$@"; do
        read -r name id rest <<<"$pod"
        [ ${#id} = 64 ] || fail "$name has no full id: $id"
        files+=("${id:0:12}")
        file=$STATE/checkpoints/${id:0:12}
        [ -e "$file" ] || fail "no checkpoint of $name: there are $(ls "$STATE/checkpoints")"
        diff <(printf '%s\n' "$source $name $id $rest") <(jq -r '
            .netfix.pod as $pod | [$pod.source, .podname, .sandbox, $pod.namespace, $pod.uid] | map(. // "-") | join(" ")' "$file") ||
            fail "the checkpoint of $name has another identity"
    done
    diff <(printf '%s\n' "${files[@]}" | sort) <(ls "$STATE/checkpoints") || fail "other checkpoints"
}

# incident SOURCE LIVES COMMAND...: snapshot, loss and repair. LIVES prints what must not change, the other command
# prints the expected checkpoints.
incident() {
    local source=$1 identities=$2 pods
    shift 2
    before_loss
    mapfile -t pods < <("$@")
    written_down "$source" "${pods[@]}"
    "$identities" >"$WORK/identities"
    lost
    expect_exit 0 nf restore --nic-wait 60s
    restored
    "$identities" | diff "$WORK/identities" - || fail "a pod was rebuilt"
}
