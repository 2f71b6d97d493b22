//! What a window would do, and to whom.

use std::io::{self, Write};

use super::view::PodView;

/// The course, one line a phase, and the pods that may lose their network.
///
/// # Errors
/// When writing fails.
pub fn prospect(course: &[String], pods: &[PodView], out: &mut dyn Write) -> io::Result<()> {
    course.iter().try_for_each(|line| writeln!(out, "{line}"))?;
    match pods.len() {
        0 => return writeln!(out, "\nNo pod stands on this host's links."),
        1 => writeln!(out, "\n1 pod stands on this host's links and may lose its network meanwhile:")?,
        count => {
            writeln!(out, "\n{count} pods stand on this host's links and may lose their network meanwhile:")?;
        }
    }
    let titles: Vec<String> = pods.iter().map(|pod| pod.info.title()).collect();
    let width = titles.iter().map(|title| title.chars().count()).max().unwrap_or_default();
    for (pod, title) in pods.iter().zip(titles) {
        let addresses: Vec<&str> =
            pod.interfaces.iter().flat_map(|interface| &interface.addresses).map(String::as_str).collect();
        writeln!(out, "  {title:<width$}  {}", addresses.join(", "))?;
    }
    Ok(())
}
