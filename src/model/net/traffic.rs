//! Traffic control of a link: its queueing disciplines, their classes and filters, as tc(8) shows them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::IfName;
use crate::model::net::limits;
use crate::model::net::raw::RawAttribute;

/// What an administrator or a program configured on a link, beyond the qdiscs that the kernel gives it (handle `0:`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Traffic {
    /// What netfix restores, in the order in which the kernel accepts it: each qdisc before its classes, classes before the
    /// qdiscs below them, filters at the end.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "limits::at_most::<{ limits::TRAFFIC }, _, _>"
    )]
    pub objects: Vec<TrafficObject>,
    /// What netfix cannot restore.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "limits::at_most::<{ limits::TRAFFIC }, _, _>"
    )]
    pub lost: Vec<LostTraffic>,
    /// Those of them that are filters which send packets to a link that is gone.
    #[serde(skip)]
    pub broken: Vec<TrafficObject>,
    /// The processes of the host to which its programs belong, and that install them again.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "limits::at_most::<{ limits::TRAFFIC }, _, _>"
    )]
    pub owners: Vec<ProgramOwner>,
    /// The programs by the kernel's numbers.
    #[serde(skip)]
    pub programs: LoadedPrograms,
}

/// A program on a link of the host, and the process to which it belongs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProgramOwner {
    /// The program, as in `lost`.
    pub what: String,
    /// The name of a process in the host's network namespace that has the program open, or maps that it uses.
    pub owner: String,
}

/// Programs, each as in `lost`, with its number. A program has another number each time that it is loaded: all are equal.
#[derive(Debug, Clone, Default)]
pub struct LoadedPrograms(pub Vec<(String, u32)>);

impl PartialEq for LoadedPrograms {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for LoadedPrograms {}

impl std::hash::Hash for LoadedPrograms {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

impl Traffic {
    /// Whether the link has only what the kernel gives it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.lost.is_empty()
    }

    /// The owner of a program.
    pub(crate) fn owner_of(&self, what: &str) -> Option<&str> {
        let mut owners = self.owners.iter();
        let found = owners.find(|one| one.what == what);
        found.map(|one| one.owner.as_str())
    }

    /// Adds a program that another program has loaded, or several, with the kernel's numbers for them.
    pub(crate) fn push_program(&mut self, what: String, numbers: impl IntoIterator<Item = u32>) {
        let numbers = numbers.into_iter().filter(|number| *number != 0);
        let programs = numbers.map(|number| (what.clone(), number));
        self.programs.0.extend(programs);
        self.lost.push(LostTraffic::program(what));
    }

    /// Whether the root qdisc is another one than the kernel's default.
    pub(crate) fn has_root(&self) -> bool {
        self.objects.iter().any(TrafficObject::is_root) || self.lost.iter().any(|lost| lost.is_root)
    }
}

/// A qdisc, class or filter: `struct tcmsg` and its attributes (`linux/rtnetlink.h`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TrafficObject {
    /// Which of the three.
    pub object: ObjectKind,
    /// `TCA_KIND`, such as `htb` or `u32`.
    #[serde(deserialize_with = "limits::traffic_kind")]
    pub kind: String,
    /// `tcm_handle`. A filter `u32` in the first hash table of its priority has it without the number of that table.
    pub handle: u32,
    /// The number of that table, which the kernel chooses anew for a new filter: not compared. 0 for all others.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub table: u32,
    /// `tcm_parent`.
    pub parent: u32,
    /// `tcm_info` of a filter: its priority and its protocol (network byte order). 0 for the others.
    #[serde(default)]
    pub info: u32,
    /// `TCA_OPTIONS`, `TCA_STAB` and `TCA_CHAIN`, without statistics.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "limits::at_most::<{ limits::TRAFFIC_ATTRIBUTES }, _, _>"
    )]
    pub attributes: Vec<RawAttribute>,
    /// The links to which a filter sends packets, in their order; the attributes have their ifindexes.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "limits::at_most::<{ limits::TRAFFIC_ATTRIBUTES }, _, _>"
    )]
    pub links: Vec<RedirectLink>,
}

/// A link that an action of a filter names by its ifindex.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RedirectLink {
    /// Its name.
    pub name: IfName,
    /// Its ifindex in the attributes.
    pub index: u32,
}

/// The three kinds of object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ObjectKind {
    /// A queueing discipline.
    Qdisc,
    /// A class of a classful qdisc.
    Class,
    /// A filter.
    Filter,
}

/// Something on a link that is lost with it, and that netfix cannot restore.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LostTraffic {
    /// What it is, in the words of tc(8).
    pub what: String,
    /// A program that another program loads: tc-bpf or XDP.
    #[serde(default)]
    pub is_program: bool,
    /// It is the root qdisc.
    #[serde(default)]
    pub is_root: bool,
}

impl LostTraffic {
    /// A qdisc below the root, a class or a filter.
    pub(crate) fn plain(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            is_program: false,
            is_root: false,
        }
    }

    /// A program.
    pub(crate) fn program(what: impl Into<String>) -> Self {
        Self {
            is_program: true,
            ..Self::plain(what)
        }
    }
}

/// `TC_H_ROOT`, `TC_H_INGRESS` and the hooks of `clsact` (`linux/pkt_sched.h`).
pub(crate) const ROOT: u32 = 0xffff_ffff;
pub(crate) const INGRESS: u32 = 0xffff_fff1;
pub(crate) const HOOK_INGRESS: u32 = 0xffff_fff2;
pub(crate) const HOOK_EGRESS: u32 = 0xffff_fff3;

/// `TCA_OPTIONS` and `TCA_CHAIN` (`linux/rtnetlink.h`).
pub(crate) const OPTIONS: u16 = 2;
pub(crate) const CHAIN: u16 = 11;

/// What identifies an object on its link.
type TrafficKey<'a> = (ObjectKind, u32, u32, u32, &'a [u8]);

impl TrafficObject {
    /// What identifies it on its link: a qdisc or a class its handle, a filter its parent, priority, protocol, chain and handle.
    pub(crate) fn key(&self) -> TrafficKey<'_> {
        if self.object == ObjectKind::Filter {
            let chain = self.attribute(CHAIN).unwrap_or_default();
            (self.object, self.parent, self.info, self.handle, chain)
        } else {
            (self.object, 0, 0, self.handle, &[])
        }
    }

    /// Whether `now`, as the kernel lists it, is this filter.
    pub(crate) fn is_same_filter(&self, now: &Self) -> bool {
        (self.parent, self.info, self.handle | self.table)
            == (now.parent, now.info, now.handle | now.table)
            && self.attribute(CHAIN) == now.attribute(CHAIN)
    }

    /// Whether nothing differs that a restore can change.
    pub(crate) fn is_as(&self, now: &Self) -> bool {
        let Self {
            object,
            kind,
            handle,
            table: _,
            parent,
            info,
            attributes,
            links,
        } = self;
        (object, kind, handle, parent, info)
            == (&now.object, &now.kind, &now.handle, &now.parent, &now.info)
            && (attributes, links) == (&now.attributes, &now.links)
    }

    /// Whether it is the root qdisc.
    pub(crate) fn is_root(&self) -> bool {
        self.object == ObjectKind::Qdisc && self.parent == ROOT
    }

    /// The handle of the qdisc that it belongs to, or is below; 0 for a qdisc at the root or at the ingress.
    pub(crate) fn above(&self) -> u32 {
        match self.object {
            ObjectKind::Qdisc if matches!(self.parent, ROOT | INGRESS) => 0,
            ObjectKind::Qdisc | ObjectKind::Filter => major(self.parent),
            ObjectKind::Class => major(self.handle),
        }
    }

    /// The value of an attribute.
    pub(crate) fn attribute(&self, number: u16) -> Option<&[u8]> {
        let mut attributes = self.attributes.iter();
        let found = attributes.find(|raw| raw.number == number);
        found.map(|raw| raw.value.as_slice())
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde passes a reference
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The handle of the qdisc of a class.
pub(crate) fn major(handle: u32) -> u32 {
    handle & 0xffff_0000
}

/// As tc(8) prints it, without the link.
impl fmt::Display for TrafficObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = crate::model::text::escape(&self.kind);
        match self.object {
            ObjectKind::Qdisc => {
                write!(
                    f,
                    "qdisc {kind} {} {}",
                    Handle(self.handle),
                    AttachPoint(self.parent)
                )
            }
            ObjectKind::Class => {
                write!(
                    f,
                    "class {kind} {} {}",
                    Handle(self.handle),
                    AttachPoint(self.parent)
                )
            }
            ObjectKind::Filter => {
                let (pref, protocol) = (self.info >> 16, self.info.to_le_bytes());
                let protocol = u16::from_be_bytes([protocol[0], protocol[1]]);
                let place = AttachPoint(self.parent);
                write!(
                    f,
                    "filter {kind} {place} protocol {} pref {pref}",
                    Protocol(protocol)
                )?;
                let chain = self
                    .attribute(CHAIN)
                    .and_then(|bytes| bytes.try_into().ok());
                let chain = chain.map_or(0, u32::from_ne_bytes);
                if chain != 0 {
                    write!(f, " chain {chain}")?;
                }
                match (self.kind.as_str(), self.handle) {
                    (_, 0) => Ok(()),
                    ("u32", handle) => write!(f, " handle {}", TableHandle(handle)),
                    (_, handle) => write!(f, " handle {handle:#x}"),
                }
            }
        }
    }
}

/// A handle: `1:`, `1:10`.
pub(crate) struct Handle(pub u32);

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = (self.0 >> 16, self.0 & 0xffff);
        match minor {
            0 => write!(f, "{major:x}:"),
            _ => write!(f, "{major:x}:{minor:x}"),
        }
    }
}

/// Where an object is attached.
pub(crate) struct AttachPoint(pub u32);

impl fmt::Display for AttachPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ROOT => f.write_str("root"),
            HOOK_INGRESS => f.write_str("ingress"),
            HOOK_EGRESS => f.write_str("egress"),
            parent => write!(f, "parent {}", Handle(parent)),
        }
    }
}

struct Protocol(u16);

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0x0003 => f.write_str("all"),
            0x0800 => f.write_str("ip"),
            0x0806 => f.write_str("arp"),
            0x8100 => f.write_str("802.1Q"),
            0x86dd => f.write_str("ipv6"),
            other => write!(f, "{other:#06x}"),
        }
    }
}

/// Table, bucket and node of a filter `u32`: `2:`, `2:3:800`, `::800` in the first table.
struct TableHandle(u32);

impl fmt::Display for TableHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (table, bucket, node) = (self.0 >> 20, self.0 >> 12 & 0xff, self.0 & 0xfff);
        let digits = |number: u32| match number {
            0 => String::new(),
            number => format!("{number:x}"),
        };
        let (table, bucket) = (digits(table), digits(bucket));
        match node {
            0 => write!(f, "{table}:{bucket}"),
            node => write!(f, "{table}:{bucket}:{node:x}"),
        }
    }
}
