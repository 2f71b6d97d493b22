//! The few values that were used last.

/// Values, the last used one first.
#[derive(Debug)]
pub(crate) struct Recent<T>(Vec<T>);

impl<T> Recent<T> {
    /// None yet.
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// The first one that is it, which is the last used one from now on.
    pub(crate) fn find(&mut self, is_it: impl FnMut(&T) -> bool) -> Option<&T> {
        let at = self.0.iter().position(is_it)?;
        self.0[..=at].rotate_right(1);
        self.0.first()
    }

    /// Adds one, in the place of the one that was not used for longest if there are too many.
    pub(crate) fn add(&mut self, one: T) {
        /// Four folders of settings of the links that most pods have; two folders of new and of settled ones.
        const MOST: usize = 8;
        self.0.truncate(MOST - 1);
        self.0.insert(0, one);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_values_those_that_were_used_last_are_found() {
        let mut recent = Recent::new();
        for number in 0..8 {
            recent.add(number);
        }
        assert_eq!(recent.find(|one| *one == 0), Some(&0));
        recent.add(8);
        let found: Vec<i32> = (0..9)
            .filter(|number| recent.find(|one| one == number).is_some())
            .collect();
        assert_eq!(found, [0, 2, 3, 4, 5, 6, 7, 8]);
    }
}
