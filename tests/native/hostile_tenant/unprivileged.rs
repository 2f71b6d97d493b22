//! Processes: root in the pod, and users without any right.

use super::{Row, When, attacks, scripts};

mod root {
    use super::{Row, When, attacks, scripts};

    /// The last one lives for six seconds.
    const PROCESSES: [Row; 4] = [
        (
            "called_kubelet",
            &[],
            "cp /bin/sleep $STATE.kubelet && echo begun && exec $STATE.kubelet 60",
        ),
        (
            "mount_over_a_neighbour",
            &[],
            "exec unshare --mount sh -c 'mount --bind /proc/self/ns/net $WEB_NETNS && echo begun && exec sleep 60'",
        ),
        ("stopped_process", &[], "echo begun; kill -STOP $$"),
        (
            "called_conmon",
            &[],
            "echo begun; exec bash -c 'exec -a conmon bash -c \"sleep 6; :\" -c 0123456789ab -n web'",
        ),
    ];

    #[test]
    fn processes_and_mounts_of_tenants_side_by_side() {
        scripts(When::DuringRestore, &[], &PROCESSES);
    }

    attacks! { [] as [&str; 0];
        many_processes_and_namespaces: DuringRestore, [],
            "for i in $(seq 200); do sleep 6 & done; for i in $(seq 30); do unshare --net sleep 6 & done; sleep 1; echo begun; wait";
        namespaces_in_a_loop: DuringRestore, [],
            "echo begun; while :; do unshare --net true; done";
    }
}

mod nobody {
    use super::{Row, When, attacks, scripts};

    const RIGHTS: [&str; 4] = ["--reuid", "65534", "--clear-groups", "--no-new-privs"];

    const HELD: [Row; 2] = [
        (
            "lock",
            &[],
            "flock $STATE/lock true && exit 1; echo begun; while :; do flock $STATE/lock sleep 1; done 2>/dev/null",
        ),
        (
            "neighbours_address",
            &[],
            "exec unshare --user --net --map-root-user sh -c 'ip link add eth0 address $WEB_MAC type veth peer name v0 &&
                ip addr add $WEB/16 dev eth0 && ip link set eth0 up && echo begun && exec sleep 60'",
        ),
    ];

    #[test]
    fn a_lock_and_an_address_that_users_hold_side_by_side() {
        scripts(When::DuringRestore, &RIGHTS, &HELD);
    }

    attacks! { RIGHTS;
        signals: DuringRestore, [],
            "echo begun; while :; do for p in /proc/[0-9]*; do read c <$p/comm; [ \"$c\" = netfix ] && kill -9 ${p##*/}; done; done 2>/dev/null";
        a_private_namespace_in_a_loop: DuringRestore, [],
            "echo begun; while :; do unshare --user --net --map-root-user true; done";
        the_processor: DuringRestore, [],
            "echo begun; for i in 1 2 3; do timeout 6 sh -c 'while :; do :; done' & done; wait";
    }
}
