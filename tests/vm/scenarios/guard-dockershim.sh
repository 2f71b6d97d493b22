#!/usr/bin/env bash
# lab: systemd cgroup-v1 disk
# netfix-guard.service beside a kubelet with dockershim, which would rebuild pods without a network at its next start: kubelet is paused while
# the pods are restored, and rebuilds none.
# shellcheck source=tests/vm/dockershim.sh
. "$LAB_REPO/tests/vm/dockershim.sh"
# shellcheck source=tests/vm/guard.sh
. "$LAB_REPO/tests/vm/guard.sh"

vlan_node
gw_hide
dockershim_node "$NIC.3"
rounds_later 1
guard_unit --manager-wait 0s
before_window
expect_exit 0 nf snapshot
guard_unit_start

step "the driver is reloaded"
reload_driver
one_restore
recorded '.kind == "unplanned" and .hold.unit == "'$KUBELET'"'
recorded '.pods | length == 3 and all(.rebuilt == false and .state == "restored" and .lives_before == .lives_after)'
guard_unit_stop
untouched
systemctl restart $KUBELET
untouched
