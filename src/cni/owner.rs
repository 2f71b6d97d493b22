//! Whose an entry of the cache is: by sandbox, never by a path alone where more is known.

use crate::model::PodInfo;

/// Whose an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The living pod at this place.
    Pod(usize),
    /// Nobody's any more: another pod, the one at this place, is where its path leads.
    Former(usize),
    /// Nobody's any more.
    Gone,
}

/// Finds the living pod that an entry is about. `leads_to` is the one that the entry's path leads to.
#[must_use]
pub fn owner(entry: &PodInfo, leads_to: Option<usize>, living: &[&PodInfo]) -> Owner {
    if let Some(at) = living.iter().position(|pod| entry.is_surely(pod)) {
        return Owner::Pod(at);
    }
    match leads_to {
        Some(at) if !entry.contradicts(living[at]) => Owner::Pod(at),
        Some(at) => Owner::Former(at),
        None => Owner::Gone,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "06c9b8d0a800735982222588c28e70140820acfd04a120264b87a20306322f55";
    const B: &str = "16c9b8d0a800735982222588c28e70140820acfd04a120264b87a20306322f55";

    fn pod(sandbox: &str, uid: &str) -> PodInfo {
        let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        PodInfo {
            id: crate::model::PodId::from_text("x"),
            namespace: None,
            name: None,
            uid: given(uid),
            sandbox: given(sandbox),
            attempt: None,
            source: String::new(),
        }
    }

    fn found(entry: &PodInfo, leads_to: Option<usize>, living: &[PodInfo]) -> Owner {
        owner(entry, leads_to, &living.iter().collect::<Vec<_>>())
    }

    #[test]
    fn the_sandbox_decides_whatever_the_path_says() {
        let living = [pod(B, ""), pod(A, "")];
        assert_eq!(found(&pod(A, "u"), Some(0), &living), Owner::Pod(1));
        assert_eq!(found(&pod(A, "u"), None, &living), Owner::Pod(1));
    }

    #[test]
    fn the_path_counts_only_where_nothing_contradicts_it() {
        assert_eq!(found(&pod(A, "u"), Some(0), &[pod("", "")]), Owner::Pod(0));
        assert_eq!(found(&pod(A, "u"), Some(0), &[pod(B, "")]), Owner::Former(0));
        assert_eq!(found(&pod(A, "u"), Some(0), &[pod("", "v")]), Owner::Former(0));
    }

    #[test]
    fn one_sandbox_of_two_uids_is_nobodys() {
        assert_eq!(found(&pod(A, "u"), None, &[pod(A, "v")]), Owner::Gone);
        assert_eq!(found(&pod(A, "u"), Some(0), &[pod(A, "v")]), Owner::Former(0));
    }

    #[test]
    fn an_entry_that_leads_nowhere_is_of_the_past() {
        assert_eq!(found(&pod(A, "u"), None, &[pod("", ""), pod(B, "")]), Owner::Gone);
    }
}
