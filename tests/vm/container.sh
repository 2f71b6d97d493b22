# Docker and podman have the same command line, so they get the same containers; ENGINE is the command.
# shellcheck shell=bash
# shellcheck source=tests/vm/engine.sh
. "$LAB_REPO/tests/vm/engine.sh"

WEBS=(web1 web2 web3)

make_image() { image_layer | "$ENGINE" import --change 'CMD ["/bin/sleep", "1000000"]' - lab; }

# make_containers: three on a macvlan network, with fixed addresses and MACs; one that shares the first one's
# namespace and one in the host's, which are not separate pods.
make_containers() {
    local n
    "$ENGINE" network create -d macvlan --subnet 10.3.0.0/24 --gateway 10.3.0.1 -o "parent=$NIC.3" vlan3
    for n in 1 2 3; do
        "$ENGINE" run -d --name "web$n" --network vlan3 --ip "10.3.0.1$n" --mac-address "0a:00:00:00:03:1$n" lab
        engine_pod "web$n" "$(value '{{.State.Pid}}' "web$n")"
    done
    "$ENGINE" run -d --name side --network container:web1 lab
    "$ENGINE" run -d --name host --network host lab
}

# value FORMAT CONTAINER...
value() { "$ENGINE" inspect -f "$@"; }
identities() { value '{{.Id}} {{.State.StartedAt}} {{.State.Pid}} {{.State.Running}} {{.RestartCount}}' "${WEBS[@]}" side host; }
names() { local name; for name in "${WEBS[@]}"; do echo "$name $(value '{{.Id}}' "$name") - -"; done; }
