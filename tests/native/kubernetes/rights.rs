//! The capabilities of each container are those that it needs, and no others.

use serde_json::json;

use super::{on_host, with_image};
use crate::common::manifest::{Manifest, texts};
use crate::common::workload::Workload;
use crate::common::{CriNode, tool};

/// One run of a manifest's command, without a capability; its exit code and output.
fn run_without(
    node: &CriNode,
    manifest: &Manifest,
    words: &[&str],
    capability: &str,
) -> (i32, String) {
    let mut manifest = Manifest {
        name: manifest.name.clone(),
        spec: manifest.spec.clone(),
    };
    let container = manifest.container_mut();
    container["args"] = json!(words);
    let all = container["securityContext"]["capabilities"]["add"]
        .as_array_mut()
        .expect("capabilities");
    all.retain(|one| *one != capability);
    let workload = Workload::start(node, &manifest, &[("RUN_ID", "none")]);
    let end = (workload.exit_code(), workload.log());
    workload.delete();
    end
}

#[test]
fn every_capability_is_needed() {
    let node = with_image(CriNode::new());
    let _pods = node.pods(1);
    // A namespace below the directory of a user, as of rootless containers: only DAC_READ_SEARCH leads there.
    let script = "mkdir -p /run/user/4242 && : >/run/user/4242/netns && unshare --net=/run/user/4242/netns true && \
        chown 4242:4242 /run/user/4242 && chmod 700 /run/user/4242";
    tool::run(node.machine.exec("sh").args(["-c", script]));
    for (file, words) in [
        ("snapshot.yaml", &["snapshot"][..]),
        ("check.yaml", &["check"]),
        // The plan has the rights of the job: kubernetes/upgrade.rs.
        ("job.yaml", &["host", "--", "true"]),
    ] {
        on_host(&node, "snapshot").exits(0);
        let manifest = Manifest::read(file, &[]);
        let context = &manifest.container()["securityContext"];
        assert_ne!(context["privileged"], true, "{file}");
        let (code, log) = run_without(&node, &manifest, words, "none");
        assert_eq!(code, 0, "{file}:\n{log}");
        for capability in texts(&context["capabilities"]["add"]) {
            // Only a real device can wake a machine: the VM with the units shows that its settings are read.
            if (file, &*capability) == ("snapshot.yaml", "NET_ADMIN") {
                continue;
            }
            let (code, log) = run_without(&node, &manifest, words, &capability);
            assert_ne!(code, 0, "{file} needs no {capability}:\n{log}");
        }
    }
}
