//! The JSON Schema of netfix's documents, read more strictly than users do: a key that it does not have is refused too.

#![allow(
    clippy::expect_used,
    reason = "a test that cannot continue reports why and stops"
)]

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::Value;

/// The schema as netfix prints it.
pub static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../docs/reference/schema.json")).expect("JSON")
});

static STRICT: LazyLock<Validator> = LazyLock::new(|| {
    let mut schema = SCHEMA.clone();
    close(&mut schema);
    let options = jsonschema::options().should_validate_formats(true);
    options.build(&schema).expect("a JSON Schema")
});

/// No object of the schema may have keys that are not listed. The conditions of `dependentSchemas` list one key of many.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.contains_key("properties") {
                map.entry("additionalProperties").or_insert(false.into());
            }
            let parts = map.iter_mut().filter(|(key, _)| *key != "dependentSchemas");
            parts.for_each(|(_, part)| close(part));
        }
        Value::Array(parts) => parts.iter_mut().for_each(close),
        _ => {}
    }
}

/// What is wrong with a document, one line each.
pub fn faults(document: &Value) -> Vec<String> {
    let errors = STRICT.iter_errors(document);
    errors
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect()
}
