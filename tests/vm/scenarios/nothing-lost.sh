#!/usr/bin/env bash
# Nothing was lost: no command touches anything.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"

standard_node
ip addr add 192.0.2.2/24 dev "$NIC"
tcp_open one pod1 TCP:10.3.0.1
# What a pod has beyond its checkpoint is its own business.
before_loss
ip -n pod2 addr add 10.3.0.222/24 dev eth0
ip -n pod2 route add 10.88.0.0/16 via 10.3.0.1
ip addr add 192.0.2.99/24 dev "$NIC"
capture "$WORK/before"

watch_changes
expect_exit 0 nf restore --wait 60s
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
tcp_works one after
