#!/usr/bin/env bash
# macvlans of every mode, each with what is special to it.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"

gw_start
nic_up

# mode POD ID TYPE OPTIONS: a VLAN, its gateway and a pod on it.
mode() {
    local pod=$1 id=$2 mac=$3
    shift 3
    gw_vlan "$id" "10.$id.0.1/24"
    node_vlan "$id" "$NIC.$id" "$NIC"
    pod_ns "$pod"
    pod_link "$pod" "$NIC.$id" "$mac" macvlan mode "$@"
    pod_net "$pod" "10.$id.0.9/24" "10.$id.0.1"
}
mode pod-bridge 3 0a:00:00:00:00:03 bridge bcqueuelen 3000
mode pod-private 4 0a:00:00:00:00:04 private
mode pod-vepa 5 0a:00:00:00:00:05 vepa
mode pod-source 6 0a:00:00:00:00:06 source macaddr set 52:54:00:00:00:02 0a:00:00:00:00:66
mode pod-passthru 7 - passthru
mode pod-quiet 8 - passthru nopromisc
# In passthru mode the pod's MAC is its parent's too.
ip -n pod-passthru link set eth0 down
ip -n pod-passthru link set eth0 address 0a:00:00:00:00:07
ip -n pod-passthru link set eth0 up
ip -n pod-passthru route add default via 10.7.0.1 dev eth0
ip link set "$NIC.7" down
ip link set "$NIC.7" up
# A second pod beside the first, and one whose device is named otherwise and down.
pod_ns pod-beside
pod_link pod-beside "$NIC.3" 0a:00:00:00:00:33
pod_net pod-beside 10.3.0.10/24 10.3.0.1
ip link add link "$NIC.3" name spare address 0a:00:00:00:00:34 netns pod-beside type macvlan mode bridge

before_loss
lost
expect_exit 0 nf restore --wait 60s
restored
