# Network managers beside netfix: the node is theirs, the driver is reloaded, and ip(8) and the managers' own tools check.
# shellcheck shell=bash
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"

# Restores and upgrades by turns.
ROUNDS=${NETFIX_ROUNDS:-20}
# A NIC that is up gets its ifindex back only where all pods are known.
SELECT=()
VLAN=$NIC.3
# An emulated processor is slow, and so are managers on it.
GRACE=90s

unpack_managers() {
    unpacked managers
    systemctl daemon-reload
}

# udev_start: managers configure what udev has finished with.
udev_start() {
    systemctl start systemd-udevd.service
    udevadm trigger --action=add --subsystem-match=net
    udevadm settle
}
udev_stop() { systemctl stop systemd-udevd.service systemd-udevd-control.socket systemd-udevd-kernel.socket; }

# dhcp_start: one address for the host's VLAN.
dhcp_start() {
    printf '%s\n' "interface eth1.3" "start 10.3.0.50" "end 10.3.0.50" "lease_file $WORK/leases" "option lease 600" \
        "option subnet 255.255.255.0" >"$WORK/udhcpd.conf"
    : >"$WORK/leases"
    ip netns exec gw busybox udhcpd -f "$WORK/udhcpd.conf" >/dev/null 2>&1 &
}

# gateway_node: the other end of the wire, with VLAN 3 and leases on it.
gateway_node() {
    gw_start
    gw_vlan 3 10.3.0.1/24 fd00:3::1/64
    dhcp_start
}

# over_bond: the VLAN is on bond4. The pods keep their links when the NIC goes: their parent has no carrier.
over_bond() {
    VLAN=bond4.3
    modprobe bonding max_bonds=0
    # shellcheck disable=SC2317 # This replaces another function.
    pods_dead() { ! nic_carrier || fail "the NIC is still there"; }
}

# facts: names, kinds, parents, MACs, addresses and routes of the host and of every pod, one line each. A link that its manager
# makes has another index than before. One jq(1) does all of it: an emulated processor starts few programs a second.
facts() {
    local name ip
    for name in host "${PODS[@]}"; do
        ip=(ip)
        [ "$name" = host ] || ip=(ip -n "$name")
        "${ip[@]}" -d -j addr show
        "${ip[@]}" -j route show
        "${ip[@]}" -6 -j route show
    done | jq -Sc -s --arg names "host ${PODS[*]}" '
        def link($ns): select(.ifname != "lo" and (.ifname | startswith("eth1") | not))
            | [$ns, .ifname, .master, .linkinfo.info_kind, .linkinfo.info_data.id, (if $ns == "host" then .link else null end), .address, .mtu,
               (.flags | contains(["UP", "LOWER_UP"])),
               ([.addr_info[] | select(.scope != "link") | [.local, .prefixlen, .dynamic]] | sort)];
        def route($ns): select(.dst | startswith("fe80") | not) | [$ns, .dst, .gateway, .dev, .prefsrc, .protocol];
        . as $all | ($names | split(" ") - [""]) | to_entries[] | .value as $ns | $all[.key * 3:(.key + 1) * 3]
        | ([.[0][] | link($ns)] | sort[]), ([.[1][], .[2][] | route($ns)] | sort[])'
}

# as_before: facts and owners become what they were, and stay so.
as_before() {
    local end=$((SECONDS + 60))
    until is_as_before; do
        [ "$SECONDS" -lt "$end" ] || fail "after $1: $(diff "$WORK/facts" "$WORK/facts-after" || :) -- $(cat "$OUT" "$OUT.err")"
        sleep 0.5
    done
    all_answer
}
is_as_before() {
    { facts && owners; } >"$WORK/facts-after" || :
    cmp -s "$WORK/facts" "$WORK/facts-after"
}

# Ways in which the driver comes back; the words are for a shell.
AT_ONCE="modprobe $DRIVER"
ASYNC="modprobe $DRIVER async_probe"
TWICE="modprobe $DRIVER; sleep 2; modprobe -r $DRIVER; sleep 0.5; modprobe $DRIVER async_probe"
ways=("$AT_ONCE" "$ASYNC" "$TWICE")

# restore_round WAY WAITING: netfix waits while the driver makes the NIC, or starts afterwards.
restore_round() {
    local job options=(-v --nic-wait 60s --manager-wait "$GRACE")
    [ "$1" != "$TWICE" ] || options+=(--watch 15s)
    unload_driver
    pods_dead
    if [ "$2" = 1 ]; then
        nf restore "${options[@]}" >"$OUT" 2>"$OUT.err" &
        job=$!
        sleep 1
        bash -c "$1"
        wait "$job" || fail "netfix restore: exit code $?: $(cat "$OUT" "$OUT.err")"
    else
        bash -c "$1"
        nf restore "${options[@]}" >"$OUT" 2>"$OUT.err" || fail "netfix restore: exit code $?: $(cat "$OUT" "$OUT.err")"
    fi
}

upgrade_round() {
    local settle=2s
    [ "$1" != "$TWICE" ] || settle=15s
    nf upgrade --foreground --yes --no-pause --manager-wait "$GRACE" --watch "$settle" -- bash -c "modprobe -r $DRIVER; sleep 1; $1" >"$OUT" 2>"$OUT.err" ||
        fail "netfix upgrade: exit code $?: $(cat "$OUT" "$OUT.err")"
}

# index_is NUMBER: the NIC has this ifindex. As a port of a bond that pods use, and beside ifupdown, it keeps the one that it came
# back with.
index_is() { [ "$VLAN" != "$NIC.3" ] || [ -e /run/network/ifstate ] || [ "$(cat "/sys/class/net/$NIC/ifindex")" = "$1" ]; }

# race: all rounds; the owner of every link is the same afterwards, and made what it owns. $MADE_BY_OWNER: 1 if netfix must not
# make the VLAN.
race() {
    local round way since index
    index=$(cat "/sys/class/net/$NIC/ifindex")
    step "the pods reach their gateways; snapshot"
    all_answer
    { facts && owners; } >"$WORK/facts"
    owners
    expect_exit 0 nf snapshot
    for ((round = 1; round <= ROUNDS; round++)); do
        way=${ways[(round + 1) / 2 % ${#ways[@]}]}
        since=$SECONDS
        if ((round % 2)); then
            restore_round "$way" $((round % 4 == 1))
            way="restore: $way"
        else
            upgrade_round "$way"
            way="upgrade: $way"
        fi
        as_before "round $round ($way)"
        index_is "$index" || fail "round $round ($way): $(ip -br link) -- $(cat "$OUT" "$OUT.err")"
        [ "${MADE_BY_OWNER:-}" != 1 ] || ! grep managed-link "$OUT" "$OUT.err" || fail "netfix made what its owner makes"
        step "round $round, $way: as before after $((SECONDS - since)) s"
    done
}
