#!/usr/bin/env bash
# Addresses and routes that a router advertises: radvd, configured as in a data centre, on the wire of the pods and of the host. The
# reload takes all of them, and the router gives them again. The host forwards, and listens to routers all the same.
# shellcheck source=tests/vm/lib.sh
. "$LAB_REPO/tests/vm/lib.sh"

RELOAD='modprobe -r e1000e; modprobe e1000e'
# What an address of a prefix has after an advertisement.
VALID='{"2001:db8:3:": 86400, "2001:db8:13:": 7200, "2001:db8:23:": 7200, "2001:db8:2:": 86400}'

tidy() { sysctl -qw net.ipv6.conf.all.forwarding=0; }

# wire LINK PREFIX: its lines in the configuration of radvd; MORE goes with them. Without a solicitation it advertises too late.
wire() {
    cat <<END
interface $1 {
    AdvSendAdvert on; MinRtrAdvInterval 200; MaxRtrAdvInterval 600;
    AdvManagedFlag off; AdvOtherConfigFlag off; AdvCurHopLimit 63; AdvDefaultLifetime 1800; AdvLinkMTU 1480;
    prefix $2 { AdvOnLink on; AdvAutonomous on; AdvValidLifetime 86400; AdvPreferredLifetime 14400; };
    RDNSS 2001:db8:53::53 { AdvRDNSSLifetime 1800; };
    ${MORE:-}
};
END
}

# radvd_start: the prefixes of the VLAN are a usual one, one that gets old soon, and one that is deprecated.
radvd_start() {
    {
        wire eth1 2001:db8:2::/64
        MORE='prefix 2001:db8:13::/64 { AdvValidLifetime 7200; AdvPreferredLifetime 900; DeprecatePrefix on; };
            prefix 2001:db8:23::/64 { AdvValidLifetime 7200; AdvPreferredLifetime 0; DeprecatePrefix on; };
            route 2001:db8:ff00::/40 { AdvRouteLifetime 1800; AdvRoutePreference high; };' wire eth1.3 2001:db8:3::/64
    } >"$WORK/radvd.conf"
    inside gw busybox sysctl -qw net.ipv6.conf.all.forwarding=1
    inside gw radvd --nodaemon --logmethod stderr --username root --config "$WORK/radvd.conf" --pidfile "$WORK/radvd.pid" 2>"$WORK/radvd.log" &
    wait_for 5 "radvd" test -s "$WORK/radvd.pid"
}

# in_namespace NAME CMD...
in_namespace() { if [ "$1" = host ]; then "${@:2}"; else inside "$@"; fi; }
# globals NAME: its global addresses, as JSON, one a line.
globals() { in_namespace "$1" ip -6 -j -d address show scope global | jq -c '.[] | .ifname as $dev | .addr_info[]? | .dev = $dev'; }
advertised() { globals "$1" | jq -c 'select(.dynamic)'; }

# has_all NAME COUNT: that many addresses have passed duplicate detection, and every link has its default route.
has_all() {
    [ "$(advertised "$1" | jq -s 'map(select(.tentative | not)) | length')" = "$2" ] &&
        [ "$(in_namespace "$1" ip -6 route show default proto ra | wc -l)" = "${3:-1}" ]
}
all_have() {
    local pod
    wait_for 30 "the addresses of the host" has_all host 4 2
    for pod in pod1 pod3 pod4 pod5; do wait_for 30 "the addresses of $pod" has_all "$pod" 3; done
    # Without a temporary address of a deprecated prefix.
    wait_for 30 "the addresses of pod2" has_all pod2 5
}

# lifetimes AGE: all are what an advertisement said at most so many seconds ago.
lifetimes() {
    local name
    for name in host "${PODS[@]}"; do
        advertised "$name" | jq -se --argjson valid "$VALID" --argjson age "$1" 'all(.[]; . as $one
            | $valid[$valid | keys[] | select(. as $prefix | $one.local | startswith($prefix))] as $said
            | .temporary or (.valid_life_time <= $said and .valid_life_time >= $said - $age and (.deprecated == true) == (.preferred_life_time == 0)))' >/dev/null ||
            fail "$name has other lifetimes: $(advertised "$name")"
        in_namespace "$name" ip -6 -j route show default proto ra | jq -e --argjson age "$1" 'all(.[]; .expires <= 1800 and .expires >= 1800 - $age)' >/dev/null ||
            fail "$name has another default route: $(in_namespace "$name" ip -6 route show default)"
    done
}

temporary() { globals pod2 | jq -r 'select(.temporary) | .local'; }

gw_start
gw_vlan 3 10.3.0.1/24 2001:db8:3::1/64
unpacked router
radvd_start

# A host of containers forwards, and gets its own addresses from the router.
sysctl -qw net.ipv6.conf.all.forwarding=1
sysctl -qw "net.ipv6.conf.$NIC.accept_ra=2"
nic_up
ip link add link "$NIC" name "$NIC.3" type vlan id 3
sysctl -qw "net.ipv6.conf.$NIC/3.accept_ra=2"
ip link set "$NIC.3" up
ip addr add 10.3.0.2/24 dev "$NIC.3"

for n in 1 2 3 4 5; do
    pod_ns "pod$n"
    ip link add link "$NIC.3" name new0 netns "pod$n" address "0a:00:00:00:03:1$n" type macvlan mode bridge
    ip -n "pod$n" link set new0 name eth0
done
pod_sysctl pod2 net.ipv6.conf.eth0.use_tempaddr 2
pod_sysctl pod3 net.ipv6.conf.eth0.stable_secret 2001:db8:aaaa:bbbb:cccc:dddd:eeee:1
ip -n pod4 link set eth0 addrgenmode random
pod_sysctl pod5 net.ipv6.conf.eth0.accept_ra_rt_info_max_plen 64
for n in 1 2 3 4 5; do ip -n "pod$n" link set eth0 up; done
# An address of CNI beside those of the router, as every pod of a dual-stack node has.
pod_net pod1 10.3.0.11/24 10.3.0.1
# Beside that of the router, which may be there already.
ip -n pod5 addr add 2001:db8:3::15/64 dev eth0 nodad
ip -n pod5 route add default via 2001:db8:3::1 dev eth0 metric 512
GATEWAYS[pod5]=2001:db8:3::1
for n in 2 3 4; do GATEWAYS[pod$n]=2001:db8:3::1; done

step "the router gives addresses of three prefixes, a default route and a route"
all_have
inside pod5 ip -6 route show 2001:db8:ff00::/40 | grep -q 'proto ra.*pref high' || fail "no route of the router: $(inside pod5 ip -6 route)"
lifetimes 120
before=$(temporary)
tcp_open slaac pod3 TCP6:[2001:db8:3::1]
before_loss

step "the rehearsal finds every pod and the host identical"
expect_exit 0 nf check --rehearse
printed '5 of 5 pods.*identical'
expect_exit 0 nf upgrade --dry-run -- bash -c "$RELOAD"

step "a window with the reload ends well"
expect_exit 0 nf upgrade --foreground --yes --watch 2s -- bash -c "$RELOAD"
printed 'well'
all_have
lifetimes 60
tcp_works slaac "after the loss"

step "everything is as before, but that a temporary address is another one"
after=$(temporary)
capture "$WORK/after"
same "$WORK/before" "$WORK/after" host pod1 pod3 pod4 pod5
same_but "$(printf '%s\n' $before $after | paste -sd '|')" "$WORK/before" "$WORK/after" pod2
[ "$(wc -w <<<"$before")" = "$(wc -w <<<"$after")" ] || fail "temporary addresses: $before, now $after"
all_answer
expect_exit 0 nf diff
expect_exit 0 nf check
