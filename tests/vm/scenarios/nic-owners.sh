#!/usr/bin/env bash
# lab: systemd igb
# Programs that set a NIC when it appears: udev by a .link file, tuned, and irqbalance all the time. netfix goes after them, sets each
# recorded value once, and leaves the affinity of interrupts to irqbalance.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"
# shellcheck source=tests/vm/nic.sh
. "$LAB_REPO/tests/vm/nic.sh"

FILES=/run/systemd/network
BALANCER=

tidy() {
    rm -rf "$FILES"/10-igb.link /etc/tuned/active_profile /etc/tuned/lab /run/tuned
    [ -z "$BALANCER" ] || kill "$BALANCER" 2>/dev/null || :
    systemctl stop systemd-udevd.service systemd-udevd-kernel.socket systemd-udevd-control.socket
}

ring() { ethtool -g "$NIC" | sed '1,/Current/d' | awk '$1 == "RX:" {print $2}'; }

# stays COMMAND VALUE: the same for ten seconds.
stays() {
    local second
    for second in {1..10}; do
        [ "$($1)" = "$2" ] || fail "$1 is $($1) after $second s, not $2"
        sleep 1
    done
}

systemctl start systemd-udevd.service
standard_node
mkdir -p "$FILES"
printf '%s\n' '[Match]' Driver=igb '[Link]' NamePolicy= Name="$NIC" RxBufferSize=512 >"$FILES/10-igb.link"
udevadm control --reload
ethtool -G "$NIC" rx 1024
wait_for 15 "carrier on $NIC" nic_carrier
vector=$(vectors_of "$NIC" | tail -n 1)
echo 2 >"/proc/irq/$(irq_of "$vector")/smp_affinity_list"
all_answer
expect_exit 0 nf snapshot

step "a .link file has another ring: the recorded one is set once, and the file is named"
lost
udevadm settle
[ "$(ring)" = 512 ] || fail "udev has not set the ring: $(ring)"
expect_exit 0 nf restore --wait 60s
grep -q "managed-link: nic $NIC rings: .*10-igb.link" "$OUT.err" || fail "the file is not named"
stays ring 1024
no_step
all_answer

step "irqbalance runs: the affinity is its own"
unpacked owners
irqbalance --foreground --interval=5 >"$WORK/irqbalance.log" 2>&1 &
BALANCER=$!
expect_exit 0 nf snapshot
lost
expect_exit 0 nf restore --wait 60s -v
! grep -q "nic $NIC irqs .* = " "$OUT" || fail "netfix sets the affinity beside irqbalance"
stays ring 1024
kill "$BALANCER"
