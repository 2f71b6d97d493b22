//! The modules of the kernel that are loaded, and which use which.

use std::collections::{BTreeMap, BTreeSet};

/// Loaded modules, each with those that use it (`/proc/modules`).
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Modules(BTreeMap<String, BTreeSet<String>>);

impl Modules {
    pub(crate) fn parse(text: &str) -> Self {
        let module = |line: &str| {
            let mut words = line.split_whitespace();
            let name = words.next()?.to_owned();
            let users = words.nth(2)?.split(',');
            // `-` where there are none, and `[permanent]` for one that cannot be unloaded.
            let users = users.filter(|user| !user.is_empty() && !user.starts_with(['-', '[']));
            Some((name, users.map(str::to_owned).collect()))
        };
        Self(text.lines().filter_map(module).collect())
    }

    pub(crate) fn is_loaded(&self, module: &str) -> bool {
        self.0.contains_key(module)
    }

    /// The modules that use this one, and those that use them, each before what it uses: so they can be unloaded.
    pub(crate) fn above(&self, module: &str) -> Vec<String> {
        let mut found = Vec::new();
        self.add_above(module, &mut found);
        found
    }

    fn add_above(&self, module: &str, found: &mut Vec<String>) {
        for user in self.0.get(module).into_iter().flatten() {
            if !found.contains(user) {
                self.add_above(user, found);
                found.push(user.clone());
            }
        }
    }

    /// The modules that are gone in `now`, but for those that others needed: they come back with these.
    pub(crate) fn gone<'a>(&'a self, now: &'a Self) -> impl Iterator<Item = &'a String> {
        let gone = self.0.iter().filter(|(name, _)| !now.0.contains_key(*name));
        gone.filter(|(_, users)| users.is_empty())
            .map(|(name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_that_use_a_driver_come_before_what_they_use() {
        let text = "rpcrdma 1 0 - Live 0x0\nmlx5_vdpa 1 0 - Live 0x0\nmlx5_ib 1 1 nv_peer, Live 0x0\nnv_peer 1 0 - Live 0x0\n\
            mlx5_core 1 2 mlx5_ib,mlx5_vdpa, Live 0x0\nfixed 1 1 [permanent], Live 0x0\nmlxfw 1 1 mlx5_core, Live 0x0\n";
        let before = Modules::parse(text);
        assert_eq!(
            before.above("mlx5_core"),
            ["nv_peer", "mlx5_ib", "mlx5_vdpa"]
        );
        assert!(before.above("fixed").is_empty() && before.above("none").is_empty());
        let after = Modules::parse("mlx5_core 1 0 - Live 0x0\nfixed 1 0 - Live 0x0\n");
        let gone: Vec<_> = before.gone(&after).collect();
        assert_eq!(gone, ["mlx5_vdpa", "nv_peer", "rpcrdma"]);
    }
}
