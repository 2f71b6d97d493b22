#!/bin/sh
# Turns process 1 of machine.sh into systemd. It starts only the units that are linked here, none of this machine's
# units, and changes neither this machine's devices nor its settings and logs.

start_systemd() {
    own_devices "$1/dev"
    own_units "$1/units"
    mount -t tmpfs log /var/log
    for settings in fs kernel; do
        mount --bind "/proc/sys/$settings" "/proc/sys/$settings"
        mount -o remount,bind,ro "/proc/sys/$settings"
    done
    echo ready
    exec env -i container=lab "PATH=$PATH" /lib/systemd/systemd --system </dev/null >/dev/null 2>&1
}

own_devices() {
    mkdir "$1"
    mount -t tmpfs -o mode=755 dev "$1"
    for device in null zero full random urandom tty; do
        : >"$1/$device"
        mount --bind "/dev/$device" "$1/$device"
    done
    mkdir "$1/shm"
    ln -s /proc/self/fd "$1/fd"
    mount --move "$1" /dev
}

own_units() {
    units=/usr/lib/systemd/system own=/etc/systemd/system
    mkdir "$1"
    mount -t tmpfs units "$1"
    mkdir "$1/upper" "$1/work"
    mount -t overlay -o "lowerdir=$units,upperdir=$1/upper,workdir=$1/work" overlay $units
    rm -r $units/*.target.wants
    for folder in /usr/lib/systemd/system-generators $own; do
        mount -t tmpfs own "$folder"
    done
    mkdir $own/sysinit.target.wants $own/sockets.target.wants
    ln -s $units/systemd-journald.service $own/sysinit.target.wants
    ln -s $units/systemd-journald.socket $units/dbus.socket $own/sockets.target.wants
    ln -s $units/multi-user.target $own/default.target
}
