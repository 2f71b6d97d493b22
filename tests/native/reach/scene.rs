//! Carries out the lines of a case, and asks its questions: the judge, which does not use the code of netfix.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::AsRawFd as _;
use std::thread;
use std::time::Duration;

use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, bind, connect, setsockopt, socket, sockopt,
};
use nix::sys::time::TimeVal;
use serde_json::Value;

use super::case::{Case, Place, Question, Target};
use crate::common::background::within;
use crate::common::namespace::{Namespace, unique_name};
use crate::common::{Node, Pod, tool};
use crate::roundtrip::lines;

/// How long an answer may take, on a busy machine too: of links that are new, and of what may be dead.
pub(super) const AT_FIRST: Duration = Duration::from_secs(15);
pub(super) const LATER: Duration = Duration::from_secs(3);

/// Each by its place.
pub(super) struct Scene<'n> {
    namespaces: [&'n Namespace; 3],
    /// The kernel answers for them.
    listeners: [TcpListener; 3],
}

/// The kinds of links that the kernel has.
pub(super) fn kinds() -> BTreeSet<&'static str> {
    let scratch = Namespace::new(&unique_name());
    scratch.ip("link add one0 type veth peer name one1");
    let has = |words: &str| scratch.try_ip(&format!("link add {words}")).is_ok();
    let asked = [
        ("vlan", "link one0 name two type vlan id 3"),
        ("ipvlan", "link one1 name three type ipvlan mode l2"),
        ("bond", "name four type bond"),
        ("vrf", "name five type vrf table 10"),
        ("bridge-vlans", "name six type bridge vlan_filtering 1"),
    ];
    let has = asked.into_iter().filter(|(_, words)| has(words));
    has.map(|(kind, _)| kind).collect()
}

impl<'n> Scene<'n> {
    /// The scene of a case, where every question is answered.
    pub fn new(node: &'n Node, pod: &'n Pod<'_>, case: &Case) -> Result<Self, String> {
        let namespaces = [&node.ns, &pod.ns, &node.gateway];
        let listen = |ns: &Namespace| ns.enter(|| TcpListener::bind("[::]:0").expect("a listener"));
        let scene = Self {
            namespaces,
            listeners: namespaces.map(listen),
        };
        for line in &case.lines {
            let done = scene.carry_out(line);
            done.map_err(|error| format!("{line}: {error}"))?;
        }
        let silent = scene.silent(&case.questions, AT_FIRST);
        if silent.is_empty() {
            return Ok(scene);
        }
        let shown =
            namespaces.map(|ns| ["-6 neigh", "-6 route", "-6 addr"].map(|words| ns.ip(words)));
        Err(format!("silent: {silent:#?}\n{shown:#?}"))
    }

    pub fn change(&self, case: &Case) {
        for line in &case.change {
            let _ = self.carry_out(line);
        }
        for ns in self.namespaces {
            // What was learnt is not asked for again.
            let _ = ns.try_ip("neigh flush all");
        }
    }

    fn ns(&self, place: Place) -> &Namespace {
        self.namespaces[place as usize]
    }

    fn carry_out(&self, line: &str) -> Result<(), String> {
        let line = line
            .replace("{pod}", self.ns(Place::Pod).name())
            .replace("{gateway}", self.ns(Place::Gateway).name());
        let (place, words) = line.split_once(' ').expect("a place");
        let ns = self.ns(Place::named(place));
        let (program, rest) = words.split_once(' ').expect("a program");
        match program {
            "bridge" | "iptables" | "ip6tables" => {
                tool::try_run(ns.exec(program).args(rest.split(' '))).map(drop)
            }
            "sysctl" | "address" => {
                let accepted = lines::run(ns, &[words.to_owned()]);
                (accepted == 1).then_some(()).ok_or_else(String::new)
            }
            _ => ns.try_ip(words).map(drop),
        }
    }

    /// The questions that are not answered, but for those from an address that is gone.
    pub fn silent(&self, questions: &[Question], patience: Duration) -> Vec<String> {
        let ask = |question: &Question, is_tcp: bool| {
            let own = self.addresses(question.asker);
            let is_asked = question.from.is_none_or(|from| own.contains(&from));
            let is_silent = is_asked && !within(patience, || self.is_answered(question, is_tcp));
            is_silent.then(|| format!("{} {question:?}", if is_tcp { "TCP" } else { "ping" }))
        };
        thread::scope(|scope| {
            let both = questions.iter().flat_map(|one| [(one, false), (one, true)]);
            let asked = both.map(|(one, is_tcp)| scope.spawn(move || ask(one, is_tcp)));
            let asked: Vec<_> = asked.collect();
            let answers = asked.into_iter().map(|one| one.join().expect("an answer"));
            answers.flatten().collect()
        })
    }

    fn is_answered(&self, question: &Question, is_tcp: bool) -> bool {
        let to = match question.to {
            Target::Address(ip) => vec![(ip, Place::Gateway)],
            Target::Of(place, net) => {
                let own = self.addresses(place).into_iter();
                own.filter(|ip| net.contains(ip))
                    .map(|ip| (ip, place))
                    .collect()
            }
        };
        to.into_iter().any(|(ip, place)| match is_tcp {
            true if ip.is_loopback() => self.connects(question, ip, question.asker),
            true => self.connects(question, ip, place),
            false => self.pings(question, ip),
        })
    }

    /// The addresses that a place has, as ip(8) shows them.
    fn addresses(&self, place: Place) -> Vec<IpAddr> {
        let text = self.ns(place).ip("-j addr");
        let links: Vec<Value> = serde_json::from_str(&text).expect("JSON of ip");
        let all = links.iter().filter_map(|link| link["addr_info"].as_array());
        let all = all.flatten().filter_map(|one| one["local"].as_str());
        all.filter_map(|one| one.parse().ok()).collect()
    }

    fn pings(&self, question: &Question, to: IpAddr) -> bool {
        let mut words = format!("-n -q -c 1 -W 1 {to}");
        if let Some(from) = question.from {
            words = format!("-I {from} {words}");
        }
        if let Some(link) = &question.bound {
            words = format!("-I {link} {words}");
        }
        if let Some(mark) = question.mark {
            words = format!("-m {mark} {words}");
        }
        let mut ping = tool::command("ping", words.split(' '));
        self.ns(question.asker)
            .enter(|| tool::try_run(&mut ping).is_ok())
    }

    fn connects(&self, question: &Question, to: IpAddr, place: Place) -> bool {
        let listener = self.listeners[place as usize].local_addr();
        let port = listener.expect("its address").port();
        let family = match to {
            IpAddr::V4(_) => AddressFamily::Inet,
            IpAddr::V6(_) => AddressFamily::Inet6,
        };
        self.ns(question.asker).enter(|| {
            let own =
                socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).expect("a socket");
            let second = TimeVal::new(1, 0);
            setsockopt(&own, sockopt::SendTimeout, &second).expect("a time limit");
            if let Some(mark) = question.mark {
                setsockopt(&own, sockopt::Mark, &mark).expect("a mark");
            }
            let vrf = question.bound.as_ref().map(Into::into);
            let is_bound =
                vrf.is_none_or(|vrf| setsockopt(&own, sockopt::BindToDevice, &vrf).is_ok());
            let from = question
                .from
                .map(|from| SockaddrStorage::from(SocketAddr::new(from, 0)));
            let is_bound = is_bound && from.is_none_or(|from| bind(own.as_raw_fd(), &from).is_ok());
            let to = SockaddrStorage::from(SocketAddr::new(to, port));
            is_bound && connect(own.as_raw_fd(), &to).is_ok()
        })
    }
}
