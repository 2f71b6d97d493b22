//! Steps, taken or planned: the host's, then each pod's.

use super::pods::{sorted, table};
use super::problems::FEW;
use super::style::Style;
use super::text::{bounded, escape, join, lines};
use super::view::{Document, PodView};

/// The steps of the host and of all pods: with `-v` every one.
pub(super) fn all(document: &Document, style: Style) -> String {
    let pods = sorted(&document.pods).into_iter();
    of_host(document, style) + &join(pods.map(|pod| of_pod(pod, style)), "")
}

/// What `plan` and `diff` print: the steps of a few pods, one line for each of many.
pub(super) fn plan(document: &Document, style: Style) -> String {
    let pods = document.pods.iter().filter(|pod| !pod.steps.is_empty());
    let is_short = style.is_verbose() || pods.count() <= FEW;
    match (style.lists_all(), is_short) {
        (true, true) => table(document, style) + &all(document, style),
        (true, false) => table(document, style) + &of_host(document, style),
        (false, true) => all(document, style),
        (false, false) => of_host(document, style) + &table(document, style),
    }
}

fn of_host(document: &Document, style: Style) -> String {
    list("host", &document.node.steps, style)
}

fn of_pod(pod: &PodView, style: Style) -> String {
    let title = pod.info.title();
    let head = if title == pod.info.id.as_str() {
        format!("pod {title}")
    } else {
        format!("pod {} ({})", escape(&title), pod.info.id)
    };
    list(&head, &pod.steps, style)
}

fn list(head: &str, steps: &[String], style: Style) -> String {
    if steps.is_empty() {
        return String::new();
    }
    let steps = steps.iter().map(|step| escape(step));
    let steps = if style.is_verbose() {
        steps.collect()
    } else {
        bounded(steps)
    };
    let steps = steps.iter().map(|step| format!("  {step}"));
    format!("{head}:\n{}", lines(steps))
}
