#!/usr/bin/env bash
# Qdiscs, classes, filters and actions of kinds that need modules, in pods and on the host's links.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"

vlan_node

NUMBER=10
# pod TREE: a pod with these lines for tc(8).
pod() {
    local name=pod$NUMBER mac line
    printf -v mac '0a:00:00:00:04:%02x' "$NUMBER"
    pod_ns "$name"
    pod_link "$name" "$NIC.3" "$mac"
    pod_net "$name" "10.3.0.$NUMBER/24" 10.3.0.1
    NUMBER=$((NUMBER + 1))
    while read -r line; do
        # shellcheck disable=SC2086
        tc -n "$name" $line || fail "tc $line"
    done <<<"$1"
}

step "pods with qdiscs"
ROOT="qdisc add dev eth0 root"
pod "$ROOT fq"
pod "$ROOT fq limit 5000 flow_limit 70 quantum 3000 initial_quantum 9000 maxrate 50mbit ce_threshold 3ms horizon 4s"
pod "$ROOT fq_codel"
pod "$ROOT fq_codel limit 900 flows 512 target 7ms interval 90ms quantum 700 ecn ce_threshold 3ms memory_limit 2mb"
pod "$ROOT codel limit 700 target 6ms interval 77ms ecn"
pod "$ROOT sfq perturb 10 quantum 3000"
pod "$ROOT netem delay 3ms 1ms 25% loss 0.3% duplicate 0.2% corrupt 0.1% limit 800"
pod "$ROOT netem rate 9mbit 10 loss gemodel 1% 10% 70% 0.1% slot 1ms 2ms packets 9"
pod "$ROOT handle 1: prio bands 4 priomap 0 1 2 3 0 1 2 3 0 1 2 3 0 1 2 3
qdisc add dev eth0 parent 1:2 handle 2: sfq
qdisc add dev eth0 parent 1:3 handle 3: netem delay 1ms
filter add dev eth0 parent 1: protocol ip pref 4 flower ip_proto tcp dst_port 5001 classid 1:3
filter add dev eth0 parent 1: protocol all pref 6 handle 7 fw classid 1:4"
pod "$ROOT handle 1: htb default 2
class add dev eth0 parent 1: classid 1:1 htb rate 10mbit
class add dev eth0 parent 1:1 classid 1:2 htb rate 5mbit
qdisc add dev eth0 parent 1:2 handle 20: fq_codel
filter add dev eth0 parent 1: protocol ip pref 1 basic match cmp(u8 at 9 layer network eq 17) classid 1:2
filter add dev eth0 parent 1: protocol ip pref 2 flower src_ip 10.0.0.0/8 ip_proto udp classid 1:2 action drop
filter add dev eth0 parent 1: protocol ip pref 3 u32 match ip dport 99 0xffff police rate 2mbit burst 20k drop flowid 1:2"
pod "qdisc add dev eth0 clsact
filter add dev eth0 ingress protocol all pref 9 matchall action police rate 8mbit burst 20k conform-exceed drop/pass
filter add dev eth0 egress protocol ip pref 9 chain 2 flower dst_ip 198.51.100.0/24 action drop random determ pass 3
filter add dev eth0 egress protocol 802.1Q pref 3 flower vlan_id 5 vlan_ethtype ip action pass
filter add dev eth0 egress protocol ip pref 5 flower dst_ip 198.51.100.7 skip_hw action mirred egress mirror dev lo action pass"

step "qdiscs of the host"
tc qdisc add dev "$NIC.3" root handle 5: tbf rate 500mbit burst 90k latency 50ms
tc qdisc add dev "$NIC" clsact
tc filter add dev "$NIC" egress protocol ip pref 7 flower dst_ip 198.51.100.9 action drop
tc qdisc replace dev "$NIC" root handle 6: fq_codel

# tc_state FILE: everything but statistics, and the numbers of hash tables and references.
tc_state() {
    local name dev place
    for name in host "${PODS[@]}"; do
        local tc=(tc) devs=(eth0)
        if [ "$name" = host ]; then devs=("$NIC" "$NIC.3"); else tc=(tc -n "$name"); fi
        for dev in "${devs[@]}"; do
            "${tc[@]}" -d qdisc show dev "$dev"
            "${tc[@]}" -d class show dev "$dev"
            for place in "" ingress egress; do
                # shellcheck disable=SC2086
                "${tc[@]}" -d filter show dev "$dev" $place
            done
        done | sed "s/^/$name /"
    done | sed -E 's/refcnt [0-9]+ //; s/ direct_packets_stat [0-9]+//; s/ (used|age) [0-9]+ sec//' >"$1"
}

all_answer
tc_state "$WORK/tc-before"
expect_exit 0 nf snapshot
lost
expect_exit 0 nf restore --nic-wait 60s
tc_state "$WORK/tc-after"
diff -u "$WORK/tc-before" "$WORK/tc-after" || fail "the qdiscs differ"
all_answer
expect_exit 0 nf diff

step "changed options are repaired in place"
tc -n pod12 qdisc change dev eth0 root fq_codel target 9ms
tc -n pod16 qdisc change dev eth0 root netem delay 9ms
tc -n pod20 filter del dev eth0 egress pref 3 protocol 802.1Q
expect_exit 3 nf diff
expect_exit 0 nf restore
tc_state "$WORK/tc-repaired"
diff -u "$WORK/tc-before" "$WORK/tc-repaired" || fail "the qdiscs differ after the repair"

step "a kind that netfix does not restore is named"
tc -n pod10 qdisc replace dev eth0 root cake bandwidth 10mbit
expect_exit 5 nf snapshot
printed 'unsupported: pod pod10.*qdisc cake'
