#!/usr/bin/env bash
# lab: systemd
# netfix is killed when the pods have their network back, but kubelet does not run yet, or nobody has proven anything:
# kubelet comes back by the deadline, and whatever is called next closes the window.
# shellcheck source=tests/vm/window.sh
. "$LAB_REPO/tests/vm/window.sh"

plain_node
plain_kubelet
before_window

killed verify --deadline 25s
back_by_deadline
expect_exit 0 nf resume
untouched

killed resume --deadline 25s
back_by_deadline
upgrade 0 -- true
untouched

killed proof --deadline 25s
back_by_deadline
upgrade 0 -- true
untouched
