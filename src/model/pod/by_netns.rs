//! What is known of network namespaces, by the namespace: there may be a thousand records, and as many pods.

use std::collections::HashMap;

use crate::model::NetnsIdentity;
use crate::model::pod::identity::NetnsSign;

/// Things that are each of a namespace.
#[derive(Debug)]
pub(crate) struct ByNetns<T>(HashMap<NetnsSign, Vec<T>>);

impl<T: Clone> ByNetns<T> {
    pub(crate) fn new<'a>(things: impl IntoIterator<Item = (&'a NetnsIdentity, T)>) -> Self {
        let mut by_sign: HashMap<_, Vec<_>> = HashMap::new();
        for (identity, thing) in things {
            for sign in identity.signs() {
                by_sign.entry(sign).or_default().push(thing.clone());
            }
        }
        Self(by_sign)
    }

    /// All that may be of this namespace ([`NetnsIdentity::may_be`]), and perhaps others; in no order, some of them twice.
    pub(crate) fn candidates(&self, identity: &NetnsIdentity) -> impl Iterator<Item = &T> {
        let things = identity.signs().filter_map(|sign| self.0.get(&sign));
        things.flatten()
    }
}
