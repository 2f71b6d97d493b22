//! The documents of a realistic node: pods of several namespaces on VLANs over an i40e NIC.

use netfix::model::next::{KubeletNow, LostPod, LostPods, NextStep, WindowNow};
use netfix::model::problem::PlanCause;
use netfix::model::window::GuardDeed;
use netfix::model::{
    GatewayAnswer, Hardware, IfName, Interface, Loss, LossCause, Nic, PodId, PodInfo, Problem,
    State, Window,
};
use netfix::report::{
    CheckStatus, CheckView, ConfigView, Document, Extra, FaultyLink, GivenUpLink, GuardNow,
    GuardState, HoldView, IncompleteNow, KeptView, LinkFault, LostView, NodeView, PodNetworks,
    PodView, ReportView, RuntimeView, SettingView, ShowView, Standing, StatusView, WindowView,
};
use serde_json::{from_value, json};

use crate::machine::fixture;

/// The time of the screens.
pub const NOW: &str = "2026-11-21T03:20:00Z";
const SNAPSHOT: &str = "2026-11-21T02:15:00Z";

/// A node and its history.
#[derive(Clone, Copy)]
pub struct Scene {
    pub pods: usize,
    /// Whether the NIC's driver was reloaded.
    pub lost: bool,
}

impl Scene {
    /// The document of a command.
    pub fn document(self, command: &'static str) -> Document {
        match command {
            "snapshot" => self.snapshot(),
            "list" => self.list(),
            "show" => self.show(),
            "plan" => self.plan("plan"),
            "diff" => self.plan("diff"),
            "restore" => self.restore(),
            "verify" => self.verify(),
            "check" => self.check(),
            "status" => self.status(),
            "upgrade" => self.upgrade(),
            _ => unreachable!("no screen of {command}"),
        }
    }

    fn pods(self, good: State, lost: State) -> Vec<PodView> {
        let state = if self.lost { lost } else { good };
        (0..self.pods).map(|at| pod(at, state)).collect()
    }

    /// One problem for each pod.
    fn each(
        document: &Document,
        severity: &str,
        code: &str,
        object: &str,
        message: &str,
    ) -> Vec<Problem> {
        let ids = document.pods.iter().map(|pod| Some(pod.info.id.clone()));
        ids.map(|id| problem(severity, code, id, object, message))
            .collect()
    }

    fn snapshot(self) -> Document {
        let pods = self.pods(State::Saved, State::Degraded);
        let mut document = answer("snapshot", if self.lost { 5 } else { 0 }, pods);
        let generation = (!self.lost).then_some(7);
        document.extra = Some(Extra::Kept(KeptView {
            generation,
            ..KeptView::default()
        }));
        if self.lost {
            let message = "is missing; the good checkpoint is kept. Run `netfix restore`";
            document.problems = Self::each(&document, "error", "degraded", "eth0", message);
        }
        document
    }

    fn list(self) -> Document {
        let mut document = answer("list", 0, self.pods(State::Stored, State::Stored));
        if self.lost {
            document.exit = 5;
            let view = &mut document.pods[1];
            view.state = State::Failed;
            (view.interfaces, view.seen, view.netns) = (Vec::new(), None, None);
            let id = Some(view.info.id.clone());
            let file = "/var/lib/netfix/checkpoints/c0ffee000001";
            document.problems = vec![problem(
                "error",
                "checkpoint-corrupt",
                id,
                file,
                "the checksum does not match",
            )];
        }
        document
    }

    fn show(self) -> Document {
        let mut view = pod(
            0,
            if self.lost {
                State::Degraded
            } else {
                State::InSync
            },
        );
        view.checkpoint = Some(Box::new(from_value(checkpoint()).unwrap()));
        let mut document = answer("show", 0, vec![view]);
        document.extra = Some(Extra::Show(ShowView {
            alive: Some(true),
            lost: self.lost.then(|| "macvlan eth0".to_owned()),
            lost_what: self.lost.then_some(LossCause::LinkGone),
            written_age: Some(187_300),
            settings: vec!["net/ipv4/conf/eth0/arp_notify = 1 (a new link has 0)".to_owned()],
        }));
        document
    }

    fn plan(self, command: &'static str) -> Document {
        let mut document = answer(command, 0, self.pods(State::InSync, State::Degraded));
        if self.lost {
            document.exit = if command == "diff" { 3 } else { 0 };
            document.node.steps = host_steps();
            for (at, view) in document.pods.iter_mut().enumerate() {
                view.steps = pod_steps(at);
            }
        }
        document
    }

    fn restore(self) -> Document {
        let mut document = answer("restore", 0, self.pods(State::InSync, State::Restored));
        document.node.state = Some(if self.lost {
            State::Restored
        } else {
            State::InSync
        });
        let eth0 = || vec!["eth0".parse().unwrap()];
        for (at, view) in document.pods.iter_mut().enumerate() {
            view.before = Some(if self.lost { Vec::new() } else { eth0() });
            view.after = Some(eth0());
            view.steps = if self.lost { pod_steps(at) } else { Vec::new() };
        }
        if self.lost {
            document.node.steps = host_steps();
        }
        document
    }

    /// A restore while the NIC is missing.
    pub fn restore_without_nic(self) -> Document {
        let mut document = answer("restore", 1, self.pods(State::Failed, State::Failed));
        document.node.state = Some(State::Failed);
        for view in &mut document.pods {
            (view.before, view.after) = (Some(Vec::new()), Some(Vec::new()));
        }
        let [eth0, vlan]: [IfName; 2] = ["eth0", "eth0.3"].map(|name| name.parse().unwrap());
        let hardware = Hardware {
            driver: Some("i40e".to_owned()),
            bus: Some("0000:3b:00.0".to_owned()),
            ..Hardware::default()
        };
        let on_vlan = || PlanCause::HostLinkMissing {
            parent: vlan.clone(),
        };
        let on_eth0 = PlanCause::OwnLinkMissing {
            parent: eth0.clone(),
        };
        let pods = document.pods.iter();
        let of_pods = pods.map(|pod| on_vlan().error(&eth0).of(&pod.info.id));
        let missing = PlanCause::DeviceMissing {
            hardware: Some(hardware),
        };
        document.problems = of_pods
            .chain([on_eth0.error(&vlan), missing.error(&eth0)])
            .collect();
        document
    }

    fn verify(self) -> Document {
        let mut document = answer("verify", 0, self.pods(State::Reachable, State::Reachable));
        let silent = |at: usize| self.lost && at.is_multiple_of(5);
        document.node.state = Some(State::Reachable);
        document.node.gateways = vec![gateway("10.3.0.1", 0, false)];
        for (at, view) in document.pods.iter_mut().enumerate() {
            view.gateways = ["10.3.0.1", "fd00:3::1"]
                .map(|address| gateway(address, at, silent(at)))
                .into();
            if silent(at) {
                view.state = State::Unreachable;
                for gateway in &view.gateways {
                    let object = format!("{} dev eth0", gateway.address);
                    let id = Some(view.info.id.clone());
                    let message = "did not answer within 5 s";
                    document.problems.push(problem(
                        "error",
                        "gateway-unreachable",
                        id,
                        &object,
                        message,
                    ));
                    document.exit = 5;
                }
            }
        }
        document
    }

    fn check(self) -> Document {
        let mut document = answer("check", 0, self.pods(State::InSync, State::Degraded));
        let state = if self.lost {
            State::Degraded
        } else {
            State::InSync
        };
        let mut view = CheckView {
            at: NOW.to_owned(),
            pods: [(state, Some(self.pods))].into(),
            lost: [("link-gone", Some(if self.lost { self.pods } else { 0 }))].into(),
            left_out: Some(0),
            steps: Some(0),
            oldest_age: Some(3900),
            last_success: Some(SNAPSHOT.to_owned()),
            ..CheckView::default()
        };
        if self.lost {
            (document.exit, view.status) = (2, CheckStatus::Critical);
            view.steps = Some(15 * self.pods);
            document.problems = vec![problem(
                "warning",
                "no-carrier",
                None,
                "eth0",
                "is up but has no carrier",
            )];
            let message = "is missing. Run `netfix restore`";
            let found = Self::each(&document, "error", "degraded", "eth0", message);
            document.problems.extend(found);
        }
        for pod in &mut document.pods {
            pod.lost = Some(LostView(self.lost.then_some("link-gone")));
        }
        document.extra = Some(Extra::Check(view));
        document
    }

    fn status(self) -> Document {
        let mut document = answer("status", 0, Vec::new());
        let runtime = RuntimeView {
            endpoint: "/run/containerd/containerd.sock".to_owned(),
            version: Some("containerd 1.7.24".to_owned()),
            pods: self.pods,
        };
        document.extra = Some(Extra::Status(Box::new(StatusView {
            config: Some(ConfigView {
                file: "/etc/netfix/config.toml".to_owned(),
                settings: vec![SettingView {
                    command: Some("upgrade".to_owned()),
                    option: "deadline".to_owned(),
                    values: vec!["20m".to_owned()],
                }],
                error: None,
            }),
            nics: self.nics(),
            private_namespaces: 2,
            state_dir: "/var/lib/netfix".to_owned(),
            checkpoints: self.pods,
            damaged: usize::from(self.lost),
            generations: Some(5),
            last_success: Some(SNAPSHOT.to_owned()),
            last_success_age: Some(3900),
            running: self.pods,
            covered: self.pods - usize::from(self.lost),
            network: Some(self.network()),
            runtimes: vec![runtime],
            lock: self
                .lost
                .then(|| "pid 256 (netfix restore, since 03:19:01Z)".to_owned()),
            window: self.lost.then(window),
            guard: Some(self.guard()),
            last: self
                .lost
                .then(|| WindowView::new(ReportView::new(record(40), Standing::Closed))),
            unread: Vec::new(),
        })));
        document
    }

    fn guard(self) -> GuardNow {
        let incomplete = IncompleteNow {
            title: "shop/web-2".to_owned(),
            why: "address-conflict: 10.3.0.12 on eth0: another machine has it".to_owned(),
            attempts: 3,
        };
        let deed = GuardDeed {
            at: "2026-11-21T03:15:00.000Z".to_owned(),
            text: "left alone: shop/web-1 (eth0 was deleted; the host's links under it stayed)"
                .to_owned(),
            left: true,
        };
        GuardNow {
            state: if self.lost {
                GuardState::GivenUp
            } else {
                GuardState::Armed
            },
            hold: None,
            given_up: self
                .lost
                .then(|| GivenUpLink {
                    name: "eth0".parse().unwrap(),
                    attempts: 10,
                })
                .into_iter()
                .collect(),
            incomplete: self.lost.then_some(incomplete).into_iter().collect(),
            restores: 0,
            reported: 0,
            last: None,
            deeds: self.lost.then_some(deed).into_iter().collect(),
        }
    }

    fn nics(self) -> Vec<Nic> {
        let nic = |name: &str| Nic {
            name: name.parse().unwrap(),
            driver: Some("i40e".to_owned()),
            version: Some("2.28.7".to_owned()),
            firmware: None,
            bus: None,
            permanent_mac: None,
            function: None,
            carrier: true,
        };
        let all = ["eth0", "eth1"].map(nic).into_iter();
        all.skip(usize::from(self.lost)).collect()
    }

    fn lost_pods(self) -> LostPods {
        let pods = self.pods(State::Degraded, State::Degraded).into_iter();
        let lost = |pod: PodView| LostPod {
            info: pod.info,
            loss: Some(Loss {
                link: "macvlan eth0".to_owned(),
                what: LossCause::LinkGone,
            }),
        };
        let all: Vec<_> = pods.skip(1).map(lost).collect();
        LostPods {
            pods: if self.lost { all } else { Vec::new() },
            ..LostPods::default()
        }
    }

    fn network(self) -> PodNetworks {
        let missing = FaultyLink {
            name: "eth0".parse().unwrap(),
            state: LinkFault::Missing,
            driver: Some("i40e".to_owned()),
        };
        PodNetworks {
            pods: self.pods,
            complete: if self.lost { 0 } else { self.pods },
            lost: if self.lost { self.pods - 1 } else { 0 },
            cut_off: 0,
            unknown: usize::from(self.lost),
            links: self.lost.then_some(missing).into_iter().collect(),
            host: None,
            which: self.lost_pods(),
        }
    }

    fn upgrade(self) -> Document {
        if !self.lost {
            let mut document = answer("upgrade", 0, self.pods(State::Unknown, State::Unknown));
            document.node.steps = course(self.pods);
            let pods = self.pods;
            let verdict =
                format!("The window would begin: {pods} pods on eth0, eth1 (i40e 2.8.20), node7");
            document.verdict = Some(verdict);
            document.extra = Some(Extra::DryRun(true));
            return document;
        }
        let mut document = answer("upgrade", 0, self.pods(State::Restored, State::Restored));
        let record = record(self.pods);
        document.exit = record.exit.unwrap_or_default();
        document.problems.clone_from(&record.problems);
        document.extra = Some(Extra::Report(Box::new(ReportView::new(
            record,
            Standing::Closed,
        ))));
        document
    }
}

#[allow(clippy::needless_pass_by_value, reason = "shorter calls")]
pub fn problem(
    severity: &str,
    code: &str,
    pod: Option<PodId>,
    object: &str,
    message: &str,
) -> Problem {
    let fields = json!({ "code": code, "severity": severity, "pod": pod, "object": object, "message": message });
    from_value(fields).unwrap()
}

fn pod(at: usize, state: State) -> PodView {
    let id = PodId::from_text(&format!("c0ffee{at:06x}"));
    let (namespace, name) = match at % 10 {
        0..4 => ("shop", format!("web-{}", at / 10 * 4 + at % 10)),
        4..6 => ("pay", format!("ledger-{}", at / 10 * 2 + at % 10 - 4)),
        6 | 7 => (
            "data",
            format!("ingest-6eb7f2ea8-{:05x}", at * 7919 % 0xf_ffff),
        ),
        8 => (
            "kube-system",
            format!("coredns-8a32e516d-{:05x}", at * 6007 % 0xf_ffff),
        ),
        _ => (
            "monitoring",
            format!("node-exporter-2303824a4-{:05x}", at * 4001 % 0xf_ffff),
        ),
    };
    PodView {
        info: PodInfo {
            namespace: Some(namespace.to_owned()),
            name: Some(name.into()),
            uid: Some(format!("5c1c2e5e-0000-4000-8000-{at:012x}")),
            sandbox: Some(format!("{id}{:052x}", at * 31)),
            attempt: Some(0),
            source: "cri".to_owned(),
            id,
        },
        netns: Some(format!("/run/netns/cni-5c1c2e5e-{at:04x}").into()),
        state,
        lost: None,
        created: Some("2026-11-18T23:18:20Z".to_owned()),
        seen: Some(SNAPSHOT.to_owned()),
        interfaces: vec![interface(at)],
        before: None,
        after: None,
        steps: Vec::new(),
        gateways: Vec::new(),
        targets: Vec::new(),
        checkpoint: None,
    }
}

fn interface(at: usize) -> Interface {
    let (high, low) = ((at + 13) / 256, (at + 13) % 256);
    from_value(json!({
        "name": "eth0", "kind": "macvlan", "parent": "eth0.3", "mtu": 1500,
        "mac": format!("02:42:0a:03:{high:02x}:{low:02x}"),
        "addresses": [format!("10.3.{high}.{low}/16"), format!("fd00:3::{:x}/64", at + 13)],
        "gateways": ["10.3.0.1", "fd00:3::1"],
    }))
    .unwrap()
}

fn gateway(address: &str, at: usize, silent: bool) -> GatewayAnswer {
    GatewayAnswer {
        address: address.parse().unwrap(),
        dev: "eth0".parse().unwrap(),
        reachable: Some(!silent),
        never_answered: false,
        rtt_us: (!silent).then_some(280 + at as u64 % 61 * 9),
        lladdr: (!silent).then(|| "3c:fd:fe:aa:00:01".parse().unwrap()),
    }
}

fn host_steps() -> Vec<String> {
    [
        "~ link eth0 up",
        "+ vlan eth0.3 on eth0 id 3 protocol 802.1Q address 3c:fd:fe:aa:00:07 mtu 1500",
        "~ link eth0.3 up",
        "+ address 10.3.255.7/16 dev eth0.3",
    ]
    .map(str::to_owned)
    .into()
}

fn pod_steps(at: usize) -> Vec<String> {
    let interface = interface(at);
    let mac = interface.mac.unwrap();
    vec![
        format!(
            "+ macvlan eth0 on eth0.3 mode bridge address {mac} mtu 1500 index {}",
            at + 7
        ),
        "~ sysctl net/ipv4/conf/eth0/arp_notify = 1 (now 0)".to_owned(),
        "~ link eth0 up".to_owned(),
        format!("+ address {} dev eth0", interface.addresses[0]),
        format!("+ address {} dev eth0", interface.addresses[1]),
        "+ route default via 10.3.0.1 dev eth0".to_owned(),
        "+ route default via fd00:3::1 dev eth0".to_owned(),
    ]
}

fn window() -> HoldView {
    from_window(&fixture("killed"))
}

fn from_window(window: &Window) -> HoldView {
    let hold = window.pause.as_ref().unwrap();
    HoldView {
        id: window.id.clone(),
        command: window.command.clone(),
        started: window.started.clone(),
        kept: false,
        ended_by_reboot: false,
        pid: 48211,
        phase: window
            .phases
            .iter()
            .find(|phase| phase.to.is_none())
            .map(|phase| phase.name),
        unit: Some(hold.unit.clone()),
        unit_state: Some("inactive".to_owned()),
        held: Some(true),
        paused_for: Some(125),
        deadline_in: Some(475),
        run: window.run.clone(),
        rollback: window.rollback.clone(),
        exit: None,
        log: window.log.clone(),
        next: Some(WindowNow {
            running: None,
            unit: Some(hold.unit.clone()),
            kubelet: KubeletNow::Masked,
            lost: Some(LostPods {
                pods: window.pods[..2]
                    .iter()
                    .map(|pod| LostPod {
                        info: pod.info.clone(),
                        loss: None,
                    })
                    .collect(),
                ..LostPods::default()
            }),
            next: NextStep::Restore,
        }),
    }
}

/// The record of a window in which one pod of many was rebuilt and one has no network.
fn record(pods: usize) -> Window {
    let mut window = fixture("well");
    let model = window.pods[0].clone();
    window.pods = (0..pods)
        .map(|at| {
            let mut own = model.clone();
            own.info = pod(at, State::Restored).info;
            own.before = vec![interface(at)];
            own.after = Some(own.before.clone());
            own.answered = own.answered.map(|ms| ms + at as u64 % 7 * 31);
            own
        })
        .collect();
    if pods > 3 {
        window.exit = Some(5);
        window.pods[4].rebuilt = Some(true);
        let bad = &mut window.pods[9];
        (bad.state, bad.after, bad.answered) = (Some(State::Failed), Some(Vec::new()), None);
        let ids = [4, 9].map(|at| Some(window.pods[at].info.id.clone()));
        let [rebuilt, failed] = ids;
        window.problems = vec![
            problem(
                "error",
                "pod-rebuilt",
                rebuilt,
                "ledger-0",
                "has another sandbox: attempt 1 follows attempt 0",
            ),
            problem(
                "error",
                "address-conflict",
                failed,
                "10.3.0.22 dev eth0",
                "is in use by 02:42:0a:03:00:3b, which answered",
            ),
        ];
    }
    window
}

fn course(pods: usize) -> Vec<String> {
    [
        "1. check     could every pod be restored? If not, stop before any change",
        "2. snapshot  save the host and every pod, on disk and in memory",
        "3. pause     stop and mask kubelet.service; systemd starts it again after 10 min",
        "4. command   /usr/local/sbin/upgrade-i40e --version 2.28.7",
        &format!("5. restore   wait up to 60 s for the NIC, then restore up to {pods} pods"),
        "6. verify    probe every gateway, for up to 5 s",
        "7. resume    unmask and start kubelet.service",
        "8. proof     watch for 30 s whether a pod is rebuilt",
    ]
    .map(str::to_owned)
    .into()
}

/// A complete checkpoint of one pod.
fn checkpoint() -> serde_json::Value {
    let case = include_str!("../../testdata/plan/pod-all-lost-whole-plan/case.json");
    let case: serde_json::Value = serde_json::from_str(case).unwrap();
    let info = pod(0, State::InSync).info;
    json!({
        "netns": "/run/netns/cni-5c1c2e5e-0000",
        "ifname": "eth0",
        "result": {},
        "netfix": {
            "schema": 1,
            "created": "2026-11-18T23:18:20Z",
            "node": { "machine_id": "a1", "boot_id": "3f2c9a4e-7d1b-4a55-9c0e-b1f0c2d3e4f5", "hostname": "node7.rack2" },
            "identity": { "cookie": 4242, "device": 4, "inode": 4_026_532_701_u64, "holder": null },
            "pod": info,
            "stack": [
                { "name": "eth0.3", "kind": "vlan", "mac": "3c:fd:fe:aa:00:07", "mtu": 1500, "over": ["eth0"] },
                { "name": "eth0", "kind": "device", "mac": "3c:fd:fe:aa:00:07", "mtu": 1500,
                  "hardware": { "permanent_mac": "3c:fd:fe:aa:00:07", "bus": "0000:3b:00.0", "driver": "i40e" } }
            ],
            "state": case["wanted"],
        }
    })
}

fn answer(command: &'static str, exit: u8, pods: Vec<PodView>) -> Document {
    Document {
        command: command.parse().unwrap(),
        exit,
        node: NodeView {
            hostname: Some("node7.rack2".to_owned()),
            created: Some(SNAPSHOT.to_owned()),
            ..NodeView::default()
        },
        pods,
        ..Document::default()
    }
}
