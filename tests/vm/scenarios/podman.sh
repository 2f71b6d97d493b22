#!/usr/bin/env bash
# lab: systemd
# podman with a macvlan network on a VLAN: its API names its containers, and without the API the kernel does.
# shellcheck source=tests/vm/container.sh
. "$LAB_REPO/tests/vm/container.sh"

ENGINE=podman
SOCKET=/run/podman/podman.sock

api_answers() { curl -s --unix-socket "$SOCKET" http://podman/_ping >/dev/null; }

vlan_node
gw_hide
engine_folders /var/lib/containers
make_image
make_containers

step "podman queried over its socket"
mkdir -p "${SOCKET%/*}"
podman system service --time=0 "unix://$SOCKET" &
service=$!
wait_for 60 "podman's API" api_answers
export NETFIX_RUNTIME=docker
incident podman identities names

step "without its socket: no runtime is queried"
kill "$service"
wait "$service" || :
rm -f "$SOCKET"
export NETFIX_RUNTIME=none
STATE=$STATE-none
incident cgroup identities names
