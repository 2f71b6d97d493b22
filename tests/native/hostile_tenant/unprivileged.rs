//! Processes: root in the pod, and users without any right.

use super::attacks;

mod root {
    use super::attacks;

    attacks! { [] as [&str; 0];
        a_process_called_kubelet: DuringRestore, [],
            "cp /bin/sleep $STATE.kubelet && echo begun && exec $STATE.kubelet 60";
        a_process_called_conmon: DuringRestore, [],
            "echo begun; exec bash -c 'exec -a conmon bash -c \"sleep 6; :\" -c 0123456789ab -n web'";
        a_mount_over_a_neighbours_namespace: DuringRestore, [],
            "exec unshare --mount sh -c 'mount --bind /proc/self/ns/net $WEB_NETNS && echo begun && exec sleep 60'";
        a_stopped_process: DuringRestore, [],
            "echo begun; kill -STOP $$";
        many_processes_and_namespaces: DuringRestore, [],
            "for i in $(seq 200); do sleep 6 & done; for i in $(seq 30); do unshare --net sleep 6 & done; sleep 1; echo begun; wait";
        namespaces_in_a_loop: DuringRestore, [],
            "echo begun; while :; do unshare --net true; done";
    }
}

mod nobody {
    use super::attacks;

    const RIGHTS: [&str; 4] = ["--reuid", "65534", "--clear-groups", "--no-new-privs"];

    attacks! { RIGHTS;
        a_lock_on_the_state_directory: DuringRestore, [],
            "flock $STATE/lock true && exit 1; echo begun; while :; do flock $STATE/lock sleep 1; done 2>/dev/null";
        signals: DuringRestore, [],
            "echo begun; while :; do for p in /proc/[0-9]*; do read c <$p/comm; [ \"$c\" = netfix ] && kill -9 ${p##*/}; done; done 2>/dev/null";
        a_private_namespace_in_a_loop: DuringRestore, [],
            "echo begun; while :; do unshare --user --net --map-root-user true; done";
        a_neighbours_address_in_a_private_namespace: DuringRestore, [],
            "exec unshare --user --net --map-root-user sh -c 'ip link add eth0 address $WEB_MAC type veth peer name v0 &&
                ip addr add $WEB/16 dev eth0 && ip link set eth0 up && echo begun && exec sleep 60'";
        the_processor: DuringRestore, [],
            "echo begun; for i in 1 2 3; do timeout 6 sh -c 'while :; do :; done' & done; wait";
    }
}
