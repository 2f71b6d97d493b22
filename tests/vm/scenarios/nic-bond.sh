#!/usr/bin/env bash
# lab: igb
# A bond over NICs of two drivers, which are both unloaded: the settings of each port are set before it joins, so that the bond keeps
# its carrier from its first port on. The ports come back in their order, which is not that of their ifindexes.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"
# shellcheck source=tests/vm/nic.sh
. "$LAB_REPO/tests/vm/nic.sh"

SECOND=eth1

# bond MODE OPTIONS...: with pods on its VLAN 3.
bond() {
    ip link add bond4 type bond mode "$@"
    ip link set "$NIC" down
    ip link set "$SECOND" down
    ip link set "$SECOND" master bond4
    ip link set "$NIC" master bond4
    [ "$(slaves)" = "$SECOND $NIC" ] || fail "bond4 has $(slaves)"
    ip link set bond4 up
    ip link set "$NIC" up
    ip link set "$SECOND" up
    wait_for 15 "carrier on bond4" bond_carrier
    node_vlan 3 bond4.3 bond4
    ip addr add 10.3.0.2/24 dev bond4.3
    three_pods bond4.3
}
slaves() { cat /sys/class/net/bond4/bonding/slaves; }
bond_carrier() { [ "$(cat /sys/class/net/bond4/carrier)" = 1 ]; }
bond_ups() { cat /sys/class/net/bond4/carrier_up_count; }

set_second() {
    ethtool -G "$SECOND" rx 1024 tx 512
    ethtool -C "$SECOND" rx-usecs 60
    ethtool -K "$SECOND" gro off tso off
}

reload_both() {
    modprobe -r igb e1000e
    modprobe igb
    modprobe e1000e
    [ -z "$(slaves)" ] || fail "bond4 has a port"
}

back() {
    local ups
    ups=$(bond_ups)
    expect_exit 0 nf restore --nic-wait 20s
    [ "$(bond_ups)" = $((ups + 1)) ] || fail "bond4 got its carrier $(($(bond_ups) - ups)) times: $(dmesg | tail -n 30)"
    [ "$(slaves)" = "$SECOND $NIC" ] || fail "the ports of bond4 are $(slaves)"
    capture_nics "$WORK/after" "$NIC" "$SECOND"
    same_nics "$WORK/before" "$WORK/after" "$NIC" "$SECOND"
    all_answer
    no_step
}

modprobe bonding max_bonds=0
gw_start
# Its first free name.
modprobe e1000e
wait_for 10 "the second NIC" test -e "/sys/class/net/$SECOND"
gw_vlan 3 10.3.0.1/24 fd00:3::1/64

step "802.3ad, with a queue for each port"
bond 802.3ad miimon 100 lacp_rate fast xmit_hash_policy layer3+4
set_igb
set_second
ip link set "$NIC" type bond_slave queue_id 2
ip link set "$SECOND" type bond_slave queue_id 3
all_answer
capture_nics "$WORK/before" "$NIC" "$SECOND"
expect_exit 0 nf snapshot
reload_both
back

step "active-backup, with a priority for each port"
for pod in "${PODS[@]}"; do ip netns del "$pod"; done
PODS=()
ip link del bond4
bond active-backup miimon 100
ip link set "$NIC" type bond_slave prio 7
ip link set "$SECOND" type bond_slave prio 9
all_answer
capture_nics "$WORK/before" "$NIC" "$SECOND"
expect_exit 0 nf snapshot
reload_both
back
