#!/usr/bin/env bash
# The kernel has one neighbour table for all namespaces. A tenant has filled it: verify probes every gateway all the same, and
# neither leaves anything in it nor takes anything from it.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"

COUNT=64

tidy() { sysctl -qw net.ipv4.neigh.default.gc_thresh3=1024 net.ipv6.neigh.default.gc_thresh3=1024; }

# fill: entries that the kernel may not replace within 5 s.
fill() {
    local n
    for ((n = 2; n < COUNT + 2; n++)); do
        echo "neigh replace 10.99.0.$n lladdr 0a:00:00:00:99:01 nud stale dev full0"
        echo "neigh replace fd00:99::$n lladdr 0a:00:00:00:99:01 nud stale dev full0"
    done | ip -n tenant -force -batch - 2>/dev/null || :
}
entries() { ip -n tenant neigh show dev full0 | grep -c STALE; }
# refused: an entry of another program, as for a packet to a new neighbour.
refused() { ! ip -n pod1 neigh replace 10.3.0.77 dev eth0 nud none use 2>"$WORK/refused" && grep -q "No buffer space" "$WORK/refused"; }

standard_node
all_answer
# The other end shares the table here, and needs an entry for each answer.
for n in 1 2 3; do ip -n gw neigh replace "10.3.0.1$n" lladdr "0a:00:00:00:03:1$n" nud permanent dev eth1.3; done
ip -n gw neigh replace fd00:3::13 lladdr 0a:00:00:00:03:13 nud permanent dev eth1.3
expect_exit 0 nf snapshot

ip netns add tenant
ip -n tenant link add full0 type dummy
ip -n tenant addr add 10.99.0.1/16 dev full0
ip -n tenant addr add fd00:99::1/64 dev full0 nodad
ip -n tenant link set full0 up
for pod in "${PODS[@]}"; do ip -n "$pod" neigh flush all; done
fill
sysctl -qw net.ipv4.neigh.default.gc_thresh3=$COUNT net.ipv6.neigh.default.gc_thresh3=$COUNT
(while :; do fill; sleep 1; done) &
filler=$!
wait_for 20 "the table to be full" refused

step "every gateway is probed, and answers"
expect_exit 0 nf verify
refused || fail "verify took entries from the tenant, or the test is none"
[ "$(entries)" = $((2 * COUNT)) ] || fail "the tenant lost entries: $(entries)"
for pod in "${PODS[@]}"; do
    [ -z "$(ip -n "$pod" neigh show to 10.3.0.1)" ] || fail "left in $pod: $(ip -n "$pod" neigh show)"
done
kill $filler
