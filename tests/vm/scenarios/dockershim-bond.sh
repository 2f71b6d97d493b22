#!/usr/bin/env bash
# lab: systemd cgroup-v1 disk
# A real kubelet with dockershim, and its pods on bond4.3, as on the hosts of the incident: first the bond loses its port, then
# it is gone too.
# shellcheck source=tests/vm/dockershim.sh
. "$LAB_REPO/tests/vm/dockershim.sh"

gw_start
gw_vlan 3 10.3.0.1/24 fd00:3::1/64
node_bond balance-xor miimon 100
node_vlan 3 bond4.3 bond4
ip addr add 10.3.0.2/24 dev bond4.3
gw_hide
dockershim_node bond4.3
before_window

step "upgrade: the bond loses its port"
upgrade 0 -- "$RELOAD"
untouched

step "upgrade: the bond is gone"
upgrade 0 -- "modprobe -r e1000e; modprobe -r bonding; sleep 3; modprobe e1000e"
recorded '.pods | all(.rebuilt == false and .state == "restored")'
systemctl restart $KUBELET
untouched
