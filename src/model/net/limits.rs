//! What fits into a netlink message. A stored file may hold more; the kernel never reports more.
//!
//! The length of an attribute has 16 bits, with its header and everything nested in it (`struct nlattr`, linux/netlink.h).

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::model::Bytes;
use crate::model::text::Invalid;

/// The largest payload of an attribute, in bytes.
pub(crate) const PAYLOAD: usize = u16::MAX as usize - HEADER;
/// `NLA_HDRLEN`.
const HEADER: usize = 4;
/// What else is beside a list in `IFLA_LINKINFO`, in bytes: kind, mode, flags.
const BESIDE: usize = 256;
/// A hardware address or the mapping of a priority in a list, padded (`NLA_ALIGNTO`).
const ITEM: usize = HEADER + 8;

/// `IFALIASZ` without the terminating NUL (linux/if.h).
const ALIAS: usize = 255;
/// `ALTIFNAMSIZ` without the terminating NUL (linux/if.h).
const ALTNAME: usize = 127;
/// Addresses of a macvlan in source mode, all in one `IFLA_MACVLAN_MACADDR_DATA`.
pub(crate) const SOURCES: usize = (PAYLOAD - BESIDE) / ITEM;
/// `IFLA_VLAN_EGRESS_QOS`, beside the ingress map.
pub(crate) const EGRESS: usize = (PAYLOAD - BESIDE) / ITEM - INGRESS;
/// The priorities of a VLAN tag.
pub(crate) const INGRESS: usize = 8;
/// `BOND_MAX_ARP_TARGETS` and `BOND_MAX_NS_TARGETS` (net/bonding.h).
pub(crate) const BOND_TARGETS: usize = 16;
/// Hops in a group of nexthops: `struct nexthop_grp` has 8 bytes (linux/nexthop.h).
pub(crate) const MEMBERS: usize = PAYLOAD / 8;
/// Qdiscs, classes and filters of a link. The kernel has no limit; this many are 1 MB in a file, and added in a second.
pub(crate) const TRAFFIC: usize = 4096;
/// Attributes of one of them that are stored, and links that its actions name (`TCA_ACT_MAX_PRIO`, `linux/pkt_cls.h`).
pub(crate) const TRAFFIC_ATTRIBUTES: usize = 32;
/// Entries of a table that a checkpoint has, such as routes: a netfix that reads it has some kilobytes of memory for each.
pub(crate) const ENTRIES: usize = 120_000;
/// What programs have on links: more are not recorded.
pub(crate) const SOCKETS: usize = 4096;
/// Ways of packets of a namespace: a snapshot records far fewer.
pub(crate) const WAYS: usize = 1024;
/// Forwarding entries of a link: more are neither recorded nor restored.
pub(crate) const FORWARDING: usize = 1 << 16;
/// Multicast groups of a port of a bridge: more are neither recorded nor restored.
pub(crate) const GROUPS: usize = 1 << 16;
/// VLANs of a port of a bridge.
pub(crate) const VLANS: usize = 4094;
/// Entries of a table that spreads packets over queues: drivers have 128 to 2048.
pub(crate) const RSS_TABLE: usize = 1 << 16;
/// Virtual functions of a device (`TotalVFs` has 16 bits; devices have up to 256).
pub(crate) const FUNCTIONS: usize = 4096;
/// `struct rtnexthop` (linux/rtnetlink.h).
const NEXTHOP: usize = 8;

/// The next hops of a route that fit into `RTA_MULTIPATH`, for gateways of that many bytes.
pub(crate) const fn hops(gateway: usize) -> usize {
    PAYLOAD / (NEXTHOP + HEADER + gateway)
}

/// A list of at most `MOST` items.
pub(crate) fn at_most<'de, const MOST: usize, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let items = Vec::deserialize(deserializer)?;
    if items.len() <= MOST {
        return Ok(items);
    }
    let (count, most) = (items.len(), MOST);
    Err(D::Error::custom(format!(
        "{count} items, and the kernel takes at most {most}"
    )))
}

/// The VLANs of a port of a bridge, which an old file lacks.
pub(crate) fn vlans<'de, D, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    at_most::<VLANS, D, T>(deserializer).map(Some)
}

/// The text of `IFLA_IFALIAS`.
pub(crate) fn alias<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Bytes>, D::Error> {
    let alias = Option::<Bytes>::deserialize(from)?;
    match alias {
        Some(alias) if alias.as_slice().len() > ALIAS => Err(D::Error::custom(Invalid::new(
            &alias.to_string().chars().take(ALIAS).collect::<String>(),
            "an alias (at most 255 bytes)",
        ))),
        alias => Ok(alias),
    }
}

/// The names in `IFLA_PROP_LIST`.
pub(crate) fn altnames<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Bytes>, D::Error> {
    let names = Vec::<Bytes>::deserialize(from)?;
    let size = |name: &Bytes| HEADER + (name.as_slice().len() + 1).next_multiple_of(4);
    let is_name = |name: &Bytes| (1..=ALTNAME).contains(&name.as_slice().len());
    if names.iter().all(is_name) && names.iter().map(size).sum::<usize>() <= PAYLOAD {
        return Ok(names);
    }
    Err(D::Error::custom(
        "alternative names that the kernel cannot have (each 1 to 127 bytes, all together 64 KiB)",
    ))
}

/// `TCA_KIND`, shorter than `IFNAMSIZ` (linux/if.h).
pub(crate) fn traffic_kind<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    const KIND: usize = 15;
    let kind = String::deserialize(from)?;
    if kind.len() <= KIND {
        return Ok(kind);
    }
    Err(D::Error::custom(
        "the kind of a qdisc, class or filter has at most 15 bytes",
    ))
}

/// The name of an interface in a rule, which need not be a valid one: shorter than `IFNAMSIZ` (linux/if.h).
pub(crate) fn rule_dev<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Bytes>, D::Error> {
    const NAME: usize = 15;
    let name = Option::<Bytes>::deserialize(from)?;
    match name {
        Some(name) if name.as_slice().len() > NAME => Err(D::Error::custom(
            "an interface name of a rule has at most 15 bytes",
        )),
        name => Ok(name),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::model::{Link, LinkKind, Route, Rule};

    fn link(key: &str, value: Value) -> Result<Link, serde_json::Error> {
        let plain = Link::plain("eth0".parse().unwrap(), LinkKind::Physical);
        let mut link = serde_json::to_value(plain).unwrap();
        link[key] = value;
        serde_json::from_value(link)
    }

    #[test]
    fn names_have_the_kernels_lengths() {
        assert!(link("alias", "a".repeat(255).into()).is_ok());
        assert!(link("alias", "a".repeat(256).into()).is_err());
        assert!(link("altnames", json!(["a".repeat(127)])).is_ok());
        assert!(link("altnames", json!(["a".repeat(128)])).is_err());
        assert!(link("altnames", json!(vec!["abc"; 8191])).is_ok());
        assert!(link("altnames", json!(vec!["abc"; 8192])).is_err());
        let rule = |name: String| serde_json::from_value::<Rule>(json!({"iif": name}));
        assert!(rule("a".repeat(15)).is_ok());
        assert!(rule("a".repeat(16)).is_err());
    }

    #[test]
    fn all_next_hops_fit_into_one_attribute() {
        let route = |family: &str, dst: &str, gateway: &str, hops: usize| {
            let hop = json!({"gateway": gateway, "dev": "eth0"});
            serde_json::from_value::<Route>(json!({
                "family": family, "dst": dst, "table": 254, "protocol": 3, "scope": 0, "type": 1,
                "hops": vec![hop; hops],
            }))
        };
        assert!(route("inet", "0.0.0.0/0", "10.0.0.1", 4095).is_ok());
        assert!(route("inet", "0.0.0.0/0", "10.0.0.1", 4096).is_err());
        assert!(route("inet6", "::/0", "fd00::1", 2340).is_ok());
        assert!(route("inet6", "::/0", "fd00::1", 2341).is_err());
    }
}
