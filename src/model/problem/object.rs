//! What a problem is about.

use std::borrow::Cow;
use std::fmt;
use std::path;

use crate::model::net::link::nic::{NicGroup, NicKey};
use crate::model::text::join;
use crate::model::{Address, Bytes, Claim, IfName, PodId, Route};

/// What a problem is about. JSON documents, records and screens have it as text; a caller that decides by it matches on it.
#[derive(Debug, Clone)]
pub enum Object {
    /// A network interface.
    Link(IfName),
    /// All settings of a network device, those of one group, or one.
    Nic {
        /// The device.
        dev: IfName,
        /// What one request sets.
        group: Option<NicGroup>,
        /// The setting.
        key: Option<NicKey>,
    },
    /// A path that leads to a namespace, or to a file.
    Path(Bytes),
    /// Anything else by its name or description, and all that was read from a record. Empty: the command as a whole.
    Text(String),
}

impl Object {
    /// The settings of a device.
    pub(crate) fn nic(dev: &IfName, group: Option<NicGroup>, key: Option<&NicKey>) -> Self {
        Self::Nic {
            dev: dev.clone(),
            group,
            key: key.cloned(),
        }
    }

    /// The interface, if it is one.
    #[must_use]
    pub fn link(&self) -> Option<&IfName> {
        match self {
            Self::Link(name) => Some(name),
            Self::Nic { .. } | Self::Path(_) | Self::Text(_) => None,
        }
    }

    /// The device that has this setting, or that it is.
    pub(crate) fn device(&self) -> Option<&IfName> {
        match self {
            Self::Link(dev) | Self::Nic { dev, .. } => Some(dev),
            Self::Path(_) | Self::Text(_) => None,
        }
    }

    /// The group of settings, if it is one or of one.
    pub(crate) fn group(&self) -> Option<NicGroup> {
        match self {
            Self::Nic { group, .. } => *group,
            Self::Link(_) | Self::Path(_) | Self::Text(_) => None,
        }
    }

    /// Whether there is nothing to show.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text().is_empty()
    }

    /// The object as it is shown.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Link(name) => Cow::Owned(name.to_string()),
            Self::Nic { dev, group, key } => {
                let group = group.map(NicGroup::as_str);
                let key = key.as_ref().map(NicKey::as_str);
                let device = format!("nic {dev}");
                let words = [device.as_str()].into_iter().chain(group).chain(key);
                Cow::Owned(join(words, " "))
            }
            Self::Path(path) => Cow::Owned(path.to_string()),
            Self::Text(text) => Cow::Borrowed(text),
        }
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// By the text: an object that was read from a record equals the one that was written.
impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Object {}

impl<T: AsRef<str>> PartialEq<T> for Object {
    fn eq(&self, other: &T) -> bool {
        self.text() == other.as_ref()
    }
}

impl From<IfName> for Object {
    fn from(name: IfName) -> Self {
        Self::Link(name)
    }
}

impl From<&IfName> for Object {
    fn from(name: &IfName) -> Self {
        Self::Link(name.clone())
    }
}

impl From<Bytes> for Object {
    fn from(path: Bytes) -> Self {
        Self::Path(path)
    }
}

impl From<&Bytes> for Object {
    fn from(path: &Bytes) -> Self {
        Self::Path(path.clone())
    }
}

impl From<String> for Object {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// Objects that are only shown.
macro_rules! texts {
    ($($type:ty),*) => {
        $(impl From<$type> for Object {
            fn from(object: $type) -> Self {
                Self::Text(object.to_string())
            }
        })*
    };
}

texts!(
    &str,
    &String,
    &PodId,
    &Claim,
    &Address,
    &Route,
    path::Display<'_>
);

#[cfg(test)]
mod tests {
    use crate::model::problem::PlanCause;
    use crate::model::{IfName, Problem};

    #[test]
    fn a_link_is_text_in_a_record_and_equals_what_is_read_from_it() {
        let name: IfName = "eth0".parse().unwrap();
        let problem = PlanCause::Surplus.info(&name);
        let written = serde_json::to_value(&problem).unwrap();
        assert_eq!(written["object"], "eth0");
        let read: Problem = serde_json::from_value(written).unwrap();
        assert_eq!(problem.object.link(), Some(&name));
        assert_eq!(read.object.link(), None);
        assert_eq!(read.object, problem.object);
    }
}
