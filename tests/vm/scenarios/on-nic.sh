#!/usr/bin/env bash
# No VLAN at all: the macvlans stand on the NIC.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"

gw_start
gw_vlan 0 10.3.0.1/24 fd00:3::1/64
ip link set "$NIC" mtu 9000
nic_up
ip addr add 192.0.2.2/24 dev "$NIC"
ip route add default via 192.0.2.1 dev "$NIC"
three_pods "$NIC"
ip -n pod2 link set eth0 mtu 9000
tcp_open one pod1 TCP:10.3.0.1
before_loss
lost
expect_exit 0 nf restore --wait 60s
restored
tcp_works one after
