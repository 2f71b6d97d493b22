#!/usr/bin/env bash
# lab: igb
# A NIC gets its ifindex back: nftables rules, IPsec policies and sockets that name it by its number work as before, from outside and from
# inside.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"
# shellcheck source=tests/vm/nic.sh
. "$LAB_REPO/tests/vm/nic.sh"

# Forwarding changes this too.
tidy() {
    ip xfrm policy flush
    ip xfrm state flush
    echo 0 >/proc/sys/net/ipv4/ip_forward
    echo 1 >/proc/sys/net/ipv4/conf/all/accept_redirects
}

# firewall: everything is dropped that no rule lets through the NIC by its number, alone or in a set; a network behind the host
# reaches the gateway only by masquerading.
firewall() {
    echo 1 >/proc/sys/net/ipv4/ip_forward
    ip netns add inner
    ip link add inner0 type veth peer name eth0 netns inner
    ip addr add 10.9.0.1/24 dev inner0
    ip link set inner0 up
    ip -n inner addr add 10.9.0.2/24 dev eth0
    ip -n inner link set eth0 up
    ip -n inner route add default via 10.9.0.1
    nft -f - <<'RULES'
table inet host {
    set nics { typeof iif; elements = { "eth0" }; }
    chain input {
        type filter hook input priority 0; policy drop;
        iif lo accept
        iif @nics icmp type { echo-request, echo-reply } accept
        iif "eth0" meta l4proto icmpv6 accept
        iif "eth0" tcp dport { 7001, 7002 } accept
        iif "eth0" meta l4proto { sctp, esp } accept
        iif "eth0" udp dport { 53, 67 } accept
    }
    chain out {
        type nat hook postrouting priority 100;
        oif "eth0" ip saddr 10.9.0.0/24 masquerade
    }
}
RULES
}

# listeners: two bound to the NIC, one to its link-local address.
listeners() {
    LLADDR=$(ip -j -6 addr show dev "$NIC" scope link | jq -r '.[].addr_info[0].local')
    socat TCP4-LISTEN:7001,so-bindtodevice="$NIC",fork,reuseaddr PIPE &
    socat TCP6-LISTEN:7002,bind="[$LLADDR%$NIC]",fork,reuseaddr PIPE &
    modprobe sctp
    socat SCTP4-LISTEN:7003,so-bindtodevice="$NIC",fork,reuseaddr PIPE &
    dns_and_dhcp
    BOUND=(TCP4:192.0.2.2:7001 "TCP6:[$LLADDR%eth1]:7002" SCTP4:192.0.2.2:7003)
}

# dns_and_dhcp: dnsmasq on the NIC alone, as a host of virtual machines has it.
dns_and_dhcp() {
    dnsmasq --keep-in-foreground --conf-file=/dev/null --pid-file= --user=root --bind-interfaces --interface="$NIC" --except-interface=lo \
        --no-resolv --no-hosts --address=/web.lab/10.9.0.9 --dhcp-range=192.0.2.100,192.0.2.200 --dhcp-leasefile="$WORK/leases" --no-ping &
}

# resolves TARGET: a query for the address of web.lab, as bytes; the answer ends with it.
resolves() {
    printf '\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x03web\x03lab\0\0\x01\0\x01' | ip netns exec gw socat -t 2 - "$1" | tail -c 4 |
        od -An -tu1 | grep -q '10 *9 *0 *9'
}
leases() { ip netns exec gw busybox udhcpc -i eth1 -f -n -q -t 3 -T 1 -s /bin/true 2>&1 | grep -q 'lease of 192.0.2.1'; }

# ipsec: what 10.8.0.2 of the host and 10.8.0.1 send each other, the host by a policy for this NIC alone.
ipsec() {
    local there
    ip addr add 10.8.0.2/24 dev "$NIC"
    ip -n gw addr add 10.8.0.1/24 dev eth1
    for there in "ip" "ip -n gw"; do
        security "$there" 10.8.0.2 10.8.0.1 0x101
        security "$there" 10.8.0.1 10.8.0.2 0x102
    done
    policy ip 10.8.0.2 10.8.0.1 dev "$NIC"
    policy "ip -n gw" 10.8.0.1 10.8.0.2
}
# security IP FROM TO SPI
security() {
    $1 xfrm state add src "$2" dst "$3" proto esp spi "$4" mode transport aead 'rfc4106(gcm(aes))' 0x0102030405060708090a0b0c0d0e0f1011121314 128
}
# policy IP FROM TO SELECTOR...
policy() { $1 xfrm policy add src "$2" dst "$3" "${@:4}" dir out tmpl src "$2" dst "$3" proto esp mode transport; }

# on_wire: what of three pings the other end sees.
on_wire() {
    local dump
    : >"$WORK/wire"
    ip netns exec gw timeout 60 tcpdump -ln --immediate-mode -i eth1 'host 10.8.0.2 and not arp' >>"$WORK/wire" 2>"$WORK/wire.err" &
    dump=$!
    wait_for 10 tcpdump grep -q listening "$WORK/wire.err"
    busybox ping -c 3 -W 2 -I "$NIC" 10.8.0.1 >/dev/null && echo answered >>"$WORK/wire"
    kill "$dump"
    wait "$dump" || :
}
encrypts() { on_wire; grep -q answered "$WORK/wire" && [ "$(grep -c 'ESP(spi=0x00000101' "$WORK/wire")" = 3 ] && ! grep -q ICMP "$WORK/wire"; }

# SCTP has no half-closed state: the client says nothing of an end before it has the echo.
echoes() { [ "$({ echo hi && sleep 1; } | ip netns exec gw timeout 10 socat -t 5 - "$1")" = hi ]; }
reaches() { ip netns exec "$1" busybox ping -c 1 -W 2 "$2" >/dev/null; }
works() {
    local target
    wait_for 5 "an answer of the host" reaches gw 192.0.2.2
    wait_for 5 "masquerading" reaches inner 192.0.2.1
    for target in "${BOUND[@]}"; do wait_for 5 "an echo from $target" echoes "$target"; done
    for target in UDP4:192.0.2.2:53 "UDP6:[$LLADDR%eth1]:53"; do wait_for 5 "an address from $target" resolves "$target"; done
    wait_for 5 "a lease" leases
    encrypts || fail "not encrypted: $(cat "$WORK/wire")"
    all_answer
}

# back INDEX: the NIC has it, and everything works and reads as before the loss.
back() {
    [ "$(index "$NIC")" = "$1" ] || fail "$NIC has ifindex $(index "$NIC"), not $1"
    nft list ruleset | cmp - "$WORK/rules" || fail "$(nft list ruleset)"
    works
    capture_nics "$WORK/after" "$NIC"
    same_nics "$WORK/before" "$WORK/after" "$NIC"
}

# begins_step: a thread is about to call unshare(2), number 272.
begins_step() { cat /proc/"$(pgrep -P "$TRACED")"/task/*/syscall | grep -q '^272 '; } 2>/dev/null

standard_node
gw_hide
ip addr add 192.0.2.2/24 dev "$NIC"
ip link property add dev "$NIC" altname lan0
ip link set "$NIC" alias uplink txqueuelen 500
set_igb
firewall
listeners
ipsec
works
nft list ruleset >"$WORK/rules"
capture_nics "$WORK/before" "$NIC"
INDEX=$(index "$NIC")
expect_exit 0 nf snapshot
no_step

lost
nft list ruleset | grep -q "oif $INDEX " || fail "the rules do not name a number without a device: $(nft list ruleset)"
expect_exit 3 nf diff
printed "link $NIC index $INDEX \(now"
dmesg -C
expect_exit 0 nf restore --nic-wait 20s
back "$INDEX"
[ "$(link_ups "$NIC")" = 1 ] || fail "the NIC got its carrier $(link_ups "$NIC") times: $(dmesg)"
no_step

step "a window, in which something sets the NIC up at once"
expect_exit 0 nf upgrade --foreground --yes --runtime none --nic-wait 20s --watch 1s -- \
    bash -c "modprobe -r $DRIVER; modprobe $DRIVER; ip link set $NIC up"
back "$INDEX"
no_step

step "--nic-index keep is told before, and leaves the new one, and a later restore does not interrupt the pods for it"
expect_exit 0 nf upgrade --dry-run --runtime none --nic-index keep -- true
printed "warning: ifindex-named: $NIC: 6 nft rules .* 6 sockets \(.*1 xfrm selector name its ifindex.*no packet matches or is received then: load the ruleset again.*netfix leaves it \(--nic-index keep\)"
echo 'nic-index = "keep"' >"$WORK/config.toml"
NETFIX_CONFIG=$WORK/config.toml expect_exit 0 nf snapshot
printed "warning: ifindex-named: $NIC: .*netfix leaves it"
NETFIX_CONFIG=$WORK/config.toml expect_exit 1 nf check
printed "warning: ifindex-named: $NIC: .*netfix leaves it"
expect_exit 0 nf check
expect_exit 5 nf upgrade --foreground --yes --runtime none --nic-wait 20s --watch 1s --nic-index keep \
    --after "echo \$NETFIX_RENUMBERED >$WORK/renumbered" -- bash -c "modprobe -r $DRIVER; modprobe $DRIVER"
printed "ifindex-named: $NIC: 6 nft rules .* name its former ifindex $INDEX"
printed "ifindex-differs: $NIC: has ifindex $(index "$NIC") now, $INDEX in the checkpoint.*--nic-index keep"
[ "$(index "$NIC")" != "$INDEX" ] || fail "the kernel gave $INDEX again"
[ "$(cat "$WORK/renumbered")" = "$NIC:$INDEX:$(index "$NIC")" ] || fail "$(cat "$WORK/renumbered")"
all_answer
ip link set "$NIC" up
on_wire
grep -q 'ICMP echo request' "$WORK/wire" || fail "the policy holds all the same: $(cat "$WORK/wire")"
dmesg -C
expect_exit 5 nf restore
printed "ifindex-differs: $NIC: .*interrupt the pods"
[ "$(link_ups "$NIC")" = 0 ] || fail "$(dmesg)"

step "another link has the ifindex"
reload_driver
ip link add taker index "$INDEX" type dummy
expect_exit 5 nf restore --nic-wait 20s
printed "ifindex-differs: $NIC: .*taker has it"
printed "error: ifindex-named: $NIC: 6 nft rules .* name its former ifindex $INDEX \($(index "$NIC") now\). taker has that one now"
all_answer
expect_exit 2 nf check
cp -a "$STATE" "$WORK/state"
expect_exit 0 nf snapshot
expect_exit 2 nf check
printed "ifindex-named: $NIC: .*taker has that one now"
# A person says that the rules are for the other link.
expect_exit 0 nf snapshot --accept host
expect_exit '0|1' nf check
ip link del taker
rm -rf "$STATE"
mv "$WORK/state" "$STATE"

step "the kernel refuses the step: all else is restored"
reload_driver
NETFIX_FAILPOINT_LOG=$WORK/points expect_exit 0 nf restore --nic-wait 20s
back "$INDEX"
first=$(awk '$2 == "unshare" {print $1; exit}' "$WORK/points")
reload_driver
NETFIX_FAILPOINT=$first:ENOSPC expect_exit 5 nf restore --nic-wait 20s
printed "ifindex-differs: $NIC: .*The kernel does not give it back: .*ENOSPC"
printed "error: ifindex-named: $NIC: 6 nft rules .* name its former ifindex $INDEX"
all_answer

step "the driver resets between the plan and the step: the new device gets the ifindex"
reload_driver
strace -qqf --seccomp-bpf -o /dev/null -e trace=unshare -e inject=unshare:delay_enter=5000000 \
    "$NETFIX" --state-dir "$STATE" restore --nic-wait 20s >"$OUT" 2>&1 &
TRACED=$!
wait_for 15 "the step" begins_step
reload_driver
wait "$TRACED" || fail "exit code $?: $(cat "$OUT")"
back "$INDEX"

SEED=${NETFIX_SEED:-$RANDOM}
step "killed at ${NETFIX_ROUNDS:-12} of the first 30 moments of the step (NETFIX_SEED=$SEED): the NIC is there, and the next restore completes"
for point in $(seq "$first" $((first + 29)) | shuf --random-source=<(yes "$SEED") | head -n "${NETFIX_ROUNDS:-12}"); do
    reload_driver
    NETFIX_FAILPOINT=$point:kill nf restore --nic-wait 20s >"$OUT" 2>&1 && fail "point $point: it was not killed"
    wait_for 5 "$NIC in the host's namespace after point $point" test -e "/sys/class/net/$NIC"
    expect_exit 0 nf restore --nic-wait 20s
    back "$INDEX"
done
