//! A readable difference between two JSON documents.

use serde_json::{Map, Value};

/// One line for each difference: `- path: before` and `+ path: after`.
pub fn lines(before: &Value, after: &Value) -> Vec<String> {
    let mut out = Vec::new();
    compare("", before, after, &mut out);
    out
}

fn compare(path: &str, before: &Value, after: &Value, out: &mut Vec<String>) {
    match (before, after) {
        (a, b) if a == b => {}
        (Value::Object(a), Value::Object(b)) => compare_objects(path, a, b, out),
        (Value::Array(a), Value::Array(b)) => compare_lists(path, a, b, out),
        (a, b) => {
            out.push(format!("- {path}: {a}"));
            out.push(format!("+ {path}: {b}"));
        }
    }
}

fn compare_objects(
    path: &str,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    out: &mut Vec<String>,
) {
    for (key, value) in before {
        match after.get(key) {
            Some(other) => compare(&join(path, key), value, other, out),
            None => out.push(format!("- {}: {value}", join(path, key))),
        }
    }
    for (key, value) in after.iter().filter(|(key, _)| !before.contains_key(*key)) {
        out.push(format!("+ {}: {value}", join(path, key)));
    }
}

/// Elements with a name are compared by that name, the others as a whole; then the order.
fn compare_lists(path: &str, before: &[Value], after: &[Value], out: &mut Vec<String>) {
    let mut unmatched: Vec<&Value> = after.iter().collect();
    let first = out.len();
    for value in before {
        if let Some(at) = unmatched.iter().position(|other| *other == value) {
            unmatched.remove(at);
        } else if let Some(at) = unmatched.iter().position(|other| same_name(value, other)) {
            let other = unmatched.remove(at);
            compare(
                &format!("{path}[{}]", name(value).unwrap_or_default()),
                value,
                other,
                out,
            );
        } else {
            out.push(format!("- {path}: {value}"));
        }
    }
    out.extend(unmatched.iter().map(|value| format!("+ {path}: {value}")));
    if out.len() == first {
        out.push(format!("- {path}, in this order: {}", Value::from(before)));
        out.push(format!("+ {path}, in this order: {}", Value::from(after)));
    }
}

fn name(value: &Value) -> Option<&str> {
    ["ifname", "local"]
        .iter()
        .find_map(|key| value[key].as_str())
}

fn same_name(a: &Value, b: &Value) -> bool {
    name(a).is_some() && name(a) == name(b)
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}
