//! The integer settings of a link in one folder of `/proc/sys/net`.
//!
//! Most of what netfix stores and compares, and nearly the same in every pod: equal ones share their memory.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::fmt;
use std::slice;
use std::sync::Arc;

use serde::de::{DeserializeSeed, Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::model::net::link::sysctl::SysctlKey;
use crate::model::recent::Recent;

/// A setting with its value.
type Setting = (SysctlKey, i64);

/// One folder's integer settings by key, in the units of their files in `/proc/sys`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Settings(Arc<Vec<Setting>>);

thread_local! {
    /// The settings that this thread made last.
    static RECENT: RefCell<Recent<Settings>> = const { RefCell::new(Recent::new()) };
}

impl Settings {
    /// No settings.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All, in ascending order of their keys.
    pub fn iter(&self) -> slice::Iter<'_, Setting> {
        self.0.iter()
    }

    /// The value of a setting.
    #[must_use]
    pub fn get(&self, key: &SysctlKey) -> Option<&i64> {
        let at = self.find(key).ok()?;
        Some(&self.0[at].1)
    }

    /// The value of a setting, to change it.
    pub fn get_mut(&mut self, key: &SysctlKey) -> Option<&mut i64> {
        let at = self.find(key).ok()?;
        Some(&mut Arc::make_mut(&mut self.0)[at].1)
    }

    /// Whether there is this setting.
    #[must_use]
    pub fn contains_key(&self, key: &SysctlKey) -> bool {
        self.find(key).is_ok()
    }

    /// Adds or replaces a setting.
    pub fn insert(&mut self, key: SysctlKey, value: i64) {
        let entries = Arc::make_mut(&mut self.0);
        match entries.binary_search_by_key(&key, |(key, _)| *key) {
            Ok(at) => entries[at].1 = value,
            Err(at) => entries.insert(at, (key, value)),
        }
    }

    /// Removes a setting; returns its value.
    pub fn remove(&mut self, key: &SysctlKey) -> Option<i64> {
        let at = self.find(key).ok()?;
        Some(Arc::make_mut(&mut self.0).remove(at).1)
    }

    /// The settings that `now` has with another value: key, the value here, and the one there.
    pub(crate) fn differing<'a>(
        &'a self,
        now: &'a Self,
    ) -> impl Iterator<Item = (SysctlKey, i64, i64)> + 'a {
        let mut rest = now.0.as_slice();
        self.iter().filter_map(move |(key, value)| {
            // Both are sorted, and mostly of the same keys.
            while let Some(((next, was), others)) = rest.split_first() {
                match next.cmp(key) {
                    Ordering::Less => rest = others,
                    Ordering::Equal => return (was != value).then_some((*key, *value, *was)),
                    Ordering::Greater => break,
                }
            }
            None
        })
    }

    fn find(&self, key: &SysctlKey) -> Result<usize, usize> {
        self.0.binary_search_by_key(key, |(key, _)| *key)
    }

    /// Entries in ascending order of their keys, in the memory of equal ones if there are any.
    fn shared(entries: Vec<Setting>) -> Self {
        RECENT.with_borrow_mut(|recent| {
            if let Some(equal) = recent.find(|one| *one.0 == entries) {
                return equal.clone();
            }
            let settings = Self(Arc::new(entries));
            recent.add(settings.clone());
            settings
        })
    }

    /// The settings that this thread made last among those that begin with `key`.
    fn recent(key: SysctlKey) -> Self {
        let begins = |one: &Self| one.iter().next().is_some_and(|first| first.0 == key);
        RECENT.with_borrow_mut(|recent| recent.find(begins).cloned().unwrap_or_default())
    }
}

impl FromIterator<Setting> for Settings {
    fn from_iter<I: IntoIterator<Item = Setting>>(entries: I) -> Self {
        let mut entries: Vec<Setting> = entries.into_iter().collect();
        if !entries.is_sorted_by(|(a, _), (b, _)| a < b) {
            // Of two values the later one counts.
            entries.reverse();
            entries.sort_by_key(|(key, _)| *key);
            entries.dedup_by_key(|(key, _)| *key);
        }
        Self::shared(entries)
    }
}

impl<const N: usize> From<[Setting; N]> for Settings {
    fn from(entries: [Setting; N]) -> Self {
        entries.into_iter().collect()
    }
}

impl Extend<Setting> for Settings {
    fn extend<I: IntoIterator<Item = Setting>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl<'a> IntoIterator for &'a Settings {
    type Item = &'a Setting;
    type IntoIter = slice::Iter<'a, Setting>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Serialize for Settings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(key, value)| (key, value)))
    }
}

impl<'de> Deserialize<'de> for Settings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(SettingsVisitor)
    }
}

struct SettingsVisitor;

impl<'de> Visitor<'de> for SettingsVisitor {
    type Value = Settings;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of settings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Settings, A::Error> {
        let Some(first) = map.next_key()? else {
            return Ok(Settings::default());
        };
        let similar = Settings::recent(first);
        let mut expected = similar.iter().skip(1).map(|(key, _)| *key);
        let mut entries = Vec::with_capacity(similar.0.len());
        entries.push((first, map.next_value()?));
        while let Some(key) = map.next_key_seed(Expected(expected.next()))? {
            entries.push((key, map.next_value()?));
        }
        Ok(entries.into_iter().collect())
    }
}

/// A key that is probably this one.
struct Expected(Option<SysctlKey>);

impl<'de> DeserializeSeed<'de> for Expected {
    type Value = SysctlKey;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<SysctlKey, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Expected {
    type Value = SysctlKey;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a setting")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<SysctlKey, E> {
        match self.0 {
            Some(key) if key.as_str() == text => Ok(key),
            _ => text.try_into().map_err(E::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::model::net::link::settings::*;

    fn key(name: &str) -> SysctlKey {
        name.try_into().unwrap()
    }

    #[test]
    fn settings_are_sorted_and_the_last_value_counts() {
        let settings: Settings = [(key("b"), 1), (key("a"), 2), (key("b"), 3)]
            .into_iter()
            .collect();
        let all: Vec<_> = settings.iter().copied().collect();
        assert_eq!(all, [(key("a"), 2), (key("b"), 3)]);
        assert_eq!(settings.get(&key("b")), Some(&3));
        assert_eq!(settings.get(&key("c")), None);
    }

    #[test]
    fn settings_differ_where_both_have_them_with_other_values() {
        let then = Settings::from([(key("a"), 1), (key("c"), 2), (key("d"), 3), (key("f"), 4)]);
        let now = Settings::from([(key("b"), 9), (key("c"), 8), (key("d"), 3), (key("f"), 7)]);
        let differing: Vec<_> = then.differing(&now).collect();
        assert_eq!(differing, [(key("c"), 2, 8), (key("f"), 4, 7)]);
        assert_eq!(then.differing(&then.clone()).next(), None);
        assert_eq!(then.differing(&Settings::new()).next(), None);
    }

    #[test]
    fn json_is_a_map_in_any_order() {
        for text in [
            r#"{"a":2,"b":3}"#,
            r#"{"b":3,"a":2}"#,
            r#"{"b":1,"a":2,"b":3}"#,
        ] {
            let settings: Settings = serde_json::from_str(text).unwrap();
            let written = serde_json::to_string(&settings).unwrap();
            assert_eq!(written, r#"{"a":2,"b":3}"#, "{text}");
        }
        for text in [r#"{"../a":2}"#, r#"{"a":2,"../b":3}"#, r#"{"a":"2"}"#, "[]"] {
            assert!(serde_json::from_str::<Settings>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn equal_settings_share_their_memory_until_one_is_changed() {
        let text = r#"{"a":2,"b":3}"#;
        let one: Settings = serde_json::from_str(text).unwrap();
        let mut other: Settings = serde_json::from_str(text).unwrap();
        assert!(Arc::ptr_eq(&one.0, &other.0));
        other.insert(key("c"), 4);
        assert_eq!(other.remove(&key("a")), Some(2));
        assert_eq!(one.get(&key("a")), Some(&2));
        assert_eq!(one.get(&key("c")), None);
        assert_ne!(one, other);
    }
}
