//! Parameters of a driver's module, as far as they can be read. They have the values of its last load, or what was written since.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::checked;
use crate::model::net::link::nic::{NicKey, NicValue};
use crate::model::text::module_name;

/// The folders of all modules.
pub(in crate::kernel) const MODULES: &str = "/sys/module";
/// More parameters than any driver of a NIC has, and longer values.
const MOST: usize = 128;
const LONGEST: usize = 256;

/// The parameters of this driver's module.
pub(in crate::kernel) fn read(modules: &Path, driver: &str) -> BTreeMap<NicKey, NicValue> {
    let name = module_name(driver);
    if name.contains('/') || name.starts_with('.') {
        return BTreeMap::new();
    }
    let entries = fs::read_dir(modules.join(name).join("parameters"));
    let entries = entries.into_iter().flatten().flatten();
    let value = |entry: fs::DirEntry| {
        let name = NicKey::try_from(entry.file_name().into_string().ok()?).ok()?;
        let text = checked::text(entry.path()).ok()?;
        let text = text.trim_end_matches('\n');
        let is_plain =
            text.len() <= LONGEST && text.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
        is_plain.then(|| (name, NicValue::Text(text.to_owned())))
    };
    entries.filter_map(value).take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_has_the_parameters_that_can_be_read() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("some_nic/parameters");
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in [
            ("debug", "-1\n"),
            ("flags", "Y,N\n"),
            ("odd", "a\nb\n"),
            ("empty", "\n"),
        ] {
            fs::write(folder.join(name), text).unwrap();
        }
        fs::create_dir(folder.join("folder")).unwrap();
        let found = read(root.path(), "some-nic");
        let found: Vec<_> = found
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        assert_eq!(found, ["debug=-1", "empty=", "flags=Y,N"]);
        for driver in ["none", "..", "../some_nic"] {
            assert!(read(root.path(), driver).is_empty(), "{driver}");
        }
    }
}
