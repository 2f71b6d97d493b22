#!/usr/bin/env bash
# lab: igb linux-5.10
# A kernel that cannot give a NIC its ifindex back: netfix tells before a loss which rules and sockets name it, and afterwards until they
# are set again. All else is restored.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"
# shellcheck source=tests/vm/nic.sh
. "$LAB_REPO/tests/vm/nic.sh"

tidy() { nft flush ruleset; }

firewall() {
    nft -f - <<'RULES'
flush ruleset
table inet host {
    set nics { typeof iif; elements = { "eth0" }; }
    chain input {
        type filter hook input priority 0; policy drop;
        iif lo accept
        iif @nics meta l4proto { icmp, icmpv6 } accept
        iif "eth0" tcp dport 7001 accept
    }
}
RULES
}
listener() {
    [ -z "${LISTENER:-}" ] || { kill "$LISTENER" && wait "$LISTENER" || :; }
    socat TCP4-LISTEN:7001,so-bindtodevice="$NIC",fork,reuseaddr PIPE &
    LISTENER=$!
}
reaches() { ip netns exec gw busybox ping -c 1 -W 2 192.0.2.2 >/dev/null; }
echoes() { [ "$(echo hi | ip netns exec gw timeout 10 socat -t 5 - TCP4:192.0.2.2:7001)" = hi ]; }
works() {
    wait_for 5 "an answer of the host" reaches
    wait_for 5 "an echo" echoes
    all_answer
}
# told_before: as a warning, with the reason and the remedy.
told_before() {
    printed "^warning: ifindex-named: $NIC: 2 nft rules .* and 1 socket \(tcp port 7001 of socat.*\) name its ifindex $1\. A reload .* gives it another"
    printed "ifindex-named: .*load the ruleset again \(\`nft -f\`\) and restart the programs after it, or use its name.* This kernel cannot give it back: that needs Linux 5\.13"
}
# told_after THEN: as an error.
told_after() {
    printed "(error|critical): ifindex-named: $NIC: 2 nft rules .* and 1 socket \(tcp port 7001 of socat.*\) name its former ifindex $1 \($(index "$NIC") now\), and no packet matches or is received: load the ruleset again .* and restart the programs"
}

case $(uname -r) in 5.10.*) ;; *) fail "this is $(uname -r)" ;; esac
standard_node
gw_hide
ip addr add 192.0.2.2/24 dev "$NIC"
set_igb
firewall
listener
works
capture_nics "$WORK/before" "$NIC"
INDEX=$(index "$NIC")

step "told before a loss"
expect_exit 0 nf snapshot
told_before "$INDEX"
expect_exit 0 nf upgrade --dry-run --runtime none -- true
told_before "$INDEX"
expect_exit 1 nf check
told_before "$INDEX"

lost
step "told after it; all else is restored"
expect_exit 5 nf restore --nic-wait 20s
told_after "$INDEX"
printed "warning: ifindex-differs: $NIC: has ifindex $(index "$NIC") now, $INDEX in the checkpoint.*This kernel cannot give it back: that needs Linux 5\.13"
[ "$(index "$NIC")" != "$INDEX" ] || fail "the kernel gave $INDEX again"
all_answer
! reaches || fail "the firewall lets packets through all the same"
expect_exit 2 nf check
told_after "$INDEX"
expect_exit 5 nf restore
told_after "$INDEX"
# A snapshot does not make it well.
expect_exit 0 nf snapshot
expect_exit 2 nf check
told_after "$INDEX"

step "the remedy that it names"
firewall
listener
works
capture_nics "$WORK/after" "$NIC"
sed -i "s/^nftables:.*//" "$WORK"/{before,after}/attached
same_nics "$WORK/before" "$WORK/after" "$NIC"
expect_exit 0 nf restore
! grep ifindex- "$OUT" "$OUT.err" || fail "something is still said of the ifindex"
expect_exit 0 nf snapshot
INDEX=$(index "$NIC")
told_before "$INDEX"

step "a window ends with 5"
expect_exit 5 nf upgrade --foreground --yes --runtime none --nic-wait 20s --watch 1s -- bash -c "modprobe -r $DRIVER; modprobe $DRIVER"
told_after "$INDEX"
firewall
listener
works
expect_exit 0 nf snapshot

step "a window whose COMMAND does what it names"
declare -f firewall >"$WORK/firewall"
kill "$LISTENER"
expect_exit 0 nf snapshot
expect_exit 0 nf upgrade --foreground --yes --runtime none --nic-wait 20s --watch 1s -- \
    bash -c "modprobe -r $DRIVER; modprobe $DRIVER; until [ -e /sys/class/net/$NIC ]; do sleep 0.1; done; . $WORK/firewall; firewall"
LISTENER=
listener
works
