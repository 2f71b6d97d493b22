//! Sample values, from which the list of all messages in docs/problems.md is generated.

use std::net::IpAddr;
use std::time::Duration;

use super::{Holder, NoNetns, StoreEffect};
use crate::model::problem::{Cause, Code};
use crate::model::window::ContainerChange;
use crate::model::{Hardware, IfName, Mac, PodId, PodInfo};

/// A value that shows what a message's field looks like.
pub trait Sample {
    /// A sample for the field of this name.
    fn sample(field: &str) -> Self;
}

impl Sample for String {
    fn sample(field: &str) -> Self {
        field.to_uppercase().replace('_', " ")
    }
}

impl<T: Sample> Sample for Option<T> {
    fn sample(field: &str) -> Self {
        Some(T::sample(field))
    }
}

impl<T: Sample> Sample for Vec<T> {
    fn sample(field: &str) -> Self {
        vec![T::sample(field)]
    }
}

impl<T: Sample> Sample for Box<T> {
    fn sample(field: &str) -> Self {
        Self::new(T::sample(field))
    }
}

impl<A: Sample, B: Sample> Sample for (A, B) {
    fn sample(field: &str) -> Self {
        (A::sample(field), B::sample(field))
    }
}

impl Sample for bool {
    fn sample(_: &str) -> Self {
        true
    }
}

impl Sample for Duration {
    fn sample(_: &str) -> Self {
        Self::from_secs(60)
    }
}

impl Sample for IpAddr {
    fn sample(_: &str) -> Self {
        Self::from([192, 0, 2, 7])
    }
}

impl Sample for Mac {
    #[expect(clippy::expect_used, reason = "a constant")]
    fn sample(_: &str) -> Self {
        Self::from_slice(&[0x52, 0x54, 0, 0, 0, 7]).expect("six bytes")
    }
}

impl Sample for PodId {
    fn sample(_: &str) -> Self {
        Self::from_text("06c9b8d0a800")
    }
}

impl Sample for IfName {
    #[expect(clippy::expect_used, reason = "a constant")]
    fn sample(_: &str) -> Self {
        "eth0".parse().expect("a valid name")
    }
}

impl Sample for Holder {
    fn sample(field: &str) -> Self {
        Self {
            pod: Some(PodId::sample(field)),
            netns: "/run/netns/NAME".to_owned(),
            link: Some(IfName::sample(field)),
        }
    }
}

impl Sample for Hardware {
    fn sample(field: &str) -> Self {
        Self {
            permanent_mac: Some(Mac::sample(field)),
            bus: Some("0000:3b:00.0".to_owned()),
            driver: Some("i40e".to_owned()),
        }
    }
}

impl Sample for StoreEffect {
    fn sample(_: &str) -> Self {
        Self::NothingReplaced
    }
}

impl Sample for Cause {
    fn sample(_: &str) -> Self {
        Self::Recorded {
            code: Code::RuntimeUnreachable,
            message: "CAUSE".to_owned(),
        }
    }
}

impl Sample for ContainerChange {
    fn sample(_: &str) -> Self {
        Self {
            name: "app".to_owned(),
            id: "3f0c1a2b4d5e".to_owned(),
            runs_again: true,
        }
    }
}

impl Sample for NoNetns {
    fn sample(_: &str) -> Self {
        Self::NotDiscovered
    }
}

impl Sample for PodInfo {
    fn sample(field: &str) -> Self {
        Self {
            id: PodId::sample(field),
            namespace: Some("shop".to_owned()),
            name: Some("web-0".to_owned()),
            uid: Some("UID".to_owned()),
            sandbox: Some("SANDBOX".to_owned()),
            attempt: None,
            source: "cri".to_owned(),
        }
    }
}

macro_rules! numbers {
    ($($number:ty),*) => { $(impl Sample for $number {
        fn sample(_: &str) -> Self {
            3
        }
    })* };
}

numbers!(i32, u16, u32, u64, usize);
