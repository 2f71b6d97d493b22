#!/usr/bin/env bash
# lab: systemd
# Docker's engine with a macvlan network on a VLAN: netfix names its containers, and they survive the driver's reload.
# shellcheck source=tests/vm/container.sh
. "$LAB_REPO/tests/vm/container.sh"

# Debian's client, even if another one is installed.
ENGINE=/usr/bin/docker

tidy() {
    docker rm -f "${WEBS[@]}" side host
    systemctl disable --now docker.socket docker.service containerd.service netfix-snapshot.service
    umount /var/lib/docker /var/lib/containerd
    rm -rf /run/docker.sock /etc/default/docker /etc/systemd/system/netfix-* /usr/bin/netfix /var/lib/netfix
    systemctl daemon-reload
    busybox sysctl -qw net.ipv4.ip_forward=0
}

vlan_node
gw_hide
engine_folders /var/lib/docker /var/lib/containerd
echo 'DOCKER_OPTS="--bridge=none --iptables=false"' >/etc/default/docker
systemctl start docker.service
make_image
make_containers

step "only Docker is queried"
export NETFIX_RUNTIME=docker
incident docker identities names

step "every runtime is queried: containerd runs too, without any pod of Kubernetes"
mapfile -t pods < <(names)
export NETFIX_RUNTIME=auto
STATE=$STATE-auto
expect_exit 0 nf snapshot
written_down docker "${pods[@]}"

step "the unit can query Docker too"
unset NETFIX_RUNTIME
install_units
systemctl start netfix-snapshot.service
STATE=/var/lib/netfix
written_down docker "${pods[@]}"
