#!/usr/bin/env bash
# lab: systemd igb
# Programs that set a NIC when it appears: udev by a .link file, tuned by its profile; and irqbalance all the time. netfix goes after
# them, sets each recorded value once, and leaves the affinity of interrupts to irqbalance.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"
# shellcheck source=tests/vm/nic.sh
. "$LAB_REPO/tests/vm/nic.sh"

FILES=/run/systemd/network
BALANCER=
TUNED=

tidy() {
    rm -rf "$FILES"/10-igb.link /etc/tuned/lab /run/tuned
    [ -z "$BALANCER" ] || kill "$BALANCER" 2>/dev/null || :
    [ -z "$TUNED" ] || kill "$TUNED" 2>/dev/null || :
    systemctl stop systemd-udevd.service systemd-udevd-kernel.socket systemd-udevd-control.socket
}

# tuned_start: tuned has a profile with a ring, and sets it on every NIC that appears, as versions since 2.25 do.
tuned_start() {
    local plugin=/usr/lib/python3/dist-packages/tuned/plugins/plugin_net.py
    grep -q subscribe "$plugin" || cat >>"$plugin" <<'END'


def _init_devices(self, first=NetTuningPlugin._init_devices):
	first(self)
	self._hardware_inventory.subscribe(self, "net", self._hardware_events_callback)

NetTuningPlugin._init_devices = _init_devices
END
    mkdir -p /etc/tuned/lab
    printf '%s\n' '[main]' 'summary=a ring' '[net]' "devices=$NIC" dynamic=0 'ring=rx 512' >/etc/tuned/lab/tuned.conf
    tuned --pid --no-dbus --no-socket --profile lab >"$WORK/tuned.log" 2>&1 &
    TUNED=$!
}

ring_is() { [ "$(ring "$NIC")" = "$1" ]; }

# by_hand: the ring that is recorded, which no program has in its configuration.
by_hand() {
    ring_is 1024 || ethtool -G "$NIC" rx 1024
    wait_for 15 "carrier on $NIC" nic_carrier
    all_answer
    expect_exit 0 nf snapshot
}

# set_once OWNER: the restore before named the program that sets another ring, which does not come back.
set_once() {
    grep -q "managed-link: nic $NIC rings: .*$1" "$OUT.err" || fail "$1 is not named"
    stays 1024 ring "$NIC"
    no_step
    all_answer
}

systemctl start systemd-udevd.service
standard_node
mkdir -p "$FILES"
printf '%s\n' '[Match]' Driver=igb '[Link]' NamePolicy= Name="$NIC" RxBufferSize=512 >"$FILES/10-igb.link"
udevadm control --reload
vector=$(vectors_of "$NIC" | tail -n 1)
echo 2 >"/proc/irq/$(irq_of "$vector")/smp_affinity_list"
by_hand

step "a .link file has another ring: the recorded one is set once, and the file is named"
lost
udevadm settle
ring_is 512 || fail "udev has not set the ring: $(ring "$NIC")"
expect_exit 0 nf restore --nic-wait 60s
set_once 10-igb.link
printf '%s\n' '[Match]' Driver=igb '[Link]' NamePolicy= Name="$NIC" >"$FILES/10-igb.link"
udevadm control --reload

step "tuned has another ring, and sets it before the restore"
unpacked owners
tuned_start
wait_for 60 "the ring of tuned $(cat "$WORK/tuned.log")" ring_is 512
by_hand
lost
wait_for 20 "the ring of tuned" ring_is 512
expect_exit 0 nf restore --nic-wait 60s
set_once tuned

step "tuned sets it while netfix restores"
unload_driver
nf restore --nic-wait 60s >"$OUT" 2>"$OUT.err" &
job=$!
sleep 1
load_driver
wait "$job" || fail "netfix restore: exit code $?: $(cat "$OUT" "$OUT.err")"
set_once tuned
# At its end it sets what was there before it.
kill "$TUNED"
wait "$TUNED" || :

step "irqbalance runs: the affinity is its own"
irqbalance --foreground --interval=5 >"$WORK/irqbalance.log" 2>&1 &
BALANCER=$!
by_hand
lost
expect_exit 0 nf restore --nic-wait 60s -v
! grep -q "nic $NIC irqs .* = " "$OUT" || fail "netfix sets the affinity beside irqbalance"
stays 1024 ring "$NIC"
kill "$BALANCER"
