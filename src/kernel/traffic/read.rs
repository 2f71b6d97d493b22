//! Reads what is configured on the links of a namespace.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcHandle, TcMessage};

use super::{filter, options, parse, tcx, u32};
use crate::kernel::codec::Dump;
use crate::kernel::codec::nested::{Nested, word};
use crate::kernel::{Errno, Error, Socket};
use crate::model::Link;
use crate::model::net::limits;
use crate::model::net::traffic::{
    CHAIN, HOOK_EGRESS, HOOK_INGRESS, INGRESS, LostTraffic, OPTIONS, ObjectKind, ROOT,
    RedirectLink, Traffic, TrafficObject,
};

/// `TCA_STAB`, `TCA_INGRESS_BLOCK`, `TCA_EGRESS_BLOCK` (`linux/rtnetlink.h`).
const STAB: u16 = 8;
const BLOCKS: [u16; 2] = [13, 14];

/// Reads what is configured on these links of the socket's namespace: one dump, and further ones only for links with more
/// than the kernel's defaults.
pub(in crate::kernel) fn read(socket: &mut Socket, links: &mut [Link]) -> Result<(), Error> {
    read_from(links, |message| match socket.dump(message) {
        // A kernel without traffic control.
        Err(Error::Kernel(Errno::EOPNOTSUPP)) => Ok(Dump::default()),
        dump => dump,
    })?;
    tcx::read(links);
    Ok(())
}

/// Reads what is configured on these links from the answers to dumps.
pub(in crate::kernel) fn read_from(
    links: &mut [Link],
    mut dump: impl FnMut(RouteNetlinkMessage) -> Result<Dump, Error>,
) -> Result<(), Error> {
    let request = RouteNetlinkMessage::GetQueueDiscipline(TcMessage::default());
    let mut qdiscs: BTreeMap<u32, Vec<TrafficObject>> = BTreeMap::new();
    for (index, qdisc) in objects(dump(request)?) {
        if qdisc.handle != 0 {
            qdiscs.entry(index).or_default().push(qdisc);
        }
    }
    let names: Vec<RedirectLink> = links
        .iter()
        .map(|link| RedirectLink {
            name: link.name.clone(),
            index: link.index,
        })
        .collect();
    for link in links {
        if let Some(qdiscs) = qdiscs.remove(&link.index) {
            let mut reader = Reader {
                index: link.index,
                names: &names,
                traffic: std::mem::take(&mut link.traffic),
                dump: &mut dump,
            };
            reader.read(qdiscs)?;
            link.traffic = reader.traffic;
        }
    }
    Ok(())
}

/// The objects of a dump, each with the index of its link. One that cannot be decoded has no kind, and is left out.
fn objects(dump: Dump) -> impl Iterator<Item = (u32, TrafficObject)> {
    dump.objects.into_iter().filter_map(|one| parse(&one))
}

struct Reader<'a, D> {
    index: u32,
    names: &'a [RedirectLink],
    traffic: Traffic,
    dump: &'a mut D,
}

impl<D: FnMut(RouteNetlinkMessage) -> Result<Dump, Error>> Reader<'_, D> {
    fn read(&mut self, qdiscs: Vec<TrafficObject>) -> Result<(), Error> {
        let has_classes = |one: &TrafficObject| options::has_own_classes(&one.kind);
        let classes = if qdiscs.iter().any(has_classes) {
            let request = RouteNetlinkMessage::GetTrafficClass(self.message(0));
            objects((self.dump)(request)?)
                .map(|(_, class)| class)
                .filter(has_classes)
                .collect()
        } else {
            Vec::new()
        };
        self.order(qdiscs, classes);
        self.read_filters()?;
        let Traffic { objects, lost, .. } = &mut self.traffic;
        if objects.len() > limits::TRAFFIC {
            let more = objects.len() - limits::TRAFFIC;
            objects.truncate(limits::TRAFFIC);
            lost.push(LostTraffic::plain(format!(
                "{more} more qdiscs, classes and filters"
            )));
        }
        lost.truncate(limits::TRAFFIC);
        Ok(())
    }

    /// A request about the link.
    fn message(&self, parent: u32) -> TcMessage {
        let mut message = TcMessage::with_index(self.index.cast_signed());
        message.header.parent = TcHandle::from(parent);
        message
    }

    /// Stores each qdisc and class after the one that it is below.
    fn order(&mut self, qdiscs: Vec<TrafficObject>, classes: Vec<TrafficObject>) {
        let mut waiting: Vec<_> = qdiscs.into_iter().chain(classes).collect();
        waiting.sort_by_key(|one| (one.object, one.handle));
        // By handle: whether users create the classes below it.
        let mut placed: BTreeMap<u32, bool> = BTreeMap::new();
        loop {
            let next: Vec<_> = waiting
                .extract_if(.., |one| match (one.object, one.parent) {
                    (ObjectKind::Qdisc, ROOT | INGRESS) => true,
                    (ObjectKind::Class, ROOT) => placed.contains_key(&one.above()),
                    (ObjectKind::Class, parent) => placed.contains_key(&parent),
                    (_, parent) => {
                        placed.contains_key(&parent) || placed.get(&one.above()) == Some(&false)
                    }
                })
                .collect();
            if next.is_empty() {
                break;
            }
            for mut one in next {
                match Self::make_storable(&mut one) {
                    Ok(()) => {
                        placed.insert(one.handle, options::has_own_classes(&one.kind));
                        self.traffic.objects.push(one);
                    }
                    Err(why) => self.lose(&one, why),
                }
            }
        }
        for one in waiting {
            self.lose(&one, "");
        }
    }

    fn lose(&mut self, one: &TrafficObject, why: &str) {
        self.traffic.lost.push(LostTraffic {
            is_root: one.is_root(),
            ..LostTraffic::plain(format!("{one}{why}"))
        });
    }

    /// Removes the statistics of a qdisc or class. An error is why netfix cannot restore it.
    fn make_storable(one: &mut TrafficObject) -> Result<(), &'static str> {
        if !options::is_known(&one.kind) {
            return Err("");
        }
        let has_block = one
            .attributes
            .iter()
            .any(|raw| BLOCKS.contains(&raw.number));
        if has_block {
            return Err(" with a shared block");
        }
        one.attributes
            .retain(|raw| [OPTIONS, STAB].contains(&raw.number));
        if one.attribute(STAB).is_some_and(has_size_table) {
            return Err(" with a size table");
        }
        for raw in &mut one.attributes {
            if raw.number == OPTIONS {
                raw.value = options::storable(&one.kind, std::mem::take(&mut raw.value));
            }
        }
        Ok(())
    }

    fn read_filters(&mut self) -> Result<(), Error> {
        let with_filters = self
            .traffic
            .objects
            .iter()
            .filter(|one| options::has_filters(&one.kind));
        let places: BTreeSet<u32> = with_filters
            .flat_map(|one| match one.kind.as_str() {
                "clsact" => vec![HOOK_INGRESS, HOOK_EGRESS],
                _ => vec![one.handle],
            })
            .collect();
        let mut tables = Vec::new();
        for place in places {
            let request = RouteNetlinkMessage::GetTrafficFilter(self.message(place));
            for (_, filter) in objects((self.dump)(request)?) {
                if let Some((what, number)) = program(&filter) {
                    self.traffic.push_program(what, number);
                    continue;
                }
                match self.storable_filter(filter) {
                    Ok(Some(filter)) if filter.kind == "u32" => tables.push(filter),
                    Ok(filter) => self.traffic.objects.extend(filter),
                    Err(found) => {
                        let (lost, broken) = *found;
                        self.traffic.lost.push(lost);
                        self.traffic.broken.extend(broken);
                    }
                }
            }
        }
        let (tables, lost) = u32::resolve(tables);
        self.traffic.objects.extend(tables);
        self.traffic
            .lost
            .extend(lost.into_iter().map(LostTraffic::plain));
        Ok(())
    }

    /// A filter without state; `None` for what stands for all filters of a priority. An error has the filter too if the link is
    /// gone to which it sends packets.
    fn storable_filter(
        &self,
        mut filter: TrafficObject,
    ) -> Result<Option<TrafficObject>, Box<(LostTraffic, Option<TrafficObject>)>> {
        let is_priority = filter.attribute(OPTIONS).is_none() && filter.handle == 0;
        if is_priority && filter.kind != "u32" {
            return Ok(None);
        }
        if !filter::is_known(&filter.kind) {
            return Err((LostTraffic::plain(filter.to_string()), None).into());
        }
        let names = self.names;
        let is_broken = Cell::new(false);
        let at = |index| {
            let found = names.iter().find(|link| link.index == index).cloned();
            is_broken.set(is_broken.get() || found.is_none());
            found
        };
        filter
            .attributes
            .retain(|raw| [OPTIONS, CHAIN].contains(&raw.number));
        let mut links = Vec::new();
        for raw in &mut filter.attributes {
            if raw.number == OPTIONS {
                let options = filter::storable(&filter.kind, &raw.value, &at, &mut links);
                raw.value = match options {
                    Ok(options) => options,
                    Err(part) => {
                        let lost = LostTraffic::plain(format!("{filter} with {part}"));
                        return Err((lost, Some(filter).filter(|_| is_broken.get())).into());
                    }
                };
            }
        }
        filter.links = links;
        Ok(Some(filter))
    }
}

/// The size table of `TCA_STAB`, of which the kernel reports only the length (`tsize` in `struct tc_sizespec`).
fn has_size_table(stab: &[u8]) -> bool {
    const TCA_STAB_BASE: u16 = 1;
    const TSIZE: usize = 20;
    let base = Nested::parse(stab);
    let base = base.as_ref().and_then(|stab| stab.get(TCA_STAB_BASE));
    base.and_then(|base| word(base, TSIZE)) != Some(0)
}

/// A tc-bpf program, by its filter, its name and the kernel's number for it (`TCA_BPF_NAME`, `TCA_BPF_ID`).
fn program(filter: &TrafficObject) -> Option<(String, Option<u32>)> {
    const TCA_BPF_NAME: u16 = 7;
    const TCA_BPF_ID: u16 = 11;
    let options = filter.attribute(OPTIONS).filter(|_| filter.kind == "bpf")?;
    let options = Nested::parse(options);
    let get = |number| options.as_ref().and_then(|options| options.get(number));
    let name = get(TCA_BPF_NAME)
        .map(String::from_utf8_lossy)
        .unwrap_or_default();
    let what = match name.trim_end_matches('\0') {
        "" => filter.to_string(),
        name => format!("{filter} {name}"),
    };
    Some((what, get(TCA_BPF_ID).and_then(|id| word(id, 0))))
}
