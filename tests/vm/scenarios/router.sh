#!/usr/bin/env bash
# A router's namespace with a NIC of another driver: a window about the pods neither is refused for it nor counts it.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"

standard_node
# The gateway's namespace, with its virtio_net inside, is this router. netfix sees it: nothing is selected.
SELECT=()
all_answer
capture "$WORK/before"
ip -n gw -d -j address show | jq -c . >"$WORK/router"
RELOAD='modprobe -r e1000e; modprobe e1000e'

step "the reload does not affect the router; a restore could move its NIC back once it has a checkpoint"
expect_exit 1 nf check --netns /run/netns/gw
printed 'gw.*has no checkpoint yet'

expect_exit 0 nf snapshot
expect_exit 0 nf check --netns /run/netns/gw
expect_exit 0 nf check
printed '1 pod left out'
expect_exit 0 nf upgrade --dry-run -- bash -c "$RELOAD"
expect_exit 0 nf upgrade --foreground --yes --watch 2s -- bash -c "$RELOAD"
printed '3 of 3'
jq -e '[.pods[].id] | sort == ["pod1", "pod2", "pod3"]' "$STATE"/windows/*.json >/dev/null || fail "others are in the record"
capture "$WORK/after"
same "$WORK/before" "$WORK/after"
all_answer
ip -n gw -d -j address show | jq -c . | diff "$WORK/router" - || fail "the router was changed"

step "a device that the host does not have is refused"
expect_exit 4 nf upgrade --dry-run --nic eth7 -- true
printed 'eth7.*no such device'
