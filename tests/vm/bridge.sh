# Bridges of the host: their ports and tables, read by bridge(8) and iproute2, and pods behind them by a veth.
# shellcheck shell=bash
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"

# behind NAME BRIDGE: a pod with a veth whose other end is a port of the bridge.
behind() {
    pod_ns "$1"
    ip link add "to-$1" type veth peer name new0 netns "$1"
    ip -n "$1" link set new0 name eth0 up
    ip link set "to-$1" master "$2" up
}

# tables FILE: what the ports have in the tables of their bridges, without what the kernel added, its timers and the indexes.
tables() {
    {
        bridge -j vlan show | jq -S 'sort_by(.ifname)[]'
        bridge -j fdb show | jq -S 'map(select(.flags | index("self") | not) | select(.state == "static"))
            | map(select(.ifname == "eth0")) | sort_by(.mac, .vlan)[]'
        bridge -j mdb show | jq -S '[.[].mdb[]? | select(.state == "permanent") | del(.index)] | sort_by(.grp, .vid)[]'
        bridge -d -j link show | jq -S 'sort_by(.ifname)[] | del(.ifindex, .link, .flags, .link_index)'
        ip -d -j link show type bridge | jq -S '.[] | {ifname, address, mtu, flags: (.flags | sort)}'
        ip -j addr show | jq -S '.[] | select(.ifname | startswith("br")) | {ifname, addr: [.addr_info[].local]}'
        ip -j route | jq -S .
    } >"$1"
}

same_tables() {
    wait_for 15 "carrier on $NIC" nic_carrier
    tables "$WORK/tables.after"
    diff -U2 "$WORK/tables.before" "$WORK/tables.after" || fail "the bridge has changed"
}

dead() {
    local pod
    for pod in "${PODS[@]}"; do
        # shellcheck disable=SC2086 # One gateway.
        if answers "$pod" ${GATEWAYS[$pod]}; then fail "$pod still has a gateway: nothing was lost"; fi
    done
}

# uplink_lost: netfix calls every pod lost, and so it stays after another snapshot.
uplink_lost() {
    local pod round
    for round in 1 2; do
        expect_exit 2 nf check
        for pod in "${PODS[@]}"; do printed "$pod.*uplink"; done
        expect_exit 3 nf diff
        [ "$round" = 2 ] || expect_exit '1|4|5' nf snapshot
    done
}

# uplink_back: the NIC is up and a port as before, and the pods reach their gateways.
uplink_back() {
    expect_exit 0 nf restore --nic-wait 60s
    same_tables
    all_answer
    expect_exit 0 nf diff
    expect_exit 0 nf check
    expect_exit 0 nf snapshot
}
