#!/usr/bin/env bash
# A node of a cluster with flannel: flannel.1 is a vxlan on the NIC, and a pod behind the bridge cni0 reaches the other node over it.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"

overlay() { # what the vxlan has, without the ifindex of the NIC
    ip -j -d link show flannel.1 | jq -c '.[0] | del(.stats64)'
    bridge -j fdb show dev flannel.1 | jq -cS '.[]' | sort
    ip -j neigh show dev flannel.1 nud permanent | jq -cS '.[]' | sort
    ip -j route show dev flannel.1 | jq -cS '.[]' | sort
    ip -j addr show dev flannel.1 | jq -c '.[0].addr_info[] | [.local, .prefixlen]'
}
reaches() { inside web busybox ping -c 1 -W 2 10.42.1.1 >/dev/null 2>&1; }

step "the other node, and this one"
gw_start
nic_up
ip addr add 192.0.2.2/24 dev "$NIC"
ip -n gw link add flannel.1 address 02:fa:00:00:00:11 type vxlan id 1 local 192.0.2.1 dev eth1 dstport 8472 nolearning
ip -n gw addr add 10.42.1.0/32 dev flannel.1
ip -n gw addr add 10.42.1.1/32 dev lo
ip -n gw link set flannel.1 up
ip -n gw route add 10.42.0.0/24 via 10.42.0.0 dev flannel.1 onlink
ip -n gw neigh add 10.42.0.0 lladdr 02:fa:00:00:00:10 nud permanent dev flannel.1
bridge -n gw fdb append 02:fa:00:00:00:10 dev flannel.1 dst 192.0.2.2 self permanent
ip link add flannel.1 mtu 1450 address 02:fa:00:00:00:10 type vxlan id 1 local 192.0.2.2 dev "$NIC" dstport 8472 nolearning
ip addr add 10.42.0.0/32 dev flannel.1
ip link set flannel.1 up
ip route add 10.42.1.0/24 via 10.42.1.0 dev flannel.1 onlink
ip neigh add 10.42.1.0 lladdr 02:fa:00:00:00:11 nud permanent dev flannel.1
bridge fdb append 02:fa:00:00:00:11 dev flannel.1 dst 192.0.2.1 self permanent
ip link add cni0 type bridge
ip addr add 10.42.0.1/24 dev cni0
ip link set cni0 up
busybox sysctl -qw net.ipv4.ip_forward=1
ip netns add web
ip -n web link set lo up
ip netns exec web sleep infinity &
ip link add vweb type veth peer name eth0 netns web
ip link set vweb master cni0 up
ip -n web link set eth0 up
ip -n web addr add 10.42.0.5/24 dev eth0
ip -n web route add default via 10.42.0.1
pod_ns pod1
pod_link pod1 "$NIC" 0a:00:00:00:00:01
pod_net pod1 192.0.2.11/24 192.0.2.1
gw_hide
tidy() { ip netns del web; ip link del cni0; busybox sysctl -qw net.ipv4.ip_forward=0; }
wait_for 15 "the pod's way to the other node" reaches
overlay >"$WORK/overlay"
before_loss
expect_exit 0 nf check

step "the vxlan goes with the NIC; nothing names it before, because it comes back"
reload_driver
[ ! -e /sys/class/net/flannel.1 ] || fail "flannel.1 is still there"
expect_exit 2 nf check
expect_exit 0 nf restore --nic-wait 60s
step "the pod reaches the other node, over the same vxlan"
wait_for 15 "the pod's way to the other node" reaches
overlay >"$WORK/overlay.after"
diff "$WORK/overlay" "$WORK/overlay.after" || fail "the overlay differs"
step "everything is as before, but for the timers of the bridge and the other end of a pair"
capture "$WORK/after"
same_but '_timer = |vweb.link_index = ' "$WORK/before" "$WORK/after" host pod1
all_answer
expect_exit 0 nf diff
expect_exit 0 nf check

step "after a loss without a window the guard brings the same back, for all pods"
SELECT=()
expect_exit 0 nf snapshot
reload_driver
[ ! -e /sys/class/net/flannel.1 ] || fail "flannel.1 is still there"
expect_exit 0 nf guard --once --watch 0s --manager-wait 0s
wait_for 15 "the pod's way to the other node" reaches
expect_exit 0 nf check

step "and where no pod is on the NIC itself"
ip netns del pod1
expect_exit 0 nf snapshot
reload_driver
expect_exit 0 nf guard --once --watch 0s --manager-wait 0s
wait_for 15 "the pod's way to the other node" reaches
expect_exit 0 nf check
