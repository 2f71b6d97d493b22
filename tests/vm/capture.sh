# Whole network states as text: `capture DIR` writes one, `same BEFORE AFTER` compares two.
# shellcheck shell=bash

# capture DIR: host and pods. If the NIC has another name, set NIC to it. An emulated processor starts few programs a second,
# so one jq(1) does all of it.
capture() {
    local dir=$1 name jobs=() dumps=() index
    settle
    rm -rf "$dir"
    mkdir -p "$dir/parts"
    for name in host "${PODS[@]}"; do
        parts "$name" "$dir/parts/$name" &
        jobs+=($!)
        dumps+=("$dir/parts/$name")
    done
    for name in "${jobs[@]}"; do wait "$name"; done
    index=$(cat "/sys/class/net/$NIC/ifindex" 2>/dev/null || echo 0)
    jq -rs --arg names "host ${PODS[*]}" --argjson nic_index "$index" --arg nic "$NIC" -f "$LAB_REPO/tests/vm/normal.jq" "${dumps[@]}" |
        awk -v dir="$dir" '{ file = dir "/" $1; sub(/^[^ ]* /, ""); print >file }'
    for name in host "${PODS[@]}"; do
        if [ "$NIC" = eth0 ]; then cat "$dir/parts/$name.sysctl"; else sed "s,/$NIC/,/eth0/," "$dir/parts/$name.sysctl"; fi >>"$dir/$name"
    done
}

# parts NAME FILE: JSON documents in FILE, in the order normal.jq expects: one for each line of the batches. Unset secrets
# cannot be read; all other settings that a device has are in FILE.sysctl.
parts() {
    local enter=() ip=(ip)
    [ "$1" = host ] || enter=(nsenter "--net=/run/netns/$1") ip=(ip -n "$1")
    {
        "${ip[@]}" -4 -d -j -batch - <<<$'link show\naddress show\nroute show table all\nrule show\nneighbour show nud permanent\nneighbour show proxy\nnexthop show'
        "${ip[@]}" -6 -d -j -batch - <<<$'address show\nroute show table all\nrule show\nneighbour show nud permanent\nneighbour show proxy\nnexthop show'
    } >"$2"
    "${enter[@]}" grep -r . /proc/sys/net/ipv{4,6}/{conf,neigh} >"$2.sysctl" 2>/dev/null || :
    # The sysfs here shows the links of the host.
    [ "$1" != host ] ||
        grep . "/sys/class/net/$NIC/"{gro_flush_timeout,napi_defer_hard_irqs,queues/rx-*/rps_*} >>"$2.sysctl" 2>/dev/null || :
}

# Addresses under duplicate detection and devices waiting for their carrier will change their state.
settle() { wait_for 15 "addresses and carriers to settle" settled; }
settled() {
    local pod
    unsettled ip && return 1
    for pod in "${PODS[@]}"; do
        unsettled ip -n "$pod" && return 1
    done
    return 0
}
unsettled() { "$@" addr show | grep -qE ' tentative|[<,]LOWER_UP.* state (DOWN|LOWERLAYERDOWN|DORMANT)'; }

# same BEFORE AFTER [NAMESPACE...]: equal to the last line; otherwise prints the difference.
same() {
    local before=$1 after=$2 name differs=
    shift 2
    [ $# -gt 0 ] || set -- host "${PODS[@]}"
    for name in "$@"; do
        if [ ! -s "$before/$name" ] || [ ! -s "$after/$name" ]; then fail "no capture of $name in $before or $after"; fi
        diff -U0 "$before/$name" "$after/$name" >"$after/diff" && continue
        differs=1
        printf -- '--- %s differs (- %s, + %s)\n' "$name" "${before##*/}" "${after##*/}"
        grep -E '^[-+][^-+]' "$after/diff"
    done
    [ -z "$differs" ] || fail "${after##*/} is not ${before##*/}"
}

# same_but REGEX BEFORE AFTER NAMESPACE...: same, apart from the lines that match.
same_but() {
    local regex=$1 name dir
    shift
    for dir in "$1" "$2"; do
        mkdir -p "$dir.but"
        for name in "${@:3}"; do grep -vE "$regex" "$dir/$name" >"$dir.but/$name"; done
    done
    same "$1.but" "$2.but" "${@:3}"
}

# differs BEFORE AFTER NAMESPACE...: checks the comparison itself: it must show the loss.
differs() {
    local before=$1 after=$2 name
    shift 2
    for name in "$@"; do
        ! cmp -s "$before/$name" "$after/$name" || fail "$name did not change between ${before##*/} and ${after##*/}"
    done
}

# watch_changes / no_changes: records from the kernel of every change in between.
watch_changes() {
    local pod
    WATCHERS=()
    ip -o monitor link address route rule nexthop >"$WORK/changes.host" 2>&1 &
    WATCHERS+=($!)
    for pod in "${PODS[@]}"; do
        ip netns exec "$pod" ip -o monitor link address route rule nexthop >"$WORK/changes.$pod" 2>&1 &
        WATCHERS+=($!)
    done
    # The subscription starts a moment after the program.
    sleep 1
}
stop_watching() { sleep 0.5; kill "${WATCHERS[@]}"; wait "${WATCHERS[@]}" 2>/dev/null || :; }
no_changes() {
    local pod
    stop_watching
    for pod in host "${PODS[@]}"; do
        [ ! -s "$WORK/changes.$pod" ] || fail "$pod was touched: $(cat "$WORK/changes.$pod")"
    done
}
