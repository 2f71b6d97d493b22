//! The qdiscs, classes and filters of a namespace, by tc(8), without statistics.

use serde_json::{Map, Value, json};

use super::tool;

/// Of the calling thread's namespace. Classes and filters are listed only where a qdisc is not the kernel's default.
pub fn shown() -> Value {
    let mut qdiscs = json_of("qdisc show");
    qdiscs.iter_mut().for_each(drop_counters);
    qdiscs.sort_by_key(|qdisc| format!("{} {}", qdisc["dev"], qdisc["handle"]));
    let mut shown = Map::new();
    for qdisc in qdiscs.iter().filter(|qdisc| qdisc["handle"] != "0:") {
        let word = |key: &str| qdisc[key].as_str().unwrap_or_default();
        let (dev, handle) = (word("dev"), word("handle"));
        let mut places = match word("kind") {
            "clsact" => vec!["ingress".to_owned(), "egress".to_owned()],
            "ingress" => vec!["ingress".to_owned()],
            _ => vec![format!("parent {handle}")],
        };
        // It prints no JSON for classes.
        let classes = tool::run(&mut tc(&format!("-d class show dev {dev}")));
        let mut classes: Vec<&str> = classes.lines().collect();
        classes.sort_unstable();
        // "class htb 1:1 parent 1: ..."; its filters decide among the classes below it.
        let own = |class: &str| class.split(' ').nth(2).map(str::to_owned);
        let own = classes.iter().filter_map(|class| own(class));
        let own = own.filter(|class| class.starts_with(handle));
        places.extend(own.map(|class| format!("parent {class}")));
        shown.insert(format!("classes of {dev}"), json!(classes));
        for place in places {
            let mut filters = json_of(&format!("filter show dev {dev} {place}"));
            filters.iter_mut().for_each(drop_counters);
            filters.iter_mut().for_each(name_first_table);
            // The tables of filters `u32` are in the order of their creation.
            filters.sort_by_key(Value::to_string);
            shown.insert(format!("filters of {dev} {place}"), json!(filters));
        }
    }
    shown.insert("qdiscs".to_owned(), json!(qdiscs));
    Value::Object(shown)
}

fn tc(words: &str) -> std::process::Command {
    tool::command("tc", words.split_whitespace())
}

fn json_of(words: &str) -> Vec<Value> {
    let text = tool::run(&mut tc(&format!("-d -j {words}")));
    let parsed = serde_json::from_str(&text);
    parsed.unwrap_or_else(|error| panic!("tc {words}: {error}: {text}"))
}

/// The number of references to a root qdisc follows the number of queues and of lists of filters.
fn drop_counters(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(drop_counters),
        Value::Object(object) => {
            object.retain(|key, _| !["refcnt", "direct_packets_stat"].contains(&key.as_str()));
            object.values_mut().for_each(drop_counters);
        }
        _ => {}
    }
}

/// The kernel chooses the number of the first table of filters `u32` with one priority, never one twice.
fn name_first_table(filter: &mut Value) {
    let Some(options) = filter["options"].as_object_mut() else {
        return;
    };
    for key in ["fh", "key_ht"] {
        let Some(Value::String(text)) = options.get_mut(key) else {
            continue;
        };
        let table = text.split(':').next().unwrap_or_default().to_owned();
        if u32::from_str_radix(&table, 16).is_ok_and(|table| table >= 0x800) {
            text.replace_range(..table.len(), "first");
        }
    }
}
