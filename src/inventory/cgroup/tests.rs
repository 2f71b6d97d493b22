use super::*;

const ID: &str = "06c9b8d0a80012345678901234567890abcdefabcdefabcdefabcdefabcdef01";
const OUTER: &str = "ffc9b8d0a80012345678901234567890abcdefabcdefabcdefabcdefabcdef01";
const UID: &str = "5e0c6f86-7f6c-4a1c-9f5e-2f4f0f3c1a11";
const STATIC_UID: &str = "d4f3c2b1a09182736455463728190a0b";

fn read(text: &str) -> Option<(String, Option<String>)> {
    let text = text
        .replace("<id>", ID)
        .replace("<outer>", OUTER)
        .replace("<uid>", UID);
    let own = BTreeSet::from([OUTER.to_owned()]);
    container_in(&text, &own).map(|container| (container.id, container.uid))
}

#[test]
fn containers_are_found_in_every_runtimes_spelling() {
    for line in [
        "0::/system.slice/docker-<id>.scope",
        "4:memory:/docker/<id>",
        "0::/docker/<id>/init.scope",
        "0::/machine.slice/libpod-<id>.scope/container",
        "0::/system.slice/web.service/libpod-payload-<id>",
        "0::/libpod_parent/libpod-<id>",
        "0::/../docker-<id>.scope",
        "0::/docker/<outer>/docker/<id>",
        "11:pids:/\n4:memory:/docker/<id>\n0::/",
    ] {
        assert_eq!(read(line), Some((ID.to_owned(), None)), "{line}");
    }
}

#[test]
fn pods_are_found_in_every_drivers_spelling() {
    let slice = UID.replace('-', "_");
    for line in [
        "11:memory:/kubepods/burstable/pod<uid>/<id>",
        "0::/kubepods/pod<uid>/<id>",
        &format!(
            "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{slice}.slice/cri-containerd-<id>.scope"
        ),
        &format!("0::/kubepods.slice/kubepods-pod{slice}.slice/crio-<id>.scope/container"),
        &format!(
            "0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{slice}.slice/cri-containerd-<id>.scope"
        ),
        &format!(
            "1:name=systemd:/system.slice/containerd.service/kubepods-besteffort-pod{slice}.slice:cri-containerd:<id>"
        ),
        "0::/docker/<outer>/kubelet/kubepods/burstable/pod<uid>/<id>",
    ] {
        assert_eq!(
            read(line),
            Some((ID.to_owned(), Some(UID.to_owned()))),
            "{line}"
        );
    }
    let line = format!("0::/kubepods/burstable/pod{STATIC_UID}/<id>");
    assert_eq!(
        read(&line),
        Some((ID.to_owned(), Some(STATIC_UID.to_owned())))
    );
}

#[test]
fn the_units_of_a_process_are_those_in_its_cgroup() {
    let own = BTreeSet::from([OUTER.to_owned()]);
    let is_container = |text: &str| {
        let owner = CgroupOwner::in_cgroups(text, &own, false);
        matches!(owner, CgroupOwner::Container { .. })
    };
    let written = |text: &str| text.replace("<id>", ID).replace("<outer>", OUTER);
    for (text, units) in [
        (
            "0::/system.slice/k3s.service",
            &["system.slice", "k3s.service"][..],
        ),
        (
            "0::/system.slice/k3s.service/init",
            &["system.slice", "k3s.service"],
        ),
        (
            "4:memory:/\n1:name=systemd:/system.slice/kubelet.service\n0::/",
            &["system.slice", "kubelet.service"],
        ),
        (
            "0::/docker/<outer>/kubelet.slice/kubelet.service",
            &["kubelet.slice", "kubelet.service"],
        ),
        ("0::/docker-<outer>.scope/init", &[]),
        ("0::/", &[]),
        ("", &[]),
    ] {
        let text = written(text);
        assert_eq!(units_in(&text), units, "{text}");
        assert!(!is_container(&text), "{text}");
    }
    for text in [
        "0::/system.slice/docker-<id>.scope",
        "0::/kubepods.slice/kubepods-podx.slice/cri-containerd-<id>.scope",
        "0::/kubepods/burstable",
        "0::/kubelet.slice/kubelet-kubepods.slice",
    ] {
        assert!(is_container(&written(text)), "{text}");
    }
}

#[test]
fn a_cgroup_distinguishes_services_from_containers_and_machines() {
    let owner = |path: &str| {
        let path = path
            .replace("<id>", ID)
            .replace("<outer>", OUTER)
            .replace("<uid>", UID);
        let own = BTreeSet::from([OUTER.to_owned()]);
        CgroupOwner::in_cgroups(&format!("4:memory:/\n0::{path}\n"), &own, false)
    };
    for path in [
        "/system.slice/polkit.service",
        "/system.slice/run-r1.scope",
        "/user.slice/user-0.slice/session-1.scope",
        "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-<id>.scope",
        "/init.scope",
        "/docker/<outer>/system.slice/polkit.service",
    ] {
        assert_eq!(owner(path), CgroupOwner::System, "{path}");
    }
    let container = |id: &str, uid: Option<&str>| CgroupOwner::Container {
        id: id.to_owned(),
        uid: uid.map(str::to_owned),
    };
    assert_eq!(
        owner("/system.slice/docker-<id>.scope"),
        container(ID, None)
    );
    assert_eq!(
        owner("/system.slice/web.service/libpod-payload-<id>"),
        container(ID, None)
    );
    assert_eq!(
        owner("/kubepods/burstable/pod<uid>/<id>"),
        container(ID, Some(UID))
    );
    assert_eq!(
        owner("/kubepods/burstable/pod<uid>/vm"),
        container("", Some(UID))
    );
    for path in [
        "/machine.slice/systemd-nspawn@web.service/payload",
        "/system.slice/web.service/payload",
        "/lxc.payload.web",
        "/somebody",
    ] {
        assert_eq!(owner(path), CgroupOwner::Unknown, "{path}");
    }
}

#[test]
fn what_is_no_container_of_this_machine_is_none() {
    for line in [
        "",
        "0::/",
        "0::/user.slice/user-0.slice/session-1.scope",
        "0::/system.slice/docker.service",
        "0::/docker/<outer>",
        "0::/machine.slice/libpod-conmon-<id>.scope",
        "0::/machine.slice/machine-libpod_pod_<id>.slice",
        "0::/docker/06c9b8d0a800",
        "0::/docker/g6c9b8d0a80012345678901234567890abcdefabcdefabcdefabcdefabcdef01",
        "0::/docker/x<id>",
        "0::/docker/ü<id>",
    ] {
        assert_eq!(read(line), None, "{line}");
    }
}
