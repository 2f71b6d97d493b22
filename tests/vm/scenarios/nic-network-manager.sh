#!/usr/bin/env bash
# lab: systemd igb
# NetworkManager sets what its profile has for the NIC when it activates it: netfix waits for that, sets the recorded value once where it is
# another, and names the profile.
# shellcheck source=tests/vm/network-manager.sh
. "$LAB_REPO/tests/vm/network-manager.sh"
# shellcheck source=tests/vm/nic.sh
. "$LAB_REPO/tests/vm/nic.sh"

gro() { ethtool -k "$NIC" | awk '/^generic-receive-offload/ {print $2}'; }
set_by_profile() { [ "$(ring "$NIC") $(gro)" = "512 off" ]; }
is_activated() { is_active 1; }

# set_once: what both have in common is no step, the ring is the recorded one and stays so, and the profile is active.
set_once() {
    grep -q "managed-link: nic $NIC rings: .*NetworkManager" "$OUT.err" || fail "the profile is not named"
    ! grep -q "nic $NIC features" "$OUT" "$OUT.err" || fail "netfix set what NetworkManager had set"
    stays 1024 ring "$NIC"
    [ "$(gro)" = off ] || fail "the feature of the profile is $(gro)"
    is_activated || fail "the profile is not active: $(nmcli device)"
    ip -br addr show "$NIC" | grep -q 192.0.2.2 || fail "the address of the profile is lost"
    all_answer
    no_step
}

gw_start
udev_start
profile nic '[connection]' id=nic uuid=11111111-1111-4111-8111-111111111111 type=ethernet interface-name="$NIC" \
    '[ethtool]' ring-rx=512 feature-gro=false '[ipv4]' method=manual address1=192.0.2.2/24 '[ipv6]' method=disabled
network_manager_start 1
set_by_profile || fail "NetworkManager has not set the NIC: ring $(ring "$NIC"), gro $(gro)"
ethtool -G "$NIC" rx 1024
wait_for 15 "carrier on $NIC" nic_carrier
pod_ns pod1
pod_link pod1 "$NIC" 0a:00:00:00:00:01
pod_net pod1 192.0.2.11/24 192.0.2.1
all_answer
expect_exit 0 nf snapshot

step "NetworkManager has activated its profile before the restore"
lost
wait_for 60 "the profile" is_activated
set_by_profile || fail "NetworkManager has not set the NIC: ring $(ring "$NIC"), gro $(gro)"
expect_exit 0 nf restore -v --nic-wait 60s --manager-wait "$GRACE"
set_once

step "NetworkManager activates it while netfix restores"
restore_round "$AT_ONCE" 1
cat "$OUT" "$OUT.err"
set_once
