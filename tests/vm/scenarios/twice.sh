#!/usr/bin/env bash
# A second restore finds nothing to do, and does nothing.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"

standard_node
before_loss
lost
expect_exit 0 nf restore --wait 60s
restored

step "second restore"
watch_changes
expect_exit 0 nf restore --wait 60s
no_changes
capture "$WORK/again"
same "$WORK/before" "$WORK/again"
all_answer
