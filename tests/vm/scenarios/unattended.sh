#!/usr/bin/env bash
# lab: systemd
# netfix is killed in each phase, and no person acts: at the deadline the pods are back before kubelet, which would recreate
# every pod without an address, starts.
# shellcheck source=tests/vm/window.sh
. "$LAB_REPO/tests/vm/window.sh"

kubernetes_node

# The stand-in for kubelet stops between two rounds, so the phase lasts. Whether COMMAND would have run is not known.
killed_in pause true
until_deadline

killed_in command "modprobe -r e1000e; sleep 15; modprobe e1000e"
until_deadline

killed_in restore "modprobe -r e1000e; (sleep 15; modprobe e1000e) &" --wait 40s
until_deadline

# The gateway answers again before the deadline.
killed_in verify "$RELOAD; ip -n gw addr del 10.3.0.1/24 dev eth1.3" --timeout 60s
ip -n gw addr add 10.3.0.1/24 dev eth1.3
until_deadline

killed_in proof "$RELOAD" --settle 60s
until_deadline
