#!/usr/bin/env bash
# The NIC has another name after the upgrade: netfix finds it by its hardware, keeps its new name, and reports it.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"

standard_node
ip addr add 192.0.2.2/24 dev "$NIC"
ip route add default via 192.0.2.1 dev "$NIC" metric 100
before_loss

step "driver reloaded, the NIC is now ens1"
reload_driver
ip link set eth0 name ens1
NIC=ens1
pods_dead
expect_exit 0 nf restore --nic-wait 60s
[ ! -e /sys/class/net/eth0 ] || fail "the host has an eth0 again"
[ "$(cat "/sys/class/net/eth0.3/address")" = "$(cat /sys/class/net/ens1/address)" ] || fail "eth0.3 has another MAC than ens1"
step "everything but the name is as before, and diff reports the name"
capture "$WORK/after"
same "$WORK/before" "$WORK/after"
all_answer
expect_exit 3 nf diff
printed "the host's eth0 has another name"
expect_exit 0 nf verify
