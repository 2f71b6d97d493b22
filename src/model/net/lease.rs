//! Addresses for a time: what is left of a lease when its record is used.

use crate::model::Address;
use crate::model::net::address::Maker;

impl Address {
    /// Whether it ends at a time unless a client renews it.
    pub(crate) fn is_leased(&self) -> bool {
        self.maker == Maker::Admin && self.valid_lft.is_some()
    }

    /// The address as it is to be added, `age` seconds after it was recorded: of each lifetime at least half. A client renews a
    /// lease when half of it is over, so the kernel never has less while the client runs. If the client is gone, the kernel removes
    /// the address after that half.
    pub(crate) fn aged(mut self, age: u32) -> Self {
        let elapsed = self.lft_elapsed.take().unwrap_or_default();
        let left = |lifetime: u32| {
            let half = lifetime.saturating_add(elapsed).div_ceil(2);
            lifetime.saturating_sub(age).max(half)
        };
        // The kernel takes no valid lifetime of 0. An address whose preferred lifetime was over stays deprecated.
        self.valid_lft = self.valid_lft.map(|valid| left(valid).max(1));
        self.preferred_lft = self.preferred_lft.map(|preferred| match preferred {
            0 => 0,
            preferred => left(preferred),
        });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lifetimes of a lease some `age` after the snapshot.
    fn left(valid: u32, preferred: u32, elapsed: Option<u32>, age: u32) -> (u32, u32) {
        let local = "10.3.1.1".parse().unwrap();
        let address = Address {
            valid_lft: Some(valid),
            preferred_lft: Some(preferred),
            lft_elapsed: elapsed,
            ..Address::plain("eth0".parse().unwrap(), local, 16)
        };
        let aged = address.aged(age);
        assert_eq!(aged.lft_elapsed, None);
        (aged.valid_lft.unwrap(), aged.preferred_lft.unwrap())
    }

    #[test]
    fn a_lease_is_counted_down_to_half_of_the_whole_lease() {
        assert_eq!(left(3600, 1800, None, 600), (3000, 1200));
        assert_eq!(left(3600, 1800, None, 1800), (1800, 900));
        assert_eq!(left(3600, 1800, None, 86_400), (1800, 900));
        assert_eq!(left(2400, 600, Some(1200), 60), (2340, 900));
        assert_eq!(left(2400, 600, Some(1200), 3600), (1800, 900));
        assert_eq!(left(1, 1, Some(2), u32::MAX), (2, 2));
        let most = u32::MAX - 1;
        assert_eq!(left(most, most, Some(9), u32::MAX).0, u32::MAX.div_ceil(2));
    }

    #[test]
    fn what_was_over_at_the_snapshot_is_valid_for_a_moment_and_stays_deprecated() {
        assert_eq!(left(0, 0, None, 9), (1, 0));
        assert_eq!(left(100, 0, Some(100), 9), (100, 0));
    }

    #[test]
    fn an_address_for_ever_has_no_lease_and_may_be_deprecated_in_time() {
        let address = Address {
            preferred_lft: Some(1000),
            ..Address::plain("eth0".parse().unwrap(), "fd00::1".parse().unwrap(), 64)
        };
        assert!(!address.is_leased());
        let aged = address.aged(100);
        assert_eq!((aged.valid_lft, aged.preferred_lft), (None, Some(900)));
    }
}
