//! What was named before the loss, and which differences that explains.

use std::net::Ipv6Addr;

use crate::common::{ReportedProblem, Run};

#[derive(Clone)]
pub(super) struct Named {
    /// What a restore could not bring back, or would not, as the snapshot said.
    lost: Vec<ReportedProblem>,
    /// What is there although the checkpoint has it not: a restore deletes nothing.
    left: Vec<ReportedProblem>,
}

impl Named {
    pub fn by(snapshot: &Run) -> Self {
        let codes = ["unsupported", "address-conflict"];
        let mut lost = snapshot.problems();
        lost.retain(|problem| codes.contains(&problem.code.as_str()));
        Self {
            lost,
            left: Vec::new(),
        }
    }

    pub fn left_over(&mut self, diff: &Run) {
        self.left = diff.coded("surplus");
        self.left.extend(diff.coded("ifindex-differs"));
        self.left.extend(diff.coded("drift"));
    }

    pub fn is_empty(&self) -> bool {
        self.lost.is_empty()
    }

    /// The differences of objects that were not named.
    pub fn others(&self, lines: Vec<String>) -> Vec<String> {
        let is_left = |line: &str| self.left.iter().any(|problem| is_left(problem, line));
        // Packets to a group may take the source that is left, in the place of the one before.
        let key = |line: &str| line.split(": ").next().unwrap_or_default()[2..].to_owned();
        let taken = lines
            .iter()
            .filter(|line| line.starts_with("+ ways of ") && is_left(line));
        let taken: Vec<String> = taken.map(|line| key(line)).collect();
        let others = lines.into_iter().filter(|line| {
            let is_lost = self.lost.iter().any(|problem| explains(problem, line));
            let is_taken = line.starts_with("- ways of ") && taken.contains(&key(line));
            !is_lost && !is_taken && !is_left(line)
        });
        others.collect()
    }

    /// What netfix complains of, but for what was named, and for a pod without a checkpoint.
    pub fn complaints(&self, runs: &[&Run], young: Option<&str>) -> Vec<String> {
        let is_reason = young.is_some() || !self.lost.is_empty() || self.has_other_index();
        let mut complaints = Vec::new();
        for run in runs {
            let problems = run.problems().into_iter().filter(|problem| {
                let is_young = young.is_some() && problem.pod.as_deref() == young;
                let is_named = self.lost.iter().any(|lost| {
                    // It was the only one of its family.
                    let is_of_family = lost.code == "address-conflict"
                        && problem.pod == lost.pod
                        && problem.message.starts_with("has lost all its IPv");
                    problem.code == "unsupported"
                        || is_of_family
                        || problem.object.contains(&lost.object)
                        || problem.object.starts_with("+ neighbour ")
                            && explains(lost, &problem.object)
                });
                // A filter that sends packets to a link is bytes, with the index of the former link in them.
                let words = [
                    "has another ifindex now",
                    "what is no link of the namespace",
                ];
                let mut words = words.iter().filter(|_| self.has_other_index());
                let is_moved = words.any(|words| problem.message.contains(words));
                problem.is_error() && !is_named && !is_young && !is_moved
            });
            complaints.extend(problems.map(|it| format!("{}: {it:?}", run.line)));
            // By chance a pod has no way out, before the loss as well.
            let is_cut_off = run.problems().iter().any(|one| one.code == "cut-off");
            if run.code != Some(0) && !is_reason && !is_cut_off {
                complaints.push(format!("{}: exit {:?}", run.line, run.code));
            }
        }
        complaints
    }

    fn has_other_index(&self) -> bool {
        let mut codes = self.left.iter().map(|problem| problem.code.as_str());
        codes.any(|code| code == "ifindex-differs")
    }
}

/// Whether the difference is one of the object that the snapshot named.
fn explains(problem: &ReportedProblem, line: &str) -> bool {
    if problem.code == "address-conflict" {
        let address = problem.object.split(' ').next().unwrap_or_default();
        // Without it packets may go another way, and the lifetimes of others are those of their route.
        let is_route = line.contains("outes of IPv6") && is_of_network(address, line);
        return is_of_address(address, line) || is_route || line.contains("ways of ");
    }
    let mut words = problem.object.split(' ');
    if words.next() == Some("address") {
        let address = words.next().unwrap_or_default();
        return is_of_address(address, line);
    }
    let dev = problem.object.rsplit(' ').next().unwrap_or_default();
    let words: Vec<&str> = problem.message.split([' ', ',', ':']).collect();
    let behind = |word: &str| {
        let at = words.iter().position(|it| *it == word)?;
        words.get(at + 1).copied()
    };
    match words[..] {
        ["is", "held", "down", ..] => {
            let is_its = comes_with_carrier(line) || is_passing_neighbour(line);
            // With its route, what went by another link can go by this one.
            line.contains(dev) && is_its || line.contains("ways of IPv6.ff02::")
        }
        ["has", "filter", ..] => {
            let pref = behind("pref").unwrap_or_default();
            line.contains(&format!("traffic.filters of {dev} "))
                && line.contains(&format!("\"pref\":{pref},"))
        }
        _ => false,
    }
}

/// Whether the carrier of a link decides it: what is link-local, whether its addresses are probed, and whether they are usable, with
/// the entries that the kernel makes for them and the ways of packets.
fn comes_with_carrier(line: &str) -> bool {
    let words = [
        "fe80",
        "ff00",
        "ff02::",
        "33:33:ff",
        "tentative",
        "LOWER_UP",
        "NO-CARRIER",
        "operstate",
        "linkdown",
        "anycast",
        " 80200001 ",
        "ways of IPv6",
        // By it the kernel makes a link-local address.
        "/stable_secret: ",
    ];
    let is_local = line.contains("routes of IPv6.") && line.contains(" of local");
    is_local || words.iter().any(|word| line.contains(word))
}

/// A neighbour that is not permanent, as the judge or netfix says it: the kernel forgets it where its link goes down.
fn is_passing_neighbour(line: &str) -> bool {
    line.contains("neighbour") && !line.to_lowercase().contains("permanent")
}

/// The address itself, the routes that the kernel makes for it, and the groups that it joins.
fn is_of_address(prefix: &str, line: &str) -> bool {
    let address = prefix.split('/').next().unwrap_or_default();
    let mut names = vec![
        format!("\"{address}\""),
        format!("\"{address}/"),
        format!("\"{prefix}\""),
        format!("IPv6.{address} of local"),
    ];
    if let Ok(ip) = address.parse::<Ipv6Addr>() {
        let [.., a, b, c, d] = ip.octets();
        let solicited = Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, b, c, d]);
        names.push(format!("{:032x} 80 ", u128::from(ip)));
        names.push(format!("\"{solicited}\""));
        names.push(format!("\"33:33:ff:{b:02x}:{c:02x}:{d:02x}\""));
        names.push(format!("\"33:33:{a:02x}:{b:02x}:{c:02x}:{d:02x}\""));
    }
    names.iter().any(|name| line.contains(name))
}

/// Its network of 64 bits, as ip(8) and `/proc/net/ipv6_route` have it.
fn is_of_network(address: &str, line: &str) -> bool {
    const HOST: u128 = u64::MAX as u128;
    address.parse::<Ipv6Addr>().is_ok_and(|ip| {
        let network = u128::from(ip) & !HOST;
        let prefix = format!("IPv6.{}/64 ", Ipv6Addr::from(network));
        line.contains(&prefix) || line.contains(&format!("{network:032x} 40 "))
    })
}

fn is_left(problem: &ReportedProblem, line: &str) -> bool {
    match problem.code.as_str() {
        "ifindex-differs" => {
            // A filter that stayed sends packets to the former index.
            let is_filter = line.contains("traffic.filters of ") && line.contains("\"to_dev\":");
            return line.contains(".ifindex:") || is_filter;
        }
        // It is up: with that come its routes, packets that went another way, and the carrier of a bridge of which it is a port.
        "drift" => {
            let parts = [
                &problem.object,
                "ways of ",
                "links.br0.flags: ",
                "links.br0.operstate: ",
            ];
            return parts.iter().any(|part| line.contains(*part));
        }
        "surplus" if problem.object.starts_with("address ") => {
            let address = problem.object.split(' ').nth(1).unwrap_or_default();
            let dev = problem.object.rsplit(' ').next().unwrap_or_default();
            // The kernel makes its connected route with it.
            let is_route =
                line.contains(dev) && is_of_network(address.trim_end_matches("/64"), line);
            if line.starts_with('+') && (is_of_address(address, line) || is_route) {
                return true;
            }
        }
        _ => {}
    }
    let words = problem.object.split_whitespace();
    let words = words.filter(|word| word.contains(['.', ':']));
    let is_it = line.starts_with('+') && words.flat_map(names_of).any(|name| line.contains(&name));
    // A link that was down and up has a link-local address by a secret that the kernel makes for it.
    is_it || problem.object.starts_with("address fe80::") && line.contains("/stable_secret: ")
}

/// A prefix as ip(8) and `/proc/net/ipv6_route` have it.
pub(super) fn names_of(prefix: &str) -> Vec<String> {
    let address = prefix.split('/').next().unwrap_or_default();
    let mut names = vec![address.to_owned()];
    if prefix.ends_with("/0") {
        names.push("default".to_owned());
    }
    let ip = address.parse::<Ipv6Addr>();
    names.extend(ip.map(|ip| format!("{:032x}", u128::from(ip))));
    names
}
