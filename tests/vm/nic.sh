# What is set on NICs, read by ethtool(8), iproute2, nft(8) and files, never by netfix: `capture_nics DIR NIC...` writes the whole
# state, `same_nics BEFORE AFTER NIC...` compares two. Sourced after lib.sh.
# shellcheck shell=bash

# The settings of the igb of `# lab: igb`: none is the driver's own value. The packets that cross it need none of them.
set_igb() {
    ethtool --set-priv-flags "$NIC" legacy-rx on
    ethtool -L "$NIC" combined 2
    ethtool -G "$NIC" rx 512 tx 1024
    ethtool -C "$NIC" rx-usecs 50
    ethtool -K "$NIC" gro off tso off rx-all on
    ethtool -A "$NIC" autoneg off rx off tx off
    ethtool -s "$NIC" advertise 0x20 # 1000baseT/Full alone.
    ethtool -s "$NIC" wol m
    ethtool -s "$NIC" msglvl 0x1f
    wait_for 15 "carrier on $NIC" nic_carrier
    ethtool -X "$NIC" weight 3 1
    ethtool -N "$NIC" rx-flow-hash udp4 sdfn
    set_queues "$NIC"
}

# set_queues NIC: queues, and the interrupt of one.
set_queues() {
    local queues=/sys/class/net/$1/queues
    echo 2 >"/proc/irq/$(irq_of "$(vectors_of "$1" | tail -n 1)")/smp_affinity_list"
    echo 3000 >"$queues/tx-0/byte_queue_limits/limit_min"
    echo 4 >"$queues/tx-0/xps_cpus"
    echo 8 >"$queues/rx-0/rps_cpus"
}

# vectors_of NIC: the names of its interrupts.
vectors_of() { awk -v nic="$1" '$NF == nic || index($NF, nic "-") == 1 {print $NF}' /proc/interrupts; }

# ring NIC: the present number of entries for received packets.
ring() { ethtool -g "$1" | sed '1,/^Current/d' | awk '$1 == "RX:" {print $2}'; }

# stays VALUE COMMAND...: its output is the same for ten seconds.
stays() {
    local second
    for second in {1..10}; do
        [ "$("${@:2}")" = "$1" ] || fail "${*:2}: $("${@:2}") after $second s, not $1"
        sleep 1
    done
}

# irq_of VECTOR: the number of the interrupt with this name.
irq_of() { awk -v vector="$1" '$NF == vector {sub(":", "", $1); print $1}' /proc/interrupts; }

# link_ups NIC: how often it got its carrier since the last `dmesg -C`.
link_ups() { dmesg | grep -c " $1: .*Link is Up" || :; }

# no_step: nothing is left for a restore to do.
no_step() {
    expect_exit 0 nf restore
    printed 'nothing to do'
    expect_exit 0 nf plan --exit-code
    expect_exit 0 nf diff
}

# settings LINE...: the command before has printed each of these settings of NICs, with the present value in parentheses.
settings() {
    local line
    for line in "$@"; do
        [ "$(grep -cE "^ *~ nic $line" "$OUT")" = 1 ] || fail "not once in the output: $line"
    done
}

# simulated NUMBER PORTS QUEUES: a NIC of netdevsim; prints the name of its first port. `forget NUMBER` unloads it.
simulated() {
    echo "$*" >/sys/bus/netdevsim/new_device
    wait_for 5 "the simulated NIC $1" test -d "/sys/bus/netdevsim/devices/netdevsim$1/net"
    # shellcheck disable=SC2012 # Names of links.
    ls "/sys/bus/netdevsim/devices/netdevsim$1/net" | head -n 1
}
forget() { echo "$1" >/sys/bus/netdevsim/del_device; }

# knob NUMBER NAME VALUE: what the simulated NIC answers from now on (debugfs), such as `ring/rx_max_pending` or `set_err`.
knob() {
    mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
    echo "$3" >"/sys/kernel/debug/netdevsim/netdevsim$1/ports/0/ethtool/$2"
}

# ovs_start: Open vSwitch, without systemd. `ovs-vsctl add-br br0; ovs-vsctl add-port br0 "$NIC"`.
ovs_start() {
    unpacked owners
    # The package does this when it is installed.
    ln -sf /usr/lib/openvswitch-switch/ovs-vswitchd /usr/sbin/
    modprobe openvswitch
    /usr/share/openvswitch/scripts/ovs-ctl start --system-id=random --no-monitor >"$WORK/ovs.log" 2>&1 || fail "$(cat "$WORK/ovs.log")"
}

# ---- ifindexes

index() { cat "/sys/class/net/$1/ifindex"; }

# indexes_back RELOAD NIC...: after the program of sh(1) that reloads their drivers, a restore and a window give these NICs their ifindexes
# back. The rules name them as before, and `works`.
indexes_back() {
    local reload=$1 nic
    local -A known=()
    shift
    for nic in "$@"; do known[$nic]=$(index "$nic"); done
    nft list ruleset >"$WORK/rules"
    works
    expect_exit 0 nf snapshot
    no_step
    step "a restore"
    sh -c "$reload"
    ! nft list ruleset | cmp -s - "$WORK/rules" || fail "the rules name the NICs of which they have other ifindexes"
    expect_exit 3 nf diff
    for nic in "$@"; do printed "link $nic index ${known[$nic]} \(now"; done
    expect_exit 0 nf restore --nic-wait 20s
    has_indexes
    no_step
    step "a window"
    expect_exit 0 nf upgrade --foreground --yes --runtime none --nic-wait 20s --watch 1s -- sh -c "$reload"
    has_indexes
    no_step
}

# has_indexes: those that `indexes_back` has noted.
has_indexes() {
    local nic
    for nic in "${!known[@]}"; do
        [ "$(index "$nic")" = "${known[$nic]}" ] || fail "$nic has ifindex $(index "$nic"), not ${known[$nic]}"
    done
    nft list ruleset | cmp - "$WORK/rules" || fail "$(nft list ruleset)"
    works
}

# ---- virtual functions

# functions NIC COUNT: makes them, bound to igbvf.
functions() {
    modprobe igbvf
    echo "$2" >"/sys/class/net/$1/device/sriov_numvfs"
    wait_for 15 "virtual function $(($2 - 1)) of $1" function_is_there "$1" $(($2 - 1))
}
function_is_there() { [ -n "$(function_name "$@")" ]; }

# function_name NIC NUMBER: the name of a virtual function in this namespace.
function_name() { ls "/sys/class/net/$1/device/virtfn$2/net" 2>/dev/null; }

# function_bus NIC NUMBER: its bus address, also if a pod has it.
function_bus() { basename "$(readlink "/sys/class/net/$1/device/virtfn$2")"; }

# rebind BUS: its driver starts anew, and takes the MAC that the physical function has for it.
rebind() {
    local driver
    driver=$(readlink -f "/sys/bus/pci/devices/$1/driver")
    echo "$1" >"$driver/unbind"
    echo "$1" >"$driver/bind"
}

# pod_function POD NIC NUMBER ADDRESS/LEN: the function becomes the pod's net1.
pod_function() {
    local name
    name=$(function_name "$2" "$3")
    ip link set "$name" netns "$1"
    ip -n "$1" link set "$name" name net1 up
    ip -n "$1" addr add "$4" dev net1
}

# through_function POD ADDRESS: it answers the pod on its function.
through_function() { inside "$1" arping -q -c 3 -w 10 -I net1 "$2"; }

# ---- the comparison

# capture_nics DIR NIC...: the state of host and pods, of these NICs, and of what hangs on NICs by other tools.
capture_nics() {
    local dir=$1 nic
    shift
    capture "$dir"
    for nic in "$@"; do nic_state "$nic" >"$dir/nic-$nic"; done
    attached >"$dir/attached"
}

same_nics() {
    local before=$1 after=$2
    shift 2
    same "$before" "$after" host "${PODS[@]}" attached "${@/#/nic-}"
}

# nic_state NIC: every setting, with what it belongs to at the start of its line. Only the numbers of interrupts are left out.
nic_state() {
    local nic=$1 option protocol vector
    for option in -g -l -c -k -a -x -n -u --show-priv-flags --show-fec --show-eee ""; do
        # shellcheck disable=SC2086 # Without an option it shows the link.
        { ethtool $option "$nic" 2>&1 || :; } | sed "s/^/ethtool $option: /"
    done
    for protocol in tcp4 udp4 sctp4 tcp6 udp6 sctp6; do
        { ethtool -n "$nic" rx-flow-hash "$protocol" 2>&1 || :; } | sed "s/^/rx-flow-hash $protocol: /"
    done
    for vector in $(vectors_of "$nic"); do
        echo "vector $vector: $(cat "/proc/irq/$(irq_of "$vector")/smp_affinity_list")"
    done
    (cd "/sys/class/net/$nic" &&
        grep -s . gro_flush_timeout napi_defer_hard_irqs threaded queues/*/{rps_cpus,rps_flow_cnt,xps_cpus,xps_rxqs,tx_maxrate} \
            queues/*/byte_queue_limits/limit_{min,max} device/sriov_{numvfs,drivers_autoprobe}) || :
    virtual_functions "$nic"
    bridge fdb show dev "$nic" | awk '!/^33:33:ff:/ && /self|permanent|static/' | sort
    tc -d qdisc show dev "$nic" | sed -E 's/ refcnt [0-9]+//; s/ 8[0-9a-f]{3}:/ AUTO:/'
    tc filter show dev "$nic" ingress
    tc filter show dev "$nic" egress
}

# virtual_functions NIC: the driver of each; all that its physical function has is in `ip -d link`.
virtual_functions() {
    local function
    for function in "/sys/class/net/$1/device/virtfn"*; do
        [ -e "$function" ] || continue
        echo "${function##*/}: $(basename "$(readlink "$function")") driver $(basename "$(readlink "$function/driver")")" \
            "override $(cat "$function/driver_override")"
    done
}

# attached: the bridges with their ports, VLANs and entries that are not learnt, and nftables.
attached() {
    echo "nftables: $(nft list ruleset)"
    # Without the module of bridges there is nothing.
    [ -d /sys/module/bridge ] || return 0
    bridge -d link show | sed -E 's/^[0-9]+: //'
    bridge -d vlan show
    bridge fdb show | awk '/ master / && /permanent|static/' | sort
    bridge -d mdb show | sed -En '/permanent/s/^[0-9]+: //p'
}
