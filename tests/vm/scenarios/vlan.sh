#!/usr/bin/env bash
# The incident: VLAN 3 on the NIC, three pods, one of them dual-stack, on a host with its own configuration.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"

host_extras() {
    ip link set "$NIC" txqueuelen 2000
    echo 2 >"/sys/class/net/$NIC/queues/rx-0/rps_cpus"
    echo 20000 >"/sys/class/net/$NIC/gro_flush_timeout"
    ip addr add 192.0.2.2/24 dev "$NIC"
    ip addr add 192.0.2.3/24 dev "$NIC"
    ip -6 addr add fd00:1::2/64 dev "$NIC"
    ip route add default via 192.0.2.1 dev "$NIC" metric 100
    ip link set "$NIC.3" down
    ip link set "$NIC.3" address 02:03:03:03:03:03 mtu 1400
    ip link set "$NIC.3" up
    ip -6 addr add fd00:3::2/64 dev "$NIC.3"
    ip route add 10.50.0.0/16 via 10.3.0.1 dev "$NIC.3" metric 50 src 10.3.0.2
    ip route add 10.60.0.0/16 via 172.31.0.1 dev "$NIC.3" onlink
    ip route add default via 10.3.0.1 dev "$NIC.3" table 100
    ip rule add from 10.3.0.2 lookup 100 priority 1000
    ip -6 route add fd00:60::/48 via fd00:3::1 dev "$NIC.3" metric 77
}

# Additional settings of CNI plugins and applications.
pod_extras() {
    # Changed while it was up: its link-local address stays that of the old MAC. Neighbours learn it from the first packet.
    ip -n pod1 link set eth0 address 0a:00:00:00:03:99
    pods_answer pod1
    pod_sysctl pod1 net.ipv4.conf.eth0.arp_notify 1
    pod_sysctl pod1 net.ipv6.conf.eth0.ndisc_notify 1
    pod_sysctl pod1 net.ipv4.conf.eth0.rp_filter 2
    ip -n pod1 link set eth0 txqueuelen 0
    ip -n pod1 link set eth0 alias "the pod's wire"
    ip -n pod1 link property add dev eth0 altname data0

    pod_sysctl pod2 net.ipv6.conf.eth0.disable_ipv6 1
    ip -n pod2 addr add 10.3.0.112/24 dev eth0
    ip -n pod2 addr add 10.33.0.12/16 brd + dev eth0 label eth0:app
    ip -n pod2 route add 10.70.0.0/16 via 10.3.0.1 dev eth0 metric 30 src 10.3.0.112
    ip -n pod2 route add 10.71.0.0/16 via 172.31.0.1 dev eth0 onlink
    ip -n pod2 route add 10.72.0.0/16 dev eth0 scope link table 200
    ip -n pod2 route add 10.73.0.0/16 via 10.3.0.1 mtu 1200 proto static
    ip -n pod2 route add blackhole 10.74.0.0/16
    ip -n pod2 rule add iif eth0 lookup 200 priority 1200
    ip -n pod2 neigh add 10.3.0.77 lladdr 0a:00:00:00:00:77 dev eth0 nud permanent

    pod_sysctl pod3 net.ipv6.conf.eth0.accept_ra 0
    ip -n pod3 link set eth0 mtu 1380
    ip -n pod3 -6 addr add fd00:3::113/64 dev eth0
    ip -n pod3 -6 route add fd00:70::/48 via fd00:3::1 dev eth0 metric 50
    ip -n pod3 -6 neigh add fd00:3::77 lladdr 0a:00:00:00:00:77 dev eth0 nud permanent
}

standard_node
# The gateway of the onlink routes.
ip -n gw addr add 172.31.0.1/32 dev eth1.3
host_extras
pod_extras
tcp_open free pod1 TCP:10.3.0.1
tcp_open bound pod2 TCP:10.3.0.1 ,so-bindtodevice=eth0
tcp_open six pod3 'TCP:[fd00:3::1]'
before_loss
expect_exit 0 nf list
expect_exit 0 nf diff

lost
capture "$WORK/lost"
differs "$WORK/before" "$WORK/lost" host "${PODS[@]}"
tcp_send free "sent while the wire was away"
expect_exit 3 nf diff
expect_exit 3 nf plan --exit-code
printed '^ *\+ vlan eth0\.3 on eth0'
expect_exit 0 nf restore --nic-wait 60s

restored
expect_exit 0 nf verify
step "TCP connections from before the loss work"
wait_for 60 "what was sent while the wire was away" tcp_echoed free "sent while the wire was away"
tcp_works free after
tcp_works bound after
tcp_works six after

step "nothing is lost: no command changes anything, not even additions that are in no checkpoint"
ip -n pod2 addr add 10.3.0.222/24 dev eth0
ip -n pod2 route add 10.88.0.0/16 via 10.3.0.1
ip addr add 192.0.2.99/24 dev "$NIC"
capture "$WORK/before"
watch_changes
expect_exit 0 nf restore --nic-wait 60s
expect_exit 0 nf restore --dry-run
expect_exit 0 nf plan
expect_exit 0 nf verify
expect_exit '0|3' nf diff
expect_exit 0 nf list
expect_exit 0 "$NETFIX" --state-dir "$STATE" show pod1
expect_exit 0 nf snapshot
no_changes
capture "$WORK/after"
same "$WORK/before" "$WORK/after"
tcp_works bound "after nothing"

step "the metrics name the driver of the NIC"
# They are of the node, and the snapshot was of some pods.
expect_exit '0|1|2' "$NETFIX" --state-dir "$STATE" check -q --textfile "$WORK/netfix.prom"
grep "^netfix_nic_info{device=\"$NIC\",driver=\"e1000e\",version=\"[^\"]" "$WORK/netfix.prom" || fail "$(cat "$WORK/netfix.prom")"
