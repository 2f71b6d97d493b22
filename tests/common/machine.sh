#!/bin/sh
# A machine within the machine, in the network namespace that this is started in: process ids, mounts and cgroups of
# its own, /run and /var/lib from a folder of the test. It lives until its standard input is closed, and with it ends
# every process and every mount in it.
#
# usage: machine.sh FOLDER NAME
set -eu
folder=$1 name=$2 stage=${3:-outside}

if [ "$stage" = outside ]; then
    mount -t cgroup2 none /sys/fs/cgroup
    mkdir "/sys/fs/cgroup/$name"
    echo $$ >"/sys/fs/cgroup/$name/cgroup.procs"
    exec unshare --cgroup --pid --fork --mount-proc sh "$0" "$folder" "$name" inside
fi

umount /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
# A cgroup that others are made in may itself have no process.
mkdir /sys/fs/cgroup/init
echo $$ >/sys/fs/cgroup/init/cgroup.procs
# Namespaces that other tests have mounted are none of this machine's.
# It is no failure that some end at this very moment.
sed -n 's/^[^ ]* [^ ]* [^ ]* [^ ]* \([^ ]*\) .* - nsfs .*/\1/p' /proc/self/mountinfo | xargs -r umount -l 2>/dev/null || :
mount --bind "$folder/run" /run
mount --bind "$folder/var-lib" /var/lib
exec 3<&0
cat <&3 >/dev/null &
echo ready
# As process 1 it also takes leave of every orphan that ends.
wait $!
