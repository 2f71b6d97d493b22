//! A tenant tries to reach, delay, starve or deceive the restore of its neighbours. Each row of the tables is one kind of
//! attack, by a tenant of its own; none may succeed.
//!
//! The neighbours are judged by ip(8): after the restore they have everything that they had, and nothing else.

mod capable;
mod planted;
mod ten;
mod unprivileged;

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::background::{Background, wait_until};
use crate::common::capture::Capture;
use crate::common::{GATEWAY4, GATEWAY6, Node, Pod, Run};

/// A restore of these few pods takes a fraction of a second on an idle machine.
const LIMIT: Duration = Duration::from_secs(60);

/// When the tenant attacks.
#[derive(Clone, Copy, PartialEq)]
pub enum When {
    /// Between two snapshots: the second one records it.
    BeforeSnapshot,
    /// After the NIC was reloaded, before the restore.
    BeforeRestore,
    /// From before the restore until after it.
    DuringRestore,
}

/// A tenant's name, the errors that it may have by what it did to itself, and its script.
type Row = (&'static str, &'static [&'static str], &'static str);

/// Tenants and their neighbours on one NIC.
pub struct Scene<'n> {
    node: &'n Node,
    tenants: Vec<Pod<'n>>,
    victims: Vec<Pod<'n>>,
    /// The tenants' and then the victims' ifindexes of eth0.
    indexes: Vec<u32>,
}

impl<'n> Scene<'n> {
    fn new(node: &'n Node, names: &[&str]) -> Self {
        let tenants = names.iter().map(|name| node.pod(name).simple());
        let tenants: Vec<_> = tenants.collect();
        let victims = node.simple_pods(2);
        for victim in &victims {
            victim.ip(&format!("addr add {}/64 dev eth0 nodad", victim.address6()));
            victim.ip(&format!("route add default via {GATEWAY6}"));
            victim.ip(&format!("route add default via {GATEWAY4} table 7"));
            victim.ip(&format!("rule add from {} lookup 7", victim.address()));
            let words = "lladdr 02:00:00:00:00:09 dev eth0 nud permanent";
            victim.ip(&format!("neigh add 10.88.0.9 {words}"));
        }
        let pods = tenants.iter().chain(&victims);
        let indexes = pods.map(|pod| pod.ns.index_of("eth0")).collect();
        Self {
            node,
            tenants,
            victims,
            indexes,
        }
    }

    /// A shell with the network of the tenant at this place, these rights, and the neighbours' addresses in its environment.
    fn shell(&self, at: usize, rights: &[&str], script: &str) -> Command {
        let tenant = &self.tenants[at];
        let mut shell = tenant.ns.exec("setpriv");
        shell.args(rights).args(["sh", "-c", script]);
        let [web, api] = &self.victims[..] else {
            panic!("two victims");
        };
        shell
            .env("WEB", web.address())
            .env("WEB6", web.address6())
            .env("WEB_MAC", web.mac())
            .env("WEB_NETNS", web.ns.path())
            .env("API", api.address())
            .env("API_MAC", api.mac())
            .env("OWN_MAC", tenant.mac())
            .env("INDEX", self.indexes[at].to_string())
            .env("GATEWAY", GATEWAY4)
            .env("HOST", "10.88.0.2")
            .env("STATE", self.node.state_dir());
        shell
    }

    fn captures(&self) -> Vec<Capture> {
        self.victims.iter().map(Pod::capture).collect()
    }

    /// Snapshot, attack, loss, restore; `codes` are the errors that each tenant may have by what it did to itself.
    fn survives<T>(&self, when: When, codes: &[&[&str]], attack: impl Fn(&Self) -> T) {
        let (victims, host) = (self.captures(), self.node.capture());
        self.node.snapshot();
        let recorded = (when == When::BeforeSnapshot).then(|| attack(self));
        if recorded.is_some() {
            self.judge(self.node.netfix_json("snapshot"), codes);
        }
        self.node.lose_and_reload();
        let present = recorded.is_none().then(|| attack(self));
        let began = Instant::now();
        let run = self.node.netfix_json("restore");
        let took = began.elapsed();
        drop(present);
        for (pod, before) in self.victims.iter().zip(&victims) {
            let state = run.pod(pod)["state"].clone();
            assert_eq!(state, "restored", "{}", run.transcript());
            pod.assert_same_as(before);
        }
        self.assert_host(&host);
        assert!(took < LIMIT, "{took:?}\n{}", run.transcript());
        self.judge(run, codes);
    }

    /// The exit code fits the errors, and each error is one that its tenant may have.
    fn judge(&self, run: Run, codes: &[&[&str]]) {
        let problems = run.problems();
        let errors: Vec<_> = problems.iter().filter(|one| one.is_error()).collect();
        for error in &errors {
            let mut tenants = self.tenants.iter().zip(codes);
            let is_known = tenants.any(|(tenant, codes)| {
                error.pod.as_deref() == Some(tenant.name()) && codes.contains(&error.code.as_str())
            });
            assert!(is_known, "{error:?}\n{}", run.transcript());
        }
        let code = if errors.is_empty() { 0 } else { 5 };
        assert!(!run.out.contains('\u{1b}') && !run.err.contains('\u{1b}'));
        run.exits(code);
    }

    /// The host is as before, apart from the links that a tenant made in it, and what its own links need of the NIC.
    fn assert_host(&self, before: &Capture) {
        for name in planted::NAMES {
            let _ = self.node.ns.try_ip(&format!("link del {name}"));
        }
        let is_asked = |line: &String| line.contains("promiscuity") || line.contains("allmulti");
        let differences = || before.differences(&self.node.capture());
        let is_same = || differences().iter().all(is_asked);
        let same = wait_until(is_same);
        assert!(same, "the host:\n{}", differences().join("\n"));
    }
}

/// The scripts of tenants side by side, at one moment.
fn scripts(when: When, rights: &[&str], rows: &[Row]) {
    let node = Node::new();
    let names: Vec<_> = rows.iter().map(|(name, ..)| *name).collect();
    let codes: Vec<_> = rows.iter().map(|(_, codes, _)| *codes).collect();
    Scene::new(&node, &names).survives(when, &codes, |scene| {
        let rows = rows.iter().enumerate();
        let begun = rows.filter_map(|(at, (name, _, text))| {
            let file = scene.node.temp().join(format!("attack-{at}"));
            begin(when, name, &mut scene.shell(at, rights, text), file)
        });
        begun.collect::<Vec<_>>()
    });
}

/// Runs a script, or starts it if it is to go on during the restore.
fn begin(when: When, name: &str, shell: &mut Command, file: PathBuf) -> Option<Background> {
    if when == When::DuringRestore {
        let background = Background::start(shell, file);
        background.wait_for("begun");
        return Some(background);
    }
    let output = shell.output().expect("a shell");
    assert!(output.status.success(), "{name}: {shell:?}: {output:?}");
    None
}

/// One test for each row: when, the errors that the tenant may have, and what it does.
macro_rules! attacks {
    ($rights:expr; $($name:ident: $when:ident, $codes:expr, $text:expr;)*) => {
        $(#[test]
        fn $name() {
            let when = $crate::hostile_tenant::When::$when;
            $crate::hostile_tenant::scripts(when, &$rights, &[("tenant", &$codes, $text)]);
        })*
    };
}
use attacks;
