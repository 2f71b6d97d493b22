//! docs/reference/schema.json against the documents, and the promise of `netfix/v1`: it may gain keys, and loses none.

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Value, json, to_value};

use crate::documents::Scene;
use crate::schema_file::{SCHEMA, faults};

const COMMANDS: [&str; 10] = [
    "snapshot", "list", "show", "diff", "plan", "restore", "verify", "check", "status", "upgrade",
];

fn documents() -> impl Iterator<Item = Value> {
    let scenes = [false, true].map(|lost| Scene { pods: 3, lost });
    let all = scenes
        .into_iter()
        .flat_map(|scene| COMMANDS.map(|word| (scene, word)));
    all.map(|(scene, word)| {
        let mut document = scene.document(word);
        document.command = word.parse().unwrap();
        to_value(document).unwrap()
    })
}

#[test]
fn every_document_follows_the_schema() {
    for document in documents() {
        let faults = faults(&document);
        assert!(faults.is_empty(), "{faults:#?}\n{document:#}");
    }
}

/// Every place of the document with each of its keys removed, but those that the schema does not require.
fn without_one_key(value: &Value, schema: &Value) -> Vec<Value> {
    let schema = resolved(schema);
    match value {
        Value::Object(map) => {
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            let shorter = required.iter().filter_map(Value::as_str).map(|key| {
                let mut map = map.clone();
                map.remove(key)
                    .unwrap_or_else(|| panic!("{key} is missing"));
                Value::Object(map)
            });
            let inside = map.iter().flat_map(|(key, part)| {
                let parts = without_one_key(part, &schema["properties"][key]);
                parts.into_iter().map(|part| {
                    let mut map = map.clone();
                    map.insert(key.clone(), part);
                    Value::Object(map)
                })
            });
            shorter.chain(inside).collect()
        }
        Value::Array(items) => {
            let first = items
                .first()
                .map(|item| without_one_key(item, &schema["items"]));
            let changed = first.into_iter().flatten();
            changed
                .map(|item| Value::Array([&[item], &items[1..]].concat()))
                .collect()
        }
        _ => Vec::new(),
    }
}

#[test]
fn a_document_without_one_of_its_required_keys_is_refused() {
    let mut count = 0;
    for document in documents() {
        for shorter in without_one_key(&document, &SCHEMA) {
            assert!(!faults(&shorter).is_empty(), "{shorter:#}");
            count += 1;
        }
    }
    assert!(count > 500, "{count} documents");
}

#[test]
fn an_unknown_word_and_a_wrong_type_are_refused() {
    let document = || documents().next().unwrap();
    for (path, wrong) in [
        ("/pods/0/state", "fine"),
        ("/exit", "0"),
        ("/command", "frobnicate"),
    ] {
        let mut document = document();
        *document.pointer_mut(path).unwrap() = wrong.into();
        assert!(!faults(&document).is_empty(), "{path}");
    }
}

/// The schema that a reference leads to; of an alternative to null, the other one.
fn resolved(schema: &Value) -> &Value {
    let schema = schema["oneOf"].get(0).unwrap_or(schema);
    match schema["$ref"].as_str() {
        Some(place) => SCHEMA.pointer(place.trim_start_matches('#')).unwrap(),
        None => schema,
    }
}

/// The path of every key, with its type.
fn keys(schema: &Value, path: &str, all: &mut BTreeMap<String, String>) {
    let null = if schema["oneOf"].is_array() {
        "|null"
    } else {
        ""
    };
    let schema = resolved(schema);
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds
            .iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join("|"),
        Value::String(kind) => kind.clone(),
        _ if schema["const"].is_boolean() => "boolean".to_owned(),
        _ => "string".to_owned(),
    };
    all.insert(path.to_owned(), kind + null);
    for (key, part) in schema["properties"].as_object().into_iter().flatten() {
        keys(part, &format!("{path}.{key}"), all);
    }
    if schema["items"].is_object() {
        keys(&schema["items"], &format!("{path}[]"), all);
    }
}

/// The keys without a description, of this part and of those in it.
fn undescribed(part: &Value) -> Vec<String> {
    let is_told = |key: &Value| {
        let meant = resolved(key);
        !key["description"].is_null()
            || !meant["description"].is_null()
            || meant["properties"].is_object()
    };
    let own = part["properties"].as_object().into_iter().flatten();
    let own = own.filter(|(_, key)| !is_told(key));
    let own = own.map(|(key, schema)| format!("{key}: {schema}"));
    let inside: Vec<&Value> = match part {
        Value::Object(parts) => parts.values().collect(),
        Value::Array(parts) => parts.iter().collect(),
        _ => Vec::new(),
    };
    own.chain(inside.into_iter().flat_map(undescribed))
        .collect()
}

#[test]
fn every_key_has_a_description() {
    for part in ["properties", "$defs"] {
        let part = json!({"part": {"properties": SCHEMA[part]}});
        assert_eq!(undescribed(&part), Vec::<String>::new());
    }
}

#[test]
fn v1_loses_no_key_and_changes_no_type() {
    let mut all = BTreeMap::new();
    keys(&SCHEMA, "", &mut all);
    let now = all.iter().fold(String::new(), |mut text, (path, kind)| {
        let _ = writeln!(text, "{path} {kind}");
        text
    });
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/schema-v1.txt");
    let promised = fs::read_to_string(&file).unwrap_or_default();
    for line in promised.lines() {
        assert!(
            now.lines().any(|one| one == line),
            "{line} is promised, and missing"
        );
    }
    if env::var_os("NETFIX_BLESS").is_some() {
        fs::write(&file, &now).unwrap();
    }
    assert_eq!(
        fs::read_to_string(&file).unwrap_or_default(),
        now,
        "a new key: NETFIX_BLESS=1 adds it"
    );
}
