//! The JSON Schema of the documents, which docs/reference/schema.json has.

use serde_json::{Value, json};

use crate::report::document::Verb;

/// Of every command's document.
const SCHEMA: &str = include_str!("../../../docs/reference/schema.json");

/// The schema as text: of every document, or of this command's.
///
/// # Panics
/// Never: the file is part of the program and read by its tests.
#[must_use]
#[allow(clippy::expect_used, reason = "the file is a part of the program")]
pub fn schema(command: Option<Verb>) -> String {
    let Some(command) = command else {
        return SCHEMA.to_owned();
    };
    let mut schema: Value =
        serde_json::from_str(SCHEMA).expect("docs/reference/schema.json is JSON");
    // A dry run of it is `plan`.
    let words = match command {
        Verb::Restore => vec![Verb::Restore, Verb::Plan],
        command => vec![command],
    };
    schema["properties"]["command"] = json!({ "enum": words });
    format!("{schema:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::problem::Code;

    #[test]
    fn the_schema_of_a_command_accepts_no_other_command() {
        let schema: Value = serde_json::from_str(&schema(Some(Verb::Restore))).expect("JSON");
        assert_eq!(
            schema["properties"]["command"],
            json!({ "enum": ["restore", "plan"] })
        );
        assert_eq!(
            schema["$schema"],
            "https://json-schema.org/draft/2020-12/schema"
        );
    }

    #[test]
    fn the_schema_has_the_commands() {
        let schema: Value = serde_json::from_str(SCHEMA).expect("JSON");
        assert_eq!(schema["properties"]["command"]["enum"], json!(Verb::ALL));
    }

    #[test]
    fn every_code_of_the_schema_is_a_code_that_is_explained() {
        let schema: Value = serde_json::from_str(SCHEMA).expect("JSON");
        let codes = &schema["$defs"]["problem"]["properties"]["code"]["enum"];
        let codes: Vec<String> = serde_json::from_value(codes.clone()).expect("words");
        assert!(
            codes
                .iter()
                .map(String::as_str)
                .eq(crate::report::docs::explain::codes())
        );
        for code in codes {
            serde_json::from_value::<Code>(code.into()).expect("a code");
        }
    }
}
