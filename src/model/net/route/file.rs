//! Routes in files: the key `family` is written for readers, and read from the destination.

use ipnet::IpNet;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::model::net::limits;
use crate::model::net::route::Route;

impl<'de> Deserialize<'de> for Route {
    /// The destination shows the family. Serde would read the key `family` only after it has copied the route, and a pod may have
    /// tens of thousands.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let route = Self::deserialize(from)?;
        let gateway = route.dst.max_prefix_len() / 8;
        if route.hops.len() > limits::hops(gateway.into()) {
            return Err(D::Error::custom(
                "more next hops than fit into one attribute of netlink",
            ));
        }
        let gateways = route.hops.iter().filter_map(|hop| hop.gateway);
        let source = route.src.map(|src| src.addr());
        let mut addresses = gateways.chain(source).chain(route.prefsrc);
        if addresses.any(|ip| ip.is_ipv6() != route.is_ipv6()) {
            return Err(D::Error::custom("a route of two families"));
        }
        Ok(route)
    }
}

impl Serialize for Route {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(tag = "family")]
        enum OfFamily<'a> {
            #[serde(rename = "inet")]
            V4(#[serde(serialize_with = "Route::serialize")] &'a Route),
            #[serde(rename = "inet6")]
            V6(#[serde(serialize_with = "Route::serialize")] &'a Route),
        }
        let route = match self.dst {
            IpNet::V4(_) => OfFamily::V4(self),
            IpNet::V6(_) => OfFamily::V6(self),
        };
        route.serialize(to)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_route_has_one_family_which_its_destination_shows() {
        let with = |key: &str, value: Value| {
            let mut route = json!({
                "family": "inet", "dst": "10.1.0.0/16", "table": 254, "protocol": 3, "scope": 0, "type": 1,
                "tos": 0, "hops": [],
            });
            route[key] = value;
            serde_json::from_value::<Route>(route).map(|route| json!(route))
        };
        let hop = |gateway: &str| json!([{ "gateway": gateway, "onlink": false, "weight": 0 }]);
        assert_eq!(
            with("prefsrc", "10.1.0.1".into()).unwrap()["family"],
            "inet"
        );
        assert_eq!(with("dst", "fd00::/8".into()).unwrap()["family"], "inet6");
        assert_eq!(
            with("hops", hop("10.1.0.1")).unwrap()["hops"],
            hop("10.1.0.1")
        );
        for (key, value) in [
            ("prefsrc", "fd00::1".into()),
            ("src", "fd00::/8".into()),
            ("hops", hop("fd00::1")),
        ] {
            assert!(with(key, value).is_err(), "{key}");
        }
    }
}
