//! A random composition of a host and a pod (`pieces.txt`), the questions that are answered there, and one thing that changes
//! (`changes.txt`).

use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::common::numbers::Numbers;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Host,
    Pod,
    Gateway,
}

impl Place {
    pub fn named(name: &str) -> Self {
        match name {
            "host" => Self::Host,
            "pod" => Self::Pod,
            "gateway" => Self::Gateway,
            _ => panic!("{name} is no place"),
        }
    }
}

#[derive(Debug)]
pub(super) enum Target {
    Address(IpAddr),
    /// Any address that this place has now in this network.
    Of(Place, IpNet),
}

/// A question, asked by ping and by TCP.
#[derive(Debug)]
pub(super) struct Question {
    pub asker: Place,
    pub to: Target,
    pub from: Option<IpAddr>,
    pub mark: Option<u32>,
    /// The VRF that the asker is bound to.
    pub bound: Option<String>,
}

#[derive(Debug)]
pub(super) struct Case {
    pub lines: Vec<String>,
    pub questions: Vec<Question>,
    /// The kernel may refuse some of it.
    pub change: Vec<String>,
    /// Whether a snapshot is taken between the change and the check.
    pub is_recorded: bool,
}

/// A part of a text: its category, its tags, and its lines.
struct Piece {
    category: &'static str,
    words: Vec<&'static str>,
    lines: Vec<&'static str>,
}

impl Piece {
    fn all(text: &'static str) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for line in text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
        {
            if let Some((category, words)) =
                line.strip_prefix('[').and_then(|line| line.split_once(']'))
            {
                let words = words.split_whitespace().collect();
                all.push(Self {
                    category,
                    words,
                    lines: Vec::new(),
                });
            } else {
                all.last_mut().expect("a category").lines.push(line);
            }
        }
        all
    }

    fn tagged(&self, sign: char) -> impl Iterator<Item = &'static str> {
        self.words
            .iter()
            .filter_map(move |word| word.strip_prefix(sign))
    }

    fn fits(&self, tags: &BTreeSet<&str>) -> bool {
        self.tagged('+').all(|tag| tags.contains(tag))
            && !self.tagged('-').any(|tag| tags.contains(tag))
    }

    fn weight(&self) -> usize {
        let weight = self.tagged('x').next();
        weight.map_or(1, |weight| weight.parse().expect("a number"))
    }
}

fn one_of<T: Copy>(n: &mut Numbers, all: &[T]) -> T {
    all[usize::try_from(n.below(all.len() as u64)).expect("a small number")]
}

impl Case {
    /// `tags` are the kinds of links that the kernel has.
    pub fn new(seed: u64, mut tags: BTreeSet<&'static str>) -> Self {
        let mut numbers = Numbers::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let n = &mut numbers;
        for _ in 0..8 {
            n.below(2);
        }
        let mut values = BTreeMap::from([("base", "eth0"), ("up", "up0"), ("vrf", "")]);
        let (mut lines, mut questions) = (Vec::new(), Vec::new());
        let filled = |line: &str, values: &BTreeMap<&str, &str>| {
            let names = values.iter();
            let line = names.fold(line.to_owned(), |line, (name, value)| {
                line.replace(&format!("{{{name}}}"), value)
            });
            line.trim().to_owned()
        };
        let pieces = Piece::all(include_str!("pieces.txt"));
        for category in pieces.chunk_by(|a, b| a.category == b.category) {
            let fitting = category.iter().filter(|piece| piece.fits(&tags));
            let fitting: Vec<_> = fitting
                .flat_map(|piece| iter::repeat_n(piece, piece.weight()))
                .collect();
            let piece = one_of(n, &fitting);
            tags.extend(piece.tagged('='));
            for line in &piece.lines {
                match line.split_once(' ').expect("words") {
                    ("let", words) => values.extend(words.split_once(' ')),
                    ("ask", words) => questions.push(Question::new(words, values["vrf"])),
                    _ => lines.push(filled(line, &values)),
                }
            }
        }
        let changes = Piece::all(include_str!("changes.txt"));
        let of = |category: &str| {
            let fitting = changes
                .iter()
                .filter(|piece| piece.category == category && piece.fits(&tags));
            fitting
                .flat_map(|piece| &piece.lines)
                .map(|line| filled(line, &values))
                .collect()
        };
        let possible: Vec<String> =
            match one_of(n, &["gone", "gone", "broken", "harmless", "replaced"]) {
                "gone" => lines.iter().filter_map(|line| taken_away(line)).collect(),
                category => of(category),
            };
        let at = n.below(possible.len() as u64);
        let change = match possible[usize::try_from(at).expect("a small number")].as_str() {
            "again" => made_again(&lines, tags.contains("noarp"), n),
            change => change.split("; ").map(str::to_owned).collect(),
        };
        Self {
            is_recorded: n.one_in(2),
            change,
            lines,
            questions,
        }
    }
}

/// A case that is written out in `fixed.txt`.
#[derive(Debug)]
pub(super) struct Fixed {
    pub name: &'static str,
    /// Whether the change takes nothing.
    pub is_alive: bool,
    /// Whether a restore makes everything answer again.
    pub mends: bool,
    pub case: Case,
}

impl Fixed {
    /// Those for which the kernel has what they need, of these kinds of links.
    pub fn all(kinds: &BTreeSet<&str>) -> Vec<Self> {
        let (mut parts, mut all) = (BTreeMap::new(), Vec::new());
        for piece in Piece::all(include_str!("fixed.txt")) {
            let Some((name, of)) = piece.category.split_once(": ") else {
                parts.insert(piece.category, piece.lines);
                continue;
            };
            if !piece.fits(kinds) {
                continue;
            }
            let own = of.split(' ').flat_map(|part| parts[part].clone());
            let mut own = own.chain(piece.lines);
            let mut case = Case {
                lines: Vec::new(),
                questions: Vec::new(),
                change: Vec::new(),
                is_recorded: false,
            };
            for line in own.by_ref().take_while(|line| *line != "then") {
                match line.strip_prefix("ask ") {
                    Some(words) => case.questions.push(Question::new(words, "")),
                    None => case.lines.push(line.to_owned()),
                }
            }
            case.change.extend(own.map(str::to_owned));
            all.push(Self {
                name,
                is_alive: piece.words.contains(&"alive"),
                mends: piece.words.contains(&"mends"),
                case,
            });
        }
        all
    }
}

impl Question {
    fn new(words: &str, vrf: &str) -> Self {
        let words: Vec<&str> = words.split(' ').collect();
        let asker = Place::named(words[0]);
        let to = match words[1].split_once('/') {
            Some((place, net)) => Target::Of(Place::named(place), net.parse().expect("a network")),
            None => Target::Address(words[1].parse().expect("an address")),
        };
        let option = |name: &str| words.iter().skip_while(|word| **word != name).nth(1);
        let vrf = vrf.strip_prefix("vrf ").filter(|_| asker == Place::Host);
        Self {
            asker,
            to,
            from: option("from").map(|from| from.parse().expect("an address")),
            mark: option("mark").map(|mark| mark.parse().expect("a mark")),
            bound: vrf.map(str::to_owned),
        }
    }
}

/// What takes away what this line makes.
fn taken_away(line: &str) -> Option<String> {
    let (place, words) = line.split_once(' ')?;
    if place == "gateway" || line.contains(" netns {") {
        return None;
    }
    let word = |after: &str| words.split(' ').skip_while(|word| *word != after).nth(1);
    let back = match *words.split(' ').collect::<Vec<_>>() {
        ["link", "add", "link", ..] => format!("link del {}", word("name")?),
        ["link", "add", name, ..] => format!("link del {name}"),
        ["link", "set", dev, "up"] => format!("link set {dev} down"),
        ["link", "set", dev, "master", _] => format!("link set {dev} nomaster"),
        ["link", "set", dev, "arp", "off"] => format!("link set {dev} arp on"),
        ["link", ..] | ["sysctl", _, "0"] => return None,
        ["sysctl", key, _] => format!("sysctl {key} 0"),
        ["address", address, dev, _] => format!("addr del {address} dev {dev}"),
        ["nexthop", "add", "id", id, ..] => format!("nexthop del id {id}"),
        _ => words.replacen(" add ", " del ", 1).replace(" nodad", ""),
    };
    Some(format!("{place} {back}"))
}

/// The pod's first link goes and is made again, with all that was in the pod or all but the last; with another MAC, unless a neighbour
/// that is permanent elsewhere has it.
fn made_again(lines: &[String], keeps_mac: bool, n: &mut Numbers) -> Vec<String> {
    let is_own = |line: &&String| {
        let is_of_pod = line.starts_with("pod ") || line.contains(" netns {pod}");
        is_of_pod || line.starts_with("host ") && line.contains("web0")
    };
    let mac = if keeps_mac { ":01:05" } else { ":01:06" };
    let own = lines
        .iter()
        .filter(is_own)
        .map(|line| line.replace(":01:05", mac));
    let mut again: Vec<String> = iter::once("pod link del eth0".to_owned())
        .chain(own)
        .collect();
    again.truncate(again.len() - usize::from(n.one_in(2)));
    again
}
