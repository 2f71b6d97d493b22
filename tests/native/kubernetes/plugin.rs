//! `kubectl netfix`: the script, with a replacement of kubectl(1) whose `exec` runs netfix on real nodes.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::manifest::{Manifest, documents, text};
use crate::common::run::{BINARY, Run};
use crate::common::{Node, tool};
use crate::window::scene::Scene;

/// The pods of the `DaemonSet`, as kubectl prints them. The last one has no node yet.
const PODS: &str = "worker-1\tnetfix-check-a\tRunning\nworker-1\tnetfix-check-old\tFailed\nworker-2\tnetfix-check-b\tRunning\n\
    worker-3\tnetfix-check-c\tRunning\nworker-4\tnetfix-check-d\tPending\n\tnetfix-check-e\tPending\n";

/// A command as a line of a shell.
fn line(command: &Command) -> String {
    let quoted = |word: &std::ffi::OsStr| {
        let text = String::from_utf8_lossy(word.as_bytes()).into_owned();
        format!("'{}'", text.replace('\'', "'\\''"))
    };
    let set = command
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}={}", name.to_string_lossy(), quoted(value?))));
    let words = [command.get_program()]
        .into_iter()
        .chain(command.get_args());
    let words: Vec<String> = ["env".to_owned()]
        .into_iter()
        .chain(set)
        .chain(words.map(quoted))
        .collect();
    words.join(" ")
}

/// Two nodes that answer, one whose kubelet does not, and one whose pod does not run.
struct Cluster<'n> {
    scenes: [Scene<'n>; 2],
}

impl<'n> Cluster<'n> {
    fn new(nodes: &'n [Node; 2]) -> Self {
        let scenes = [Scene::new(&nodes[0]), Scene::new(&nodes[1])];
        for (scene, name) in scenes.iter().zip(["worker-1", "worker-2"]) {
            tool::run(scene.machine.exec("hostname").arg(name));
        }
        let cluster = Self { scenes };
        fs::write(cluster.scenes[0].path("pods"), PODS).expect("a file");
        let lines = cluster
            .scenes
            .each_ref()
            .map(|scene| line(&scene.command("")));
        let kubectl = format!(
            "#!/bin/bash\necho \"$*\" >>{calls}\ncase \" $* \" in *' get pods '*) exec cat {pods} ;; \
            *' get nodes '*) if [ -e {nodes} ]; then exec cat {nodes}; else exit 1; fi ;; esac\n\
            while [ \"$1\" != exec ]; do shift; done; shift; [ \"$1\" != -i ] || shift; pod=$1\n\
            while [ \"$1\" != -- ]; do shift; done; shift; [ \"$1\" = /usr/bin/netfix ] || exit 126; shift\n\
            case $pod in\n*-a) {} \"$@\" ;;\n*-b) {} \"$@\" ;;\n\
            *-c) if [ -e {cut} ]; then echo '{{\"schema\": \"netfix/v1\",'; exit 2; fi ;;&\n\
            *) echo 'Error from server: error dialing backend: dial tcp: \"i/o timeout\"' >&2; exit 1 ;;\nesac\n\
            code=$?; [ $code = 0 ] || echo \"command terminated with exit code $code\" >&2; exit $code\n",
            lines[0],
            lines[1],
            calls = cluster.scenes[0].path("calls").display(),
            pods = cluster.scenes[0].path("pods").display(),
            nodes = cluster.scenes[0].path("nodes").display(),
            cut = cluster.scenes[0].path("cut").display(),
        );
        fs::create_dir(cluster.scenes[0].path("bin")).expect("a folder");
        tool::program(&kubectl, &cluster.scenes[0].path("bin/kubectl"));
        cluster
    }

    /// `kubectl netfix WORDS`, with netfix on this machine or without.
    fn plugin(&self, words: &str, has_netfix: bool) -> Run {
        self.plugin_under("exec", words, has_netfix)
    }

    /// The same with a shell's words before it.
    fn plugin_under(&self, before: &str, words: &str, has_netfix: bool) -> Run {
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib/kubernetes/kubectl-netfix");
        let path = format!(
            "{}:/usr/sbin:/usr/bin:/sbin:/bin",
            self.scenes[0].path("bin").display()
        );
        let before = format!("{before} timeout 600 \"$@\"");
        let mut command = tool::command("unshare", ["-m", "sh", "-c", &before, "sh"]);
        command.arg(script).args(words.split_whitespace());
        command
            .env("PATH", path)
            .env("NO_COLOR", "1")
            .env_remove("NETFIX");
        if has_netfix {
            command.env("NETFIX", BINARY);
        }
        Run::of(&mut command)
    }

    fn calls(&self) -> String {
        fs::read_to_string(self.scenes[0].path("calls")).unwrap_or_default()
    }
}

/// Each node of a merged document, with its verdict.
fn verdicts(run: &Run) -> Vec<(String, String)> {
    let document: Value = serde_json::from_str(&run.out).expect("a document");
    let nodes = document["fleet"]["nodes"]
        .as_array()
        .expect("nodes")
        .clone();
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let mut all: Vec<_> = nodes
        .iter()
        .map(|node| (text(&node["hostname"]), text(&node["verdict"])))
        .collect();
    all.sort_unstable();
    all
}

fn owned<const N: usize>(pairs: [(&str, &str); N]) -> Vec<(String, String)> {
    pairs
        .map(|(name, verdict)| (name.to_owned(), verdict.to_owned()))
        .into()
}

#[test]
fn the_plugin_merges_checks_and_reports_of_all_nodes_and_lists_those_without_an_answer() {
    let nodes = [Node::new(), Node::new()];
    let cluster = Cluster::new(&nodes);
    for scene in &cluster.scenes {
        scene.netfix("snapshot").exits(0);
    }
    cluster
        .plugin("check worker-1 worker-2", false)
        .exits(0)
        .stdout_has(&["2 nodes: all well"]);
    cluster.scenes[1].pods[0].ip("link del eth0");

    let run = cluster.plugin("check -o json", false).exits(2);
    let expected = [
        ("worker-1", "OK"),
        ("worker-2", "CRITICAL"),
        ("worker-3", "no-report"),
        ("worker-4", "no-report"),
    ];
    assert_eq!(verdicts(&run), owned(expected));
    assert!(!run.err.contains("terminated"), "{}", run.err);
    let run = cluster.plugin("check", false).exits(2);
    let run = run.stdout_has(&["degraded", "worker-3, worker-4", "i/o timeout"]);
    run.stderr_has(&["nodes without a pod of netfix-check are not in the answer"]);

    // A node that has no pod of the DaemonSet.
    let nodes = "worker-1\nworker-2\nworker-3\nworker-4\nworker-5\n";
    fs::write(cluster.scenes[0].path("nodes"), nodes).expect("a file");
    let run = cluster.plugin("check -o json", false).exits(2);
    assert!(!run.err.contains("not in the answer"), "{}", run.err);
    let run = run.stderr_has(&["worker-5: no pod of netfix-check is on this node"]);
    let silent: Vec<_> = run
        .err
        .lines()
        .filter_map(|line| line.split(':').next())
        .collect();
    assert_eq!(silent, ["worker-3", "worker-4", "worker-5"], "{}", run.err);
    let all: Vec<_> = owned(expected)
        .into_iter()
        .chain(owned([("worker-5", "no-report")]))
        .collect();
    assert_eq!(verdicts(&run), all);
    fs::remove_file(cluster.scenes[0].path("nodes")).expect("the file");

    // Without an answer nothing is known.
    cluster.plugin("check worker-1 worker-3", false).exits(3);
    let run = cluster.plugin("check worker-3 worker-9", false).exits(2);
    run.stderr_has(&[
        "i/o timeout",
        "worker-9: no pod of netfix-check is on this node",
        "no node has answered",
    ]);

    assert_calls(&cluster.calls());
    assert_status(&cluster);
    assert_reports(&cluster);
    assert_part_of_an_answer(&cluster);
}

/// The screen of one node, with its own exit code.
fn assert_status(cluster: &Cluster<'_>) {
    let run = cluster.plugin("status worker-1", false).exits(0);
    run.stdout_has(&["node       worker-1", "2 of 2 pods have their network"]);
    let run = cluster.plugin("status worker-2", false).exits(0);
    let lost = cluster.scenes[1].pods[0].name();
    run.stdout_has(&[lost, "Run `netfix restore`"]);
    let run = cluster.plugin("status worker-4", false).exits(2);
    run.stderr_has(&["no pod of netfix-check runs on worker-4"]);
    let run = cluster.plugin("status", false).exits(2);
    run.stderr_has(&["status is of one node"]);
}

/// A document that is cut off costs the others nothing, and where there is no space for all nothing is said of any.
fn assert_part_of_an_answer(cluster: &Cluster<'_>) {
    fs::write(cluster.scenes[0].path("cut"), "").expect("a file");
    let run = cluster.plugin("check worker-1 worker-3 -o json", true);
    let expected = [("worker-1", "OK"), ("worker-3", "no-report")];
    assert_eq!(verdicts(&run.exits(3)), owned(expected));
    let small = cluster.scenes[0].path("small");
    fs::create_dir(&small).expect("a folder");
    let small = small.display();
    let before = format!("mount -t tmpfs -o size=8k tmpfs {small} && TMPDIR={small}");
    let run = cluster.plugin_under(&before, "check worker-1 worker-2 worker-3", true);
    assert!(run.out.is_empty(), "{}", run.transcript());
    run.exits(2).stderr_has(&["no space for the answer of"]);
}

/// The calls have the words that the manifest promises.
fn assert_calls(calls: &str) {
    let manifest = documents(&text("check.yaml", &[])).remove(0);
    let labels = manifest["spec"]["selector"]["matchLabels"]
        .as_object()
        .expect("labels");
    for (name, value) in labels {
        let label = format!("{name}={}", value.as_str().expect("text"));
        assert!(
            calls
                .lines()
                .next()
                .is_some_and(|line| line.contains(&label)),
            "{label}: {calls}"
        );
    }
    let container = Manifest::read("check.yaml", &[]).container()["name"].clone();
    let container = container.as_str().expect("a name");
    let namespace = manifest["metadata"]["namespace"]
        .as_str()
        .expect("a namespace");
    let exec = format!(
        "-n {namespace} exec netfix-check-a -c {container} -- /usr/bin/netfix check -o json"
    );
    assert!(calls.contains(&exec), "{calls}");
}

/// The reports of the last windows; worker-2 had none.
fn assert_reports(cluster: &Cluster<'_>) {
    let reload = cluster.scenes[0].reload();
    cluster.scenes[0].upgrade("", &reload).exits(0);
    let page = cluster.scenes[0].path("fleet.html");

    let run = cluster
        .plugin("report worker-1 worker-2 -o json", false)
        .exits(0);
    assert_eq!(
        verdicts(&run),
        owned([("worker-1", "well"), ("worker-2", "no-report")])
    );
    let words = format!("--context=lab report --html {}", page.display());
    cluster.plugin(&words, true).exits(2);
    let words = format!("report --context=lab --html {}", page.display());
    cluster
        .plugin(&words, true)
        .exits(5)
        .stdout_has(&["1 of 4 nodes: well"]);
    let html = fs::read_to_string(&page).expect("the page");
    assert!(
        html.contains("worker-1") && html.contains("worker-4"),
        "{html}"
    );
    assert!(
        cluster.calls().contains("--context=lab -n netfix exec"),
        "{}",
        cluster.calls()
    );
}

/// A `kubectl` for so many nodes: most answer with this document; one has no pod, one is cut off, one answers without end, one
/// does not answer.
const MANY: &str = r#"#!/bin/bash
case " $* " in
*' get nodes '*) exec seq -f 'node-%g' 500 ;;
*' get pods '*) exec awk 'BEGIN { for (n = 2; n <= 500; n++) print "node-" n "\tpod-" n "\tRunning" }' ;;
esac
for word; do case $word in pod-*) pod=$word; break ;; esac; done
case $pod in
pod-2) exec head -c 300 "$DOCUMENT" ;;
pod-3) echo '{'; exec yes '"a": 1,' ;;
pod-4) exec sleep 600 ;;
*) exec sed "s/\"hostname\": \"[^\"]*\"/\"hostname\": \"node-${pod#pod-}\"/" "$DOCUMENT" ;;
esac
"#;

#[test]
fn of_500_nodes_each_is_in_the_answer_and_those_that_do_not_answer_are_named() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    node.netfix_alone("snapshot").exits(0);
    let folder = node.temp().join("bin");
    fs::create_dir(&folder).expect("a folder");
    tool::program(MANY, &folder.join("kubectl"));
    let document = node.temp().join("document");
    let answer = node.netfix_alone("check -o json").exits(0);
    assert!(answer.out.contains(pod.name()), "{}", answer.transcript());
    fs::write(&document, &answer.out).expect("a file");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib/kubernetes/kubectl-netfix");
    let mut command = tool::command("timeout", ["600"]);
    command.arg(script).args(["check", "-o", "json"]);
    command
        .env(
            "PATH",
            format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", folder.display()),
        )
        .env("DOCUMENT", &document)
        .env("NETFIX", BINARY)
        .env("NETFIX_KUBECTL_TIMEOUT", "20");
    let run = Run::of(&mut command).exits(3);
    let verdicts = verdicts(&run);
    assert_eq!(verdicts.len(), 500);
    let silent: Vec<_> = verdicts
        .iter()
        .filter(|(_, verdict)| verdict == "no-report")
        .collect();
    let names: Vec<&str> = silent.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["node-1", "node-2", "node-3", "node-4"]);
    for reason in [
        "no pod of netfix-check is on this node",
        "no whole document",
        "larger than 16 MiB",
        "no answer within 20 s",
    ] {
        assert!(run.err.contains(reason), "{reason}: {}", run.err);
    }
}
