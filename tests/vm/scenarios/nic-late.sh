#!/usr/bin/env bash
# restore is started first, the driver is loaded while it waits.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"

standard_node
before_loss
unload_driver
pods_dead

step "restore waits"
nf restore --wait 60s >"$WORK/late" 2>&1 &
waiting=$!
sleep 4
kill -0 "$waiting" || fail "restore did not wait: $(cat "$WORK/late")"
pods_dead
load_driver
SECONDS=0
wait "$waiting" || fail "restore ended with $?: $(cat "$WORK/late")"
cat "$WORK/late"
# The NIC needs 2 to 3 s for its carrier here; the rest is the restore of three pods.
[ "$SECONDS" -le 15 ] || fail "restore slept on for $SECONDS s"
restored
