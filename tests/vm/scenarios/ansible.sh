#!/usr/bin/env bash
# lab: systemd
# Ansible upgrades four nodes in waves. The first node is this machine: ssh reaches it over the wire, so its connections are lost
# with the e1000e. The other three refuse a window before the first wave: they are left out, and stay as they are.
# shellcheck source=tests/vm/window.sh
. "$LAB_REPO/tests/vm/window.sh"

ANSIBLE=$LAB_REPO/target/ansible/bin/ansible-playbook
[ -x "$ANSIBLE" ] || fail "no $ANSIBLE: run scripts/setup --all first"
SSH=$WORK/ssh
HOSTS="{}"

# sshd NAME ADDRESS [NAMESPACE]: sshd of a node, with a state directory of the node.
sshd() {
    local file=$SSH/$1 in=()
    [ $# = 2 ] || in=(ip netns exec "$3")
    ssh-keygen -q -t ed25519 -N '' -f "$file.key"
    mkdir -p "$WORK/state/$1"
    cat >"$file.conf" <<CONFIG
ListenAddress $2
HostKey $file.key
AuthorizedKeysFile $SSH/key.pub
StrictModes no
UsePAM no
PidFile none
PasswordAuthentication no
Subsystem sftp internal-sftp
SetEnv NETFIX_STATE_DIR=$WORK/state/$1 NETFIX_RUNTIME=none
CONFIG
    "${in[@]}" /usr/sbin/sshd -D -e -f "$file.conf" 2>"$file.log" &
}

# host NAME ADDRESS GLOB COMMAND: a host of the inventory; the glob selects its pods.
host() {
    HOSTS=$(jq --arg name "$1" --arg address "$2" --arg glob "$3" --arg command "$4" '.[$name] = {
        ansible_host: $address, netfix_extra_args: ["--netns", $glob], netfix_check_extra_args: ["--netns", $glob], netfix_cmd: $command}' <<<"$HOSTS")
}

# other_node N: a network namespace with a NIC of its own, one pod and sshd. netfix starts no window in it: systemd does not run there.
other_node() {
    local n=$1 node=node$1 pod=lodger$1
    ip netns add "$node"
    ip netns add "$pod"
    # No address that changes after the comparison has begun.
    for ns in "$node" "$pod"; do ip netns exec "$ns" sysctl -qw net.ipv6.conf.{all,default}.disable_ipv6=1; done
    ip -n gw link add "to$n" type veth peer name eth0 netns "$node"
    ip -n gw addr add "198.51.100.$((n * 4 + 1))/30" dev "to$n"
    ip -n gw link set "to$n" up
    ip -n "$node" addr add "198.51.100.$((n * 4 + 2))/30" dev eth0
    ip -n "$node" link set lo up
    ip -n "$node" link set eth0 up
    ip -n "$node" link add link eth0 name mv0 netns "$pod" type macvlan mode bridge
    ip -n "$pod" link set mv0 up
    ip -n "$pod" addr add "203.0.113.$n/24" dev mv0
    sshd "$node" "198.51.100.$((n * 4 + 2))" "$node"
    host "$node" "198.51.100.$((n * 4 + 2))" "/run/netns/$pod" "ip link del eth0; touch $WORK/$node.ran"
}

inventory() {
    jq --arg key "$SSH/key" --arg netfix "$NETFIX" '{all: {hosts: ., vars: {
        ansible_user: "root", ansible_ssh_private_key_file: $key, ansible_python_interpreter: "/usr/bin/python3",
        ansible_ssh_common_args: "-F none -o UserKnownHostsFile=/dev/null", ansible_remote_tmp: "/run/ansible",
        netfix_executable: $netfix, netfix_control: $netfix, netfix_settle: "5s", netfix_skip_refused: true, netfix_wave_pause: 1}}}' <<<"$HOSTS" >"$WORK/inventory.json"
}

# play CODE OPTION...: the playbook, from the gateway's side of the wire; its connections end with it.
play() {
    local want=$1 got=0
    shift
    ip netns exec gw env -C "$WORK" PWD="$WORK" HOME="$WORK" ANSIBLE_HOME="$WORK/ansible" ANSIBLE_COLLECTIONS_PATH="$WORK/collections" \
        ANSIBLE_HOST_KEY_CHECKING=false ANSIBLE_PIPELINING=true ANSIBLE_FORKS=1 ANSIBLE_TIMEOUT=15 ANSIBLE_NOCOLOR=true PYTHONDONTWRITEBYTECODE=1 LC_ALL=C.UTF-8 \
        unshare --pid --fork --kill-child --mount-proc \
        "$ANSIBLE" -i "$WORK/inventory.json" netfix.node.rolling_upgrade "$@" >"$OUT" 2>"$OUT.err" </dev/null || got=$?
    cat "$OUT" "$OUT.err"
    [ "$got" = "$want" ] || fail "exit code $got, not $want: ansible-playbook $*"
}

# state_of NODE: its network and that of its pod, without the counters of its traffic.
state_of() { for ns in "node$1" "lodger$1"; do ip -n "$ns" -j link | jq -S .; ip -n "$ns" -j addr | jq -S .; ip -n "$ns" -j route | jq -S .; done; }
others() { local n; for n in 2 3 4; do state_of $n; done; }
verdict_of() { jq -r '.report.computed.verdict // "none"' "$WORK/netfix-reports/$1.json"; }

plain_node
plain_kubelet
ip addr add 192.0.2.2/24 dev $NIC
# The shell of a login reads what this machine's own root has there, and may wait for it.
mount -t tmpfs tmpfs /root
mkdir -p "$SSH" /run/sshd "$WORK/collections/ansible_collections/netfix"
ln -s "$LAB_REPO/contrib/ansible" "$WORK/collections/ansible_collections/netfix/node"
ssh-keygen -q -t ed25519 -N '' -f "$SSH/key"
sshd node1 192.0.2.2
# Longer than ssh waits for a dead connection, and for a new one.
host node1 192.0.2.2 '/run/netns/pod*' "modprobe -r e1000e; sleep 45; modprobe e1000e"
for n in 2 3 4; do other_node $n; done
inventory
before_window
others >"$WORK/others"

step "the wave: the connection is lost with the NIC, three nodes are left out"
play 2 -vv
printed 'left out, because their window would be refused: node2, node3, node4'
printed 'node1: no connection'
printed '^node1 .* failed=0'
for n in 2 3 4; do printed "^node$n .* failed=1"; done
STATE=$WORK/state/node1
recorded '.command == "upgrade" and .exit == 0 and .run.exit == 0'
recorded '.pods | length == 3 and all(.state == "restored" and .answered - .lost >= 40000)'
untouched

step "the nodes that were left out are as before: no window, no command, the same network"
others | diff "$WORK/others" - || fail "another node was changed"
for n in 2 3 4; do
    [ ! -e "$WORK/node$n.ran" ] || fail "the command ran on node$n"
    [ -z "$(find "$WORK/state/node$n" -path '*windows*' -o -name window.json)" ] || fail "node$n has a record of a window"
done

step "the report has the node of the wave"
[ "$(verdict_of node1)" = well ] || fail "the verdict is $(verdict_of node1)"
for n in 2 3 4; do
    [ ! -e "$WORK/netfix-reports/node$n.json" ] || fail "node$n has a report"
done
grep -q "$(record -r .id)" "$WORK/netfix-reports/fleet.html" || fail "the page lacks the window of node1"
