//! Steps, taken or planned: the host's, then each pod's.

use std::io::{self, Write};

use super::pods::{sorted, table};
use super::problems::FEW;
use super::style::Style;
use super::text::escape;
use super::view::{Document, PodView};

/// Every step of the host and of all pods.
pub(super) fn all(document: &Document, out: &mut dyn Write) -> io::Result<()> {
    of_host(document, out)?;
    sorted(&document.pods)
        .into_iter()
        .try_for_each(|pod| of_pod(pod, out))
}

/// What `plan` and `diff` print: the steps of a few pods, one line for each of many.
pub(super) fn plan(document: &Document, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let pods = document.pods.iter().filter(|pod| !pod.steps.is_empty());
    if style.lists_all() {
        table(document, style, out)?;
    }
    if style.is_verbose() || pods.count() <= FEW {
        return all(document, out);
    }
    of_host(document, out)?;
    if style.lists_all() {
        return Ok(());
    }
    table(document, style, out)
}

fn of_host(document: &Document, out: &mut dyn Write) -> io::Result<()> {
    list("host", &document.node.steps, out)
}

fn of_pod(pod: &PodView, out: &mut dyn Write) -> io::Result<()> {
    let title = pod.info.title();
    let head = if title == pod.info.id.as_str() {
        format!("pod {title}")
    } else {
        format!("pod {} ({})", escape(&title), pod.info.id)
    };
    list(&head, &pod.steps, out)
}

fn list(head: &str, steps: &[String], out: &mut dyn Write) -> io::Result<()> {
    if steps.is_empty() {
        return Ok(());
    }
    writeln!(out, "{head}:")?;
    steps
        .iter()
        .try_for_each(|step| writeln!(out, "  {}", escape(step)))
}
