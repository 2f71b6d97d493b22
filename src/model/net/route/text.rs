//! Routes in the words of ip(8).

use std::fmt;

use crate::model::net::route::{Hop, Route, TABLE_MAIN};

const KIND_NAMES: [(u8, &str); 8] = [
    (2, "local"),
    (3, "broadcast"),
    (4, "anycast"),
    (5, "multicast"),
    (6, "blackhole"),
    (7, "unreachable"),
    (8, "prohibit"),
    (9, "throw"),
];

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((_, name)) = KIND_NAMES.iter().find(|(kind, _)| *kind == self.kind) {
            write!(f, "{name} ")?;
        }
        if self.dst.prefix_len() == 0 {
            write!(f, "default")?;
        } else {
            write!(f, "{}", self.dst)?;
        }
        if let Some(id) = self.nexthop {
            write!(f, " nhid {id}")?;
        }
        let multipath = self.hops.len() > 1;
        for hop in &self.hops {
            f.write_str(if multipath { " nexthop" } else { "" })?;
            hop.describe(f)?;
        }
        if let Some(src) = &self.prefsrc {
            write!(f, " src {src}")?;
        }
        if self.table != TABLE_MAIN {
            write!(f, " table {}", self.table)?;
        }
        if let Some(metric) = self.priority {
            write!(f, " metric {metric}")?;
        }
        Ok(())
    }
}

impl Hop {
    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(gateway) = &self.gateway {
            write!(f, " via {gateway}")?;
        }
        if let Some(gateway) = &self.via {
            write!(f, " via inet6 {gateway}")?;
        }
        if let Some(dev) = &self.dev {
            write!(f, " dev {dev}")?;
        }
        f.write_str(if self.onlink { " onlink" } else { "" })
    }
}
