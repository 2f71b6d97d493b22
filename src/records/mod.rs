//! What is stored about pods: the records beside the running pods, why others are not used, and second sources.

mod claims;
pub(crate) mod cni_cache;
pub(crate) mod contest;
pub(crate) mod evidence;
pub(crate) mod fallback;
pub(crate) mod import;
mod late_query;
pub(crate) mod lost;
pub(crate) mod matched;
mod pair;
pub(crate) mod prepare;
pub(crate) mod rejected;
pub(crate) mod stored;
pub(crate) mod survey;
