//! The sentence of every problem. One cause, one line: the fact first, then the next command.

/// Defines the sentences of one part of netfix. Fields may be named in the text as they are; the parentheses behind the
/// text have those that are shown in another form: `Variant { field } => "text {field}" (field = form(field)),`.
macro_rules! sentences {
    ($name:ident { $(
        $variant:ident $({ $($field:tt)* })? $(($inner:ident))? $(if $guard:expr)? => $text:literal
        $(($($key:ident = $value:expr),* $(,)?))?,
    )* }) => {
        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                match self {
                    $(Self::$variant $({ $($field)* })? $(($inner))? $(if $guard)? => {
                        write!(f, $text $($(, $key = $value)*)?)
                    })*
                }
            }
        }

        #[cfg(test)]
        impl crate::report::messages::Sentences for $name {
            const ALL: &[&str] = &[$($text),*];
        }
    };
}

mod drivers;
mod files;
mod guard;
mod kernel;
mod maintenance;
mod network;
pub(super) mod observed;
mod pods;
mod sockets;
mod window_log;

use std::fmt::Display;

use crate::model::PodInfo;
use crate::model::problem::Cause;
use crate::model::text::{escape, join};
use crate::report::text::bounded;

sentences! {
    Cause {
        Inventory(cause) => "{cause}",
        Store(cause) => "{cause}",
        Matching(cause) => "{cause}",
        Foreign(cause) => "{cause}",
        Plan(cause) => "{cause}",
        Conflict(cause) => "{cause}",
        Partial(cause) => "{cause}",
        Restore(cause) => "{cause}",
        Snapshot(cause) => "{cause}",
        Check(cause) => "{cause}",
        Rehearsal(cause) => "{cause}",
        Socket(cause) => "{cause}",
        Driver(cause) => "{cause}",
        Gateway(cause) => "{cause}",
        Window(cause) => "{cause}",
        Log(cause) => "{cause}",
        Guard(cause) => "{cause}",
        Detached(cause) => "{cause}",
        Record(cause) => "{cause}",
        Command(cause) => "{cause}",
        Condition(cause) => "{cause}",
        Hook(cause) => "{cause}",
        Rollback(cause) => "{cause}",
        Systemd(cause) => "{cause}",
        Kubelet(cause) => "{cause}",
        Rebuild(cause) => "{cause}",
        Usage(cause) => "{cause}",
        Fleet(cause) => "{cause}",
        Recorded { code: _, message } => "{message}",
    }
}

/// Items in one line: `a`, `a and b`, `a, b and c`.
fn and(items: impl IntoIterator<Item = impl ToString>) -> String {
    let texts = bounded(items);
    match texts.as_slice() {
        [all @ .., before, last] => [all, &[format!("{before} and {last}")]].concat().join(", "),
        few => few.concat(),
    }
}

/// The first of many items, and how many more there are.
fn few(items: &[impl Display]) -> String {
    const FEW: usize = 3;
    match items.split_at_checked(FEW) {
        Some((first, rest)) if !rest.is_empty() => {
            format!("{} and {} more", join(first, ", "), rest.len())
        }
        _ => and(items.iter().map(ToString::to_string)),
    }
}

/// A part of a sentence, after what separates it from the rest, or nothing.
fn or_nothing(separator: &str, part: Option<&impl ToString>) -> String {
    part.map_or_else(String::new, |part| {
        format!("{separator}{}", part.to_string())
    })
}

/// A running pod: its names and its identity.
fn described(info: &PodInfo) -> String {
    format!("{} ({})", info.title(), numbers(info))
}

/// What distinguishes a pod from others with its name.
fn numbers(info: &PodInfo) -> String {
    let text = |text: &Option<String>| escape(text.as_deref().unwrap_or("-"));
    format!("sandbox {}, uid {}", text(&info.sandbox), text(&info.uid))
}

/// The sentences of one part of netfix.
#[cfg(test)]
trait Sentences {
    const ALL: &[&str];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::problem::{
        CheckCause, CommandCause, ConditionCause, ConflictCause, DetachedCause, DriverCause,
        FleetCause, ForeignCause, GatewayCause, GuardCause, HookCause, InventoryCause,
        KubeletCause, LogCause, MatchingCause, PartialCause, PlanCause, RebuildCause, RecordCause,
        RehearsalCause, RestoreCause, RollbackCause, SnapshotCause, SocketCause, StoreCause,
        SystemdCause, UsageCause, WindowCause,
    };

    macro_rules! messages {
        ($($area:ident)*) => {[$(<$area as Sentences>::ALL),*]};
    }

    #[test]
    fn a_message_is_one_line_without_a_full_stop() {
        let areas = messages! {
            InventoryCause StoreCause MatchingCause ForeignCause PlanCause ConflictCause PartialCause RestoreCause
            SnapshotCause CheckCause RehearsalCause SocketCause GatewayCause WindowCause GuardCause DetachedCause RecordCause CommandCause SystemdCause KubeletCause
            LogCause RebuildCause RollbackCause UsageCause ConditionCause HookCause FleetCause DriverCause
        };
        // The last one is what another netfix wrote.
        assert_eq!(areas.len() + 1, Cause::ALL.len(), "a part is not listed");
        for message in areas.into_iter().flatten() {
            assert!(
                !message.is_empty() && !message.contains('\n'),
                "{message:?}"
            );
            assert!(!message.ends_with('.'), "{message:?}");
        }
    }
}
