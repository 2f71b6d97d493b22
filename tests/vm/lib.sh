# Helpers for the scenarios: they build a node, its gateway and its pods with ip(8), unload the NIC's driver, and check.
# Sourced inside the lab VM by every scenario; see scripts/lab.
# shellcheck shell=bash
set -Eeuo pipefail
trap 'echo "FAIL ${BASH_SOURCE[0]##*/}:$LINENO: $BASH_COMMAND" >&2' ERR
# scripts/lab-guest removes processes, namespaces and links before the next scenario; a scenario that leaves anything else,
# and is not the last of its VM, removes it with its own `tidy`.
tidy() { :; }
leave() {
    # Under systemd, a failure is shown with the logs of the services.
    [ "$1" = 0 ] || [ ! -d /run/systemd/system ] || journalctl -b -q --no-pager -n 40 _TRANSPORT=stdout + _TRANSPORT=journal >&2
    trap - ERR
    tidy >/dev/null 2>&1
}
trap 'leave $? || :' EXIT

# shellcheck source=tests/vm/capture.sh
. "$LAB_REPO/tests/vm/capture.sh"

NIC=eth0
DRIVER=e1000e
[[ $LAB_NEEDS != *" igb "* ]] || DRIVER=igb
STATE=/run/netfix-lab/state
WORK=/run/netfix-lab/work
OUT=$WORK/out
PODS=()
declare -A GATEWAYS=() # pod -> the gateway addresses it must reach
# Only the pods: the gateway's namespace is part of the wire.
SELECT=(--netns '/run/netns/pod*')
mkdir -p "$STATE" "$WORK"

step() { printf '== %s\n' "$*"; }
fail() { printf 'FAIL %s\n' "$*" >&2; trap - ERR; exit 1; }
inside() { local pod=$1; shift; ip netns exec "$pod" "$@"; }

# wait_for SECONDS WHAT CMD...: polls, because there is no event to wait for. A busy machine needs more time.
wait_for() {
    local end=$((SECONDS + 5 * $1)) what=$2
    shift 2
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || fail "timed out waiting for $what"
        sleep 0.1
    done
}

# ---- the gateway: the other end of the wire

gw_start() {
    ip netns add gw
    # Through a namespace that ends. Where a link of the host was moved to, netfix expects a namespace that it can find.
    ip netns add wire
    ip link set eth1 netns wire
    ip -n wire link set eth1 netns gw
    ip netns del wire
    ip -n gw link set lo up
    ip -n gw link set eth1 mtu 9000 up
    # The router of the host's own network, which has no VLAN.
    ip -n gw addr add 192.0.2.1/24 dev eth1
    gw_echo
}

# gw_echo: the echo servers, in the gateway's namespace: netfix takes it for a pod, unless others are selected.
gw_echo() {
    ip netns exec gw socat TCP4-LISTEN:7000,fork,reuseaddr PIPE &
    ECHOES=($!)
    ip netns exec gw socat TCP6-LISTEN:7000,ipv6only=1,fork,reuseaddr PIPE &
    ECHOES+=($!)
}

# gw_hide: from now on only an open file keeps the gateway's namespace, no process and no mount. So netfix does not
# find it, as on any real host, and finds only the pods.
gw_hide() {
    kill "${ECHOES[@]}"
    wait "${ECHOES[@]}" || :
    exec {GW}</run/netns/gw
    ip netns del gw
    ns_name gw "/proc/$$/fd/$GW"
    SELECT=()
}

# ns_name NAME PATH: a name for ip(8) without a mount, so that the kernel does not list it.
ns_name() { ln -s "$2" "/run/netns/$1"; }

# gw_vlan ID ADDRESS... [-- LINK TYPE OPTIONS]: VLAN 0 is the untagged wire.
gw_vlan() {
    local dev=eth1.$1 id=$1 address
    shift
    local addresses=()
    while [ $# -gt 0 ] && [ "$1" != -- ]; do addresses+=("$1"); shift; done
    [ $# -eq 0 ] || shift
    if [ "$id" = 0 ]; then dev=eth1; else
        ip -n gw link add link eth1 name "$dev" type vlan id "$id" "$@"
        ip -n gw link set "$dev" up
    fi
    for address in "${addresses[@]}"; do
        case $address in
        *:*) ip -n gw addr add "$address" dev "$dev" nodad ;;
        *) ip -n gw addr add "$address" dev "$dev" ;;
        esac
    done
}

# ---- the node

nic_carrier() { ip -br link show "$NIC" 2>/dev/null | grep -q LOWER_UP; }
nic_up() { ip link set "$NIC" up; wait_for 15 "carrier on $NIC" nic_carrier; }

# node_vlan ID NAME PARENT [LINK TYPE OPTIONS]
node_vlan() {
    local id=$1 name=$2 parent=$3
    shift 3
    ip link add link "$parent" name "$name" type vlan id "$id" "$@"
    ip link set "$name" up
}

# node_bond MODE [OPTIONS]: bond4 over the NIC, as on the hosts of the incident.
node_bond() {
    modprobe bonding max_bonds=0
    ip link add bond4 type bond mode "$@"
    ip link set "$NIC" down
    ip link set "$NIC" master bond4
    ip link set bond4 up
    nic_up
}

# The incident: unloading the driver removes the NIC and everything on it.
unload_driver() { modprobe -r "$DRIVER"; }
load_driver() { modprobe "$DRIVER"; }
reload_driver() { unload_driver; load_driver; }

# The second NIC, whose driver is not that of the first. The gateway has left its name free.
reload_second() {
    modprobe -r e1000
    modprobe e1000
    wait_for 10 "the second NIC" test -e /sys/class/net/eth1
}

# ---- pods

# pod_ns NAME: a namespace with a mounted name and a process in it.
pod_ns() {
    ip netns add "$1"
    ip -n "$1" link set lo up
    ip netns exec "$1" sleep infinity &
    PODS+=("$1")
}

# pod_link NAME PARENT MAC [TYPE OPTIONS]: created like the CNI plugin does, on a host that has its own eth0.
pod_link() {
    local pod=$1 parent=$2 mac=$3
    shift 3
    [ $# -gt 0 ] || set -- macvlan mode bridge
    local address=()
    [ "$mac" = - ] || address=(address "$mac")
    ip link add link "$parent" name new0 netns "$pod" "${address[@]}" type "$@"
    ip -n "$pod" link set new0 name eth0 up
}

# pod_net NAME ADDRESS/LEN GATEWAY, once for each family.
pod_net() {
    local nodad=()
    [[ $2 != *:* ]] || nodad=(nodad)
    ip -n "$1" addr add "$2" dev eth0 "${nodad[@]}"
    ip -n "$1" route add default via "$3" dev eth0
    GATEWAYS[$1]="${GATEWAYS[$1]:-} $3"
}

# pod_sysctl POD KEY VALUE
pod_sysctl() { inside "$1" busybox sysctl -qw "$2=$3"; }

# three_pods PARENT: pod1..pod3 at .11 to .13, the third with IPv6 too.
three_pods() {
    local n
    for n in 1 2 3; do
        pod_ns "pod$n"
        pod_link "pod$n" "$1" "0a:00:00:00:03:1$n"
        pod_net "pod$n" "10.3.0.1$n/24" 10.3.0.1
    done
    pod_net pod3 fd00:3::13/64 fd00:3::1
}

# vlan_node: VLAN 3 on the NIC, and the gateway at the other end of it.
vlan_node() {
    gw_start
    gw_vlan 3 10.3.0.1/24 fd00:3::1/64
    nic_up
    node_vlan 3 "$NIC.3" "$NIC"
    ip addr add 10.3.0.2/24 dev "$NIC.3"
}

# standard_node: a VLAN and three pods on it; most scenarios start from here.
standard_node() {
    vlan_node
    three_pods "$NIC.3"
}

# unpacked FOLDER: what scripts/setup has unpacked there becomes part of this VM alone.
unpacked() {
    [ -e "$LAB_REPO/target/lab/$1/ready" ] || fail "no $1 under target/lab: run scripts/setup"
    tar -C "$LAB_REPO/target/lab/$1" --exclude ./ready -c . | tar -C / -x --keep-directory-symlink
    ldconfig
}

# ---- the program under test

nf() {
    local command=$1
    shift
    "$NETFIX" --state-dir "$STATE" "$command" "${SELECT[@]}" "$@"
}

# install_units: like an administrator.
install_units() {
    ln -sf "$NETFIX" /usr/bin/netfix
    install -m 644 "$LAB_REPO"/contrib/systemd/netfix-* /etc/systemd/system/
    systemctl daemon-reload
}

# expect_exit CODE[|CODE] CMD...: prints the output, and keeps it in $OUT (stdout) and $OUT.err.
expect_exit() {
    local want=$1 got=0
    shift
    printf '$ netfix %s\n' "${*:2}"
    "$@" >"$OUT" 2>"$OUT.err" || got=$?
    cat "$OUT" "$OUT.err"
    [[ $got =~ ^($want)$ ]] || fail "exit code $got, not $want: $*"
}

# before_loss: saves the state that must return, and netfix's snapshot of it.
before_loss() {
    step "the pods reach their gateways; snapshot"
    all_answer
    capture "$WORK/before"
    expect_exit 0 nf snapshot
}

# lost: the driver was reloaded, nothing is repaired.
lost() {
    step "driver reloaded: the pods have no network"
    reload_driver
    pods_dead
}

# restored: everything is exactly as before the loss, and works.
restored() {
    step "everything is as before"
    capture "$WORK/after"
    same "$WORK/before" "$WORK/after"
    all_answer
    expect_exit 0 nf diff
}

printed() { grep -qiE -- "$1" "$OUT" "$OUT.err" || fail "nothing in the output matches: $1"; }

# problem CODE WORD...: the JSON document in $OUT has a problem with that code that contains each word.
problem() {
    local code=$1 word
    shift
    for word in "$@"; do
        jq -e --arg code "$code" --arg word "$word" \
            'any(.problems[]; .code == $code and (tojson | contains($word)))' "$OUT" >/dev/null ||
            fail "no problem $code naming $word: $(jq -c .problems "$OUT")"
    done
}

# ---- checks with ip and arping alone

pods_dead() {
    local pod left
    for pod in "${PODS[@]}"; do
        left=$(ip -n "$pod" -br link | awk '{print $1}' | xargs)
        [ "$left" = lo ] || fail "$pod must have lo only, it has: $left"
    done
}

answers() {
    case $2 in
    *:*) inside "$1" busybox ping6 -c 1 -W 2 "$2" >/dev/null 2>&1 ;;
    *) inside "$1" arping -q -c 1 -w 2 -I eth0 "$2" >/dev/null 2>&1 ;;
    esac
}

all_answer() { pods_answer "${PODS[@]}"; }
pods_answer() {
    local pod gateway
    for pod in "$@"; do
        for gateway in ${GATEWAYS[$pod]}; do
            answers "$pod" "$gateway" || answers "$pod" "$gateway" || fail "$pod: no answer from its gateway $gateway"
        done
    done
}

# ---- TCP connections to the gateway's echo server

# tcp_open ID POD TARGET [,SOCAT OPTIONS]
tcp_open() {
    mkfifo "$WORK/$1.in"
    inside "$2" socat STDIO "$3:7000${4:-}" <>"$WORK/$1.in" >"$WORK/$1.out" 2>"$WORK/$1.err" &
    tcp_works "$1" "before the loss"
}

tcp_send() { printf '%s\n' "$2" >"$WORK/$1.in"; }
tcp_echoed() { grep -qxF -- "$2" "$WORK/$1.out"; }
tcp_works() {
    tcp_send "$1" "$2"
    wait_for 15 "the echo of '$2' on TCP connection $1 $(cat "$WORK/$1.err")" tcp_echoed "$1" "$2"
}
