#!/usr/bin/env bash
# The NIC is a port of Open vSwitch, and the pod is behind it by a veth. ovs-vswitchd makes the new NIC a port again by itself, and nobody
# takes it up.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"
# shellcheck source=tests/vm/nic.sh
. "$LAB_REPO/tests/vm/nic.sh"

tidy() {
    ovs-vsctl --timeout=5 --no-wait del-br br0
    /usr/share/openvswitch/scripts/ovs-ctl stop
    # A daemon that was killed leaves it.
    ovs-dpctl del-dp ovs-system
    rmmod openvswitch
}

is_port() { [ "$(cat "/sys/class/net/$NIC/master/uevent" 2>/dev/null | sed -n 's/^INTERFACE=//p')" = ovs-system ]; }
ovs_ports() { ovs-vsctl list-ports br0 | sort; }

gw_start
gw_vlan 0 10.3.0.1/24
nic_up
ovs_start
ovs-vsctl add-br br0
ovs-vsctl add-port br0 "$NIC"
ip link set br0 up
ip addr add 10.3.0.2/24 dev br0
pod_ns pod1
ip link add to-pod1 type veth peer name new0 netns pod1
ip -n pod1 link set new0 name eth0 up
ip link set to-pod1 up
ovs-vsctl add-port br0 to-pod1
pod_net pod1 10.3.0.11/24 10.3.0.1
wait_for 15 "the port" is_port
ovs_ports >"$WORK/ports"

before_loss
expect_exit 0 nf check
expect_exit 0 nf upgrade --dry-run -- true
printed pod1

step "the driver is reloaded: the NIC is down"
reload_driver
if answers pod1 10.3.0.1; then fail "pod1 still has a gateway: nothing was lost"; fi
expect_exit 2 nf check
printed 'pod1.*uplink'
expect_exit 0 nf restore --nic-wait 60s --manager-wait 60s
if grep -qi unsupported "$OUT" "$OUT.err"; then fail "the port is called unsupported after it came back"; fi
is_port || fail "the NIC is not a port of Open vSwitch"
ip -br link show $NIC | grep -q '[<,]UP[,>]' || fail "the NIC is down"
ovs_ports | diff "$WORK/ports" - || fail "the ports of br0 have changed"
all_answer
expect_exit 0 nf diff
expect_exit 0 nf check

step "no daemon takes the port back: it is named"
kill "$(cat /run/openvswitch/ovs-vswitchd.pid)"
reload_driver
expect_exit '1|5' nf restore --nic-wait 60s --manager-wait 3s
printed 'ovs-vswitchd'
