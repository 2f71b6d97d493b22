//! What a window would do, and to which pods.

use std::io::{self, Write};

use super::pods::sorted;
use super::text::{count, escape, list_or_dash};
use super::view::PodView;

/// So many pods are listed; a screen holds no more.
const MOST: usize = 20;

/// The course, one line a phase, and the pods that may lose their network.
///
/// # Errors
/// When writing fails.
pub(crate) fn prospect(course: &[String], pods: &[PodView], out: &mut dyn Write) -> io::Result<()> {
    course.iter().try_for_each(|line| writeln!(out, "{line}"))?;
    if pods.is_empty() {
        return writeln!(out, "\nNo pod has an interface on this host's links.");
    }
    let titles = sorted(pods)
        .into_iter()
        .map(|pod| (escape(&pod.info.title()), pod));
    let titles: Vec<(String, &PodView)> = titles.collect();
    let width = titles
        .iter()
        .map(|(title, _)| title.chars().count())
        .max()
        .unwrap_or_default();
    writeln!(
        out,
        "\n{} may lose the network while COMMAND runs:",
        count(pods.len(), "pod")
    )?;
    for (title, pod) in titles.iter().take(MOST) {
        let addresses = pod.interfaces.iter().flat_map(|i| &i.addresses);
        let addresses = list_or_dash(&addresses.collect::<Vec<_>>());
        writeln!(out, "  {title:<width$}  {}", escape(&addresses))?;
    }
    match titles.len().saturating_sub(MOST) {
        0 => Ok(()),
        more => writeln!(out, "  and {more} more"),
    }
}
