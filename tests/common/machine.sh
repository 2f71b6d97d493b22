#!/bin/sh
# A machine within the machine, in the current network namespace: it has its own process ids, mounts and cgroups, and
# /run and /var/lib from a directory of the test. It runs until its standard input is closed; then every process and
# every mount in it ends. Its process 1 is this script, or systemd with D-Bus and the journal.
#
# usage: machine.sh FOLDER NAME plain|systemd
set -eu
folder=$1 name=$2 first=$3 stage=${4:-outside}

# systemd does not read its input, so a child does. A Ctrl-C for all processes does not close the input.
end_with_the_input() {
    trap '' INT TERM HUP
    cat <&3 >/dev/null
    # The children are this reader, which came first, and the other process 1.
    # shellcheck disable=SC2046
    set -- "$1" $(cat "/proc/$1/task/$1/children")
    kill -KILL "${3:-$1}"
}

if [ "$stage" = outside ]; then
    exec 3<&0
    [ "$first" = plain ] || end_with_the_input $$ &
    mount -t cgroup2 none /sys/fs/cgroup
    mkdir "/sys/fs/cgroup/$name"
    echo $$ >"/sys/fs/cgroup/$name/cgroup.procs"
    # unshare(1) reports a process 1 that was killed.
    exec unshare --cgroup --pid --uts --fork --kill-child --mount-proc \
        sh "$0" "$folder" "$name" "$first" inside <&3 3<&- 4>&2 2>/dev/null
fi
exec 2>&4 4>&-

umount /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
# A cgroup with child cgroups must not contain a process.
mkdir /sys/fs/cgroup/init
echo $$ >/sys/fs/cgroup/init/cgroup.procs
# Unmount the namespaces that other tests have mounted: they do not belong to this machine.
# Some of them may end at this moment, so ignore failures.
sed -n 's/^[^ ]* [^ ]* [^ ]* [^ ]* \([^ ]*\) .* - nsfs .*/\1/p' /proc/self/mountinfo | xargs -r umount -l 2>/dev/null || :
mount --bind "$folder/run" /run
mount --bind "$folder/var-lib" /var/lib
if [ "$first" = systemd ]; then
    # shellcheck source=tests/common/systemd.sh
    . "$(dirname "$0")/systemd.sh"
    start_systemd "$folder"
fi
exec 3<&0
cat <&3 >/dev/null &
echo ready
# As process 1 it also reaps every orphan.
wait $!
