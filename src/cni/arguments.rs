//! The runtime's arguments to the plugins, beside their configuration.

use serde_json::{Map, Value};

use crate::model::Mac;
use crate::model::text::Invalid;

/// The arguments of one call of the plugins of a network.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arguments<'a> {
    /// `CNI_ARGS`.
    pub pairs: &'a [(String, String)],
    /// Values for the capabilities that a plugin declares.
    pub capabilities: &'a Map<String, Value>,
}

impl<'a> Arguments<'a> {
    /// The value of one of `CNI_ARGS`.
    pub(super) fn pair(self, key: &str) -> Option<&'a str> {
        self.pairs
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.as_str())
    }

    /// The MAC for a plugin, from the source with the highest precedence.
    pub(super) fn mac(self, plugin: &Value) -> Result<Option<Mac>, String> {
        let declared = plugin["capabilities"]["mac"] == true;
        let from_runtime = self
            .capabilities
            .get("mac")
            .filter(|_| declared)
            .and_then(Value::as_str);
        let sources = [
            plugin["runtimeConfig"]["mac"].as_str(),
            from_runtime,
            self.pair("MAC"),
            plugin["mac"].as_str(),
        ];
        let text = sources.into_iter().flatten().find(|text| !text.is_empty());
        text.map(str::parse)
            .transpose()
            .map_err(|error: Invalid| error.to_string())
    }
}
