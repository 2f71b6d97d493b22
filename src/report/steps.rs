//! Steps, taken or planned: the host's, then each pod's.

use super::pods::{sorted, table};
use super::problems::FEW;
use super::style::Style;
use super::text::{escape, join, lines};
use super::view::{Document, PodView};

/// Every step of the host and of all pods.
pub(super) fn all(document: &Document) -> String {
    of_host(document) + &join(sorted(&document.pods).into_iter().map(of_pod), "")
}

/// What `plan` and `diff` print: the steps of a few pods, one line for each of many.
pub(super) fn plan(document: &Document, style: Style) -> String {
    let pods = document.pods.iter().filter(|pod| !pod.steps.is_empty());
    let is_short = style.is_verbose() || pods.count() <= FEW;
    match (style.lists_all(), is_short) {
        (true, true) => table(document, style) + &all(document),
        (true, false) => table(document, style) + &of_host(document),
        (false, true) => all(document),
        (false, false) => of_host(document) + &table(document, style),
    }
}

fn of_host(document: &Document) -> String {
    list("host", &document.node.steps)
}

fn of_pod(pod: &PodView) -> String {
    let title = pod.info.title();
    let head = if title == pod.info.id.as_str() {
        format!("pod {title}")
    } else {
        format!("pod {} ({})", escape(&title), pod.info.id)
    };
    list(&head, &pod.steps)
}

fn list(head: &str, steps: &[String]) -> String {
    if steps.is_empty() {
        return String::new();
    }
    let steps = steps.iter().map(|step| format!("  {}", escape(step)));
    format!("{head}:\n{}", lines(steps))
}
