//! What every HTML page has: its head, and the sign of a verdict.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::report::style::Tone;

const STYLE: &str = include_str!("page.css");
/// The page loads and runs nothing, even if a text on it contains markup.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// A whole page.
pub(super) fn document(title: &str, main: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { main { (main) } }
        }
    };
    page.into_string()
}

/// A sign with the same meaning as the colour.
pub(super) fn sign(tone: Tone) -> Markup {
    let path = match tone {
        Tone::Good => "M7 12.5l3.5 3.5L17 9",
        Tone::Calm => "M12 7v5.5l3.5 2",
        Tone::Warning => "M12 6.5v7M12 16.6v.4",
        Tone::Bad => "M8 8l8 8M16 8l-8 8",
    };
    html! {
        svg.sign viewBox="0 0 24 24" width="32" height="32" aria-hidden="true" xmlns="http://www.w3.org/2000/svg" {
            circle cx="12" cy="12" r="11" {}
            path d=(path) {}
        }
    }
}

/// A part of a whole, as a bar of that length at its place. Numbers beside it say the same.
pub(super) fn bar(from: u64, to: u64, whole: u64, class: &str) -> Markup {
    let tenths = |ms: u64| u128::from(ms.min(whole)) * 1000 / u128::from(whole.max(1));
    let (left, end) = (tenths(from), tenths(to));
    let percent = |tenths: u128| format!("{}.{}%", tenths / 10, tenths % 10);
    let (left, width) = (percent(left), percent(end.saturating_sub(left)));
    html! {
        div class={ "bar " (class) } style={ "margin-left:" (left) ";width:" (width) } aria-hidden="true" {}
    }
}
