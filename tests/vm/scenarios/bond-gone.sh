#!/usr/bin/env bash
# The bonding module is reloaded too: bond, VLAN and macvlans are all gone.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"

gw_start
gw_vlan 3 10.3.0.1/24 fd00:3::1/64
node_bond balance-xor miimon 100 updelay 200 xmit_hash_policy layer3+4 resend_igmp 3
ip link set bond4 mtu 1450
node_vlan 3 bond4.3 bond4
ip addr add 10.3.0.2/24 dev bond4.3
ip addr add 192.0.2.2/24 dev bond4
ip route add default via 192.0.2.1 dev bond4
three_pods bond4.3
tcp_open bound pod2 TCP:10.3.0.1 ,so-bindtodevice=eth0
before_loss

step "driver and bonding reloaded"
unload_driver
modprobe -r bonding
load_driver
pods_dead
! ip link show bond4 2>/dev/null || fail "bond4 still exists"

expect_exit 0 nf restore --nic-wait 60s
restored
tcp_works bound after
