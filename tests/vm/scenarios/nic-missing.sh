#!/usr/bin/env bash
# The NIC does not come back: a clear error in good time, and nothing half done.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"

standard_node
before_loss

step "driver unloaded, and not loaded again"
unload_driver
pods_dead
capture "$WORK/lost"
SECONDS=0
expect_exit '1|4' nf restore --wait 3s -o json
[ "$SECONDS" -ge 3 ] || fail "gave up after $SECONDS s, not 3 s"
[ "$SECONDS" -le 12 ] || fail "gave up after $SECONDS s, not 3 s"
problem parent-missing eth0
expect_exit '1|4' nf restore --wait 1s
said "eth0"
capture "$WORK/after"
same "$WORK/lost" "$WORK/after"

step "it came back after all"
load_driver
expect_exit 0 nf restore --wait 60s
restored
