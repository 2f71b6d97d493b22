#!/usr/bin/env bash
# Tunnels on the NIC stay without it and get the new one. What cannot have it again is named before the loss and after it.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"

LOCAL=192.0.2.2 REMOTE=192.0.2.1 LOCAL6=fd00:1::2 REMOTE6=fd00:1::1
TUNNELS=(gre1 tap1 ers1 ipip1 sit1 vti1 gre6 tap6 tnl6 vti6)

# tunnels_of NAMESPACE DEVICE LOCAL REMOTE LOCAL6 REMOTE6
tunnels_of() {
    local ip=(ip -n "$1") dev=$2 v4=(local "$3" remote "$4") v6=(local "$5" remote "$6")
    "${ip[@]}" link add gre1 type gre "${v4[@]}" dev "$dev" key 77 ttl 64
    "${ip[@]}" link add tap1 mtu 1300 type gretap "${v4[@]}" dev "$dev" key 78
    "${ip[@]}" link add ers1 type erspan seq key 30 "${v4[@]}" dev "$dev" erspan_ver 1 erspan 123
    "${ip[@]}" link add ipip1 type ipip "${v4[@]}" dev "$dev"
    "${ip[@]}" link add sit1 type sit "${v4[@]}" dev "$dev" ttl 33
    "${ip[@]}" link add vti1 type vti "${v4[@]}" dev "$dev" key 5
    "${ip[@]}" link add gre6 type ip6gre "${v6[@]}" dev "$dev" key 79
    "${ip[@]}" link add tap6 type ip6gretap "${v6[@]}" dev "$dev" key 80
    "${ip[@]}" link add tnl6 type ip6tnl mode any "${v6[@]}" dev "$dev" encaplimit none
    "${ip[@]}" link add vti6 type vti6 "${v6[@]}" dev "$dev" key 6
    for one in "${TUNNELS[@]}"; do "${ip[@]}" link set "$one" up; done
}
# The lower device by name, without what the kernel counts.
shown() { for one in "${TUNNELS[@]}"; do ip -j -d link show "$one" | jq -c '.[0] | del(.stats64)'; done; }

gw_start
ip -n gw addr add "$REMOTE6/64" dev eth1 nodad
nic_up
ip addr add "$LOCAL/24" dev "$NIC"
ip addr add "$LOCAL6/64" dev "$NIC" nodad
mkdir -p /run/netns
tunnels_of gw eth1 "$REMOTE" "$LOCAL" "$REMOTE6" "$LOCAL6"
ln -s /proc/1/ns/net /run/netns/self
tunnels_of self "$NIC" "$LOCAL" "$REMOTE" "$LOCAL6" "$REMOTE6"
rm /run/netns/self
ip -n gw addr add 10.9.0.1/30 dev gre1
ip addr add 10.9.0.2/30 dev gre1
ip route add 10.10.0.0/16 via 10.9.0.1 dev gre1
ip link add amt1 type amt mode gateway local "$LOCAL" discovery "$REMOTE" dev "$NIC" gateway_port 2268 relay_port 2268 max_tunnels 9 ||
    echo "no amt here"
step "what cannot be had again"
ip link add xfrm1 type xfrm dev "$NIC" if_id 7
# On the NIC itself it would leave no room for macvlans.
node_vlan 3 "$NIC.3" "$NIC"
ip link add link "$NIC.3" macsec1 type macsec encrypt on
ip link add dummy9 type dummy
ip link add hsr1 type hsr slave1 "$NIC" slave2 dummy9 || echo "no hsr here"
pod_ns pod1
pod_link pod1 "$NIC" 0a:00:00:00:00:01
pod_net pod1 192.0.2.11/24 192.0.2.1
gw_hide
# The drivers of tunnels have devices of their own, which go with them.
tidy() {
    for one in "${TUNNELS[@]}" xfrm1 hsr1 dummy9; do ip link del "$one" || :; done
    for one in ip6_vti ip6_gre ip6_tunnel ip_vti sit ipip ip_gre; do modprobe -qr "$one" || :; done
}
alive() { busybox ping -c 1 -W 2 10.9.0.1 >/dev/null 2>&1; }
wait_for 15 "the other end of gre1" alive
shown >"$WORK/tunnels"
expect_exit '0|5' nf snapshot -o json
problem unsupported xfrm1
problem unsupported macsec1 keys
[ ! -e /sys/class/net/hsr1 ] || problem unsupported hsr1
! grep -E 'gre1|sit1|tnl6|vti6' "$OUT" | grep unsupported || fail "what comes back is named"

reload_driver
ip link show gre1
expect_exit 2 nf check
expect_exit 5 nf restore --nic-wait 60s -o json
problem unsupported xfrm1 "$NIC"
problem unsupported macsec1 kind
step "each tunnel has the new NIC, and all else that it had"
shown >"$WORK/tunnels.after"
diff "$WORK/tunnels" "$WORK/tunnels.after" || fail "the tunnels differ"
wait_for 15 "the other end of gre1" alive
pods_answer pod1
expect_exit '1|2' nf check
ip link show type amt
step "the way out of a lost xfrm"
ip link del xfrm1
ip link add xfrm1 type xfrm dev "$NIC" if_id 7
expect_exit '0|5' nf restore -o json
! grep -q xfrm1 "$OUT" || fail "xfrm1 is still named"
