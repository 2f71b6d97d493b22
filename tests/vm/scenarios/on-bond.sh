#!/usr/bin/env bash
# No VLAN: the macvlans are on the bond itself, whose primary is the NIC. First the port is lost, then everything.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"

gw_start
gw_vlan 0 10.3.0.1/24 fd00:3::1/64
node_bond active-backup miimon 100
ip link set bond4 type bond primary "$NIC"
ip addr add 192.0.2.2/24 dev bond4
ip route add default via 192.0.2.1 dev bond4
three_pods bond4
before_loss

step "driver reloaded: the bond has lost its port"
reload_driver
expect_exit 0 nf restore --nic-wait 60s
restored

step "driver and bonding reloaded: everything is gone"
unload_driver
modprobe -r bonding
load_driver
pods_dead
expect_exit 0 nf restore --nic-wait 60s
restored
