//! The orders that have a meaning, each apart from what is ordered: so a difference names the order alone.

use serde_json::{Map, Value, json};

use super::{list, ordinary};

/// The first addresses of a link are the sources of packets.
pub(super) fn addresses(sections: &mut Map<String, Value>) {
    let name = |address: &Value| {
        let ip = address["local"].as_str().unwrap_or_default();
        json!(format!("{ip}/{}", address["prefixlen"]))
    };
    let mut orders = Map::new();
    for (link, addresses) in sections["addresses"].as_object_mut().into_iter().flatten() {
        let order: Vec<Value> = list(addresses).map(name).collect();
        orders.insert(link.clone(), Value::from(order));
        ordinary::unordered(addresses);
    }
    sections.insert("order of addresses".to_owned(), Value::Object(orders));
}

/// Of the routes with one destination, metric and TOS in a table the first one is used. The others are found by the longest
/// prefix and the lowest metric, whatever their order.
pub(super) fn routes(routes: &mut Value) {
    let mut groups: Map<String, Value> = Map::new();
    for route in list(routes) {
        let word = |key: &str| match &route[key] {
            Value::String(word) => word.clone(),
            Value::Null => "0".to_owned(),
            other => other.to_string(),
        };
        let tos = match &route["tos"] {
            Value::Null => String::new(),
            tos => format!(", TOS {tos}"),
        };
        let (dst, table, metric) = (word("dst"), word("table"), word("metric"));
        let key = format!("{dst} of {table}, metric {metric}{tos}");
        let group = groups.entry(key).or_insert_with(|| json!([]));
        if let Some(group) = group.as_array_mut() {
            let mut route = route.clone();
            ordinary::carrier(&mut route);
            group.push(route);
        }
    }
    if let Some(group) = groups.get_mut("fe80::/64 of main, metric 256") {
        // A packet to a link-local address needs a link.
        ordinary::unordered(group);
    }
    *routes = Value::Object(groups);
}
