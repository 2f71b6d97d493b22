//! The hash tables of filters `u32`.
//!
//! Each priority of a chain has a first table, whose number the kernel chooses: `800`, `801` and so on for each qdisc, in the order of
//! creation, and never one twice (`gen_new_htid` in `net/sched/cls_u32.c`). netfix stores filters in it without that number, as
//! tc(8) takes them too, so that they come back into the first table whatever its number is.

use std::collections::BTreeMap;

use super::filter::{number, set_number};
use crate::model::net::traffic::{CHAIN, OPTIONS, TrafficObject};

const TCA_U32_HASH: u16 = 2;
const TCA_U32_LINK: u16 = 3;
const TCA_U32_DIVISOR: u16 = 4;
/// `TC_U32_HTID`, `TC_U32_NODE`, and `TC_U32_ROOT`, the first table of a priority.
const TABLE: u32 = 0xfff0_0000;
const NODE: u32 = 0x0000_0fff;
const FIRST: u32 = 0xfff0_0000;
/// The first number that the kernel chooses.
const CHOSEN: u32 = 0x8000_0000;

/// The filters `u32` of a link in the order in which they are added: the priorities in the order of their first tables, further
/// tables, and what is in the tables. And descriptions of those that netfix cannot restore.
pub(super) fn resolve(filters: Vec<TrafficObject>) -> (Vec<TrafficObject>, Vec<String>) {
    let mut priorities: BTreeMap<_, Vec<TrafficObject>> = BTreeMap::new();
    for filter in filters {
        let chain = filter.attribute(CHAIN).map(<[u8]>::to_vec);
        let place = (filter.parent, chain, filter.info);
        priorities.entry(place).or_default().push(filter);
    }
    let (mut tables, mut others, mut lost) = (Vec::new(), Vec::new(), Vec::new());
    for filters in priorities.into_values() {
        match of_priority(filters, &mut tables) {
            Ok(nodes) => others.extend(nodes),
            Err(what) => lost.push(what),
        }
    }
    // The kernel chooses the numbers again as long as the others do not come between.
    tables.sort_by_key(|(id, _)| (*id < CHOSEN, *id));
    let tables = tables.into_iter().map(|(_, table)| table);
    (tables.chain(others).collect(), lost)
}

fn option(filter: &TrafficObject, attribute: u16) -> Option<u32> {
    number(filter.attribute(OPTIONS)?, attribute)
}

/// Adds the priority and its further tables to `tables`, by their number; returns the filters in the tables.
fn of_priority(
    filters: Vec<TrafficObject>,
    tables: &mut Vec<(u32, TrafficObject)>,
) -> Result<Vec<TrafficObject>, String> {
    let mut firsts = filters
        .iter()
        .filter(|one| one.handle >= CHOSEN && option(one, TCA_U32_DIVISOR) == Some(1))
        .map(|one| one.handle);
    let (first, further) = (firsts.next(), firsts.next());
    let (Some(first), None) = (first, further) else {
        let name = filters.first().map(ToString::to_string).unwrap_or_default();
        return Err(format!("{name}, whose first hash table is not known"));
    };
    let links_to_first = filters
        .iter()
        .find(|one| option(one, TCA_U32_LINK).is_some_and(|link| link & TABLE == first));
    if let Some(one) = links_to_first {
        return Err(format!("{one}, which links to a first hash table"));
    }
    let mut nodes = Vec::new();
    for mut filter in filters {
        match filter.handle {
            0 => tables.push((first, filter)),
            handle if handle == first => {}
            handle if handle & NODE == 0 => tables.push((handle, filter)),
            handle => {
                if handle & TABLE == first {
                    filter.table = first;
                    filter.handle &= !TABLE;
                    in_first(&mut filter);
                }
                nodes.push(filter);
            }
        }
    }
    Ok(nodes)
}

/// Names the table as the first of its priority.
fn in_first(filter: &mut TrafficObject) {
    let mut attributes = filter.attributes.iter_mut();
    if let Some(options) = attributes.find(|raw| raw.number == OPTIONS) {
        set_number(&mut options.value, TCA_U32_HASH, FIRST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::net::raw::RawAttribute;
    use crate::model::net::traffic::ObjectKind;

    fn filter(pref: u32, handle: u32, options: Option<(u16, u32)>) -> TrafficObject {
        let attribute = |(number, value): (u16, u32)| {
            let mut options = vec![8, 0];
            options.extend(number.to_ne_bytes());
            options.extend(value.to_ne_bytes());
            RawAttribute {
                number: OPTIONS,
                value: options,
            }
        };
        TrafficObject {
            object: ObjectKind::Filter,
            kind: "u32".to_owned(),
            handle,
            table: 0,
            parent: 0x1_0000,
            info: pref << 16 | 8,
            attributes: options.map(attribute).into_iter().collect(),
            links: Vec::new(),
        }
    }

    const NODE_800: u32 = 0x8000_0800;

    fn one_priority(pref: u32, first: u32) -> Vec<TrafficObject> {
        vec![
            filter(pref, 0, None),
            filter(pref, first, Some((TCA_U32_DIVISOR, 1))),
            filter(pref, first | 0x800, Some((TCA_U32_HASH, first))),
        ]
    }

    #[test]
    fn priorities_come_in_the_order_of_their_first_tables() {
        let mut all = one_priority(2, 0x8010_0000);
        all.extend(one_priority(5, 0x8000_0000));
        all.push(filter(2, 0x0020_0000, Some((TCA_U32_DIVISOR, 16))));
        let (filters, lost) = resolve(all);
        assert!(lost.is_empty(), "{lost:?}");
        let found: Vec<_> = filters
            .iter()
            .map(|one| (one.info >> 16, one.handle, one.table))
            .collect();
        let expected = [
            (5, 0, 0),
            (2, 0, 0),
            (2, 0x0020_0000, 0),
            (2, 0x800, 0x8010_0000),
            (5, 0x800, 0x8000_0000),
        ];
        assert_eq!(found, expected);
        let options = filters[3].attribute(OPTIONS).unwrap();
        assert_eq!(number(options, TCA_U32_HASH), Some(FIRST));
    }

    #[test]
    fn a_priority_has_a_first_table_in_each_chain() {
        let mut all = one_priority(2, 0x8010_0000);
        let in_chain = one_priority(2, 0x8000_0000).into_iter().map(|mut one| {
            let value = 5_u32.to_ne_bytes().to_vec();
            let number = CHAIN;
            one.attributes.push(RawAttribute { number, value });
            one
        });
        all.extend(in_chain);
        let (filters, lost) = resolve(all);
        assert!(lost.is_empty(), "{lost:?}");
        let tables: Vec<_> = filters.iter().map(|one| one.table).collect();
        assert_eq!(tables, [0, 0, 0x8010_0000, 0x8000_0000]);
    }

    #[test]
    fn a_priority_whose_first_table_is_not_known_is_not_stored() {
        let mut all = one_priority(5, 0x8000_0000);
        all.push(filter(5, 0x8010_0000, Some((TCA_U32_DIVISOR, 1))));
        let (filters, lost) = resolve(all);
        assert!(filters.is_empty());
        assert_eq!(lost.len(), 1);
        let link = filter(5, NODE_800 + 1, Some((TCA_U32_LINK, 0x8000_0000)));
        let mut all = one_priority(5, 0x8000_0000);
        all.push(link);
        assert_eq!(resolve(all).1.len(), 1);
    }
}
