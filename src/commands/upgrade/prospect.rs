//! What a window would do, and to whom: for a dry run, and for the one question to a person.

use std::io::{self, BufRead, IsTerminal, Write};

use super::course::words;
use crate::cli::UpgradeArgs;
use crate::commands::session::{self, Session, bare_view};
use crate::commands::{Context, Early, Outcome, window};
use crate::model::{Code, NetState, Parent, Problem, State, interfaces};
use crate::observe;
use crate::report::{self, PodView};

/// The course of the window and the pods that may lose their network; nothing is touched.
pub(super) fn dry_run(args: &UpgradeArgs, context: &Context) -> Result<Outcome, Early> {
    let prospect = look(args, context)?;
    let mut node = prospect.node;
    node.steps = course(args, prospect.unit.as_deref(), prospect.pods.len());
    Ok(Outcome { node, pods: prospect.pods, problems: prospect.problems, ..Outcome::default() })
}

struct Prospect {
    node: report::NodeView,
    unit: Option<String>,
    /// Those that stand on the host's links.
    pods: Vec<PodView>,
    problems: Vec<Problem>,
}

fn look(args: &UpgradeArgs, context: &Context) -> Result<Prospect, Early> {
    let refuse = |problem| Box::new(Outcome::refused(problem));
    let selection = session::selection(&args.selectors)?;
    let bus = window::systemd().map_err(refuse)?;
    let (unit, note) = window::find(bus.as_ref(), args.hold.unit.as_deref()).map_err(refuse)?;
    let mut session = Session::open(&selection)?;
    session.ask(&args.runtimes.config(), &selection)?;
    session.pods.retain(|pod| selection.wants_pod(&pod.info));
    let mut problems: Vec<Problem> = std::mem::take(&mut session.problems).into_iter().chain(note).collect();
    let stored = context.store.open_window().map_err(|error| refuse(error.problem()))?;
    problems.extend(stored.map(|open| window::still_open(&open).demoted()));
    let states = observe::observe_pods(&mut session.pods, &session.host);
    let mut pods = Vec::new();
    for (pod, state) in session.pods.iter().zip(states) {
        match state {
            Ok(state) if stands_on_host(&state) => {
                let mut view = bare_view(&pod.info, &pod.netns.path, State::Unknown);
                view.interfaces = interfaces(&state);
                pods.push(view);
            }
            Ok(_) => {}
            Err(error) => {
                let problem =
                    Problem::error(Code::Unreadable, pod.netns.path.display().to_string(), error.to_string());
                problems.push(problem.of(&pod.info.id));
            }
        }
    }
    pods.sort_by(|a, b| a.info.id.cmp(&b.info.id));
    Ok(Prospect { node: session.node_view(None), unit, pods, problems })
}

fn stands_on_host(state: &NetState) -> bool {
    state.links.iter().any(|link| matches!(link.parent, Some(Parent::Host(_))))
}

/// The phases, one line each.
fn course(args: &UpgradeArgs, unit: Option<&str>, pods: usize) -> Vec<String> {
    let time = |duration| humantime::format_duration(duration).to_string();
    let (pause, resume) = match unit {
        Some(unit) => (
            format!(
                "stop and mask {unit}; systemd starts it again after {} whatever happens",
                time(args.hold.deadline)
            ),
            format!("unmask and start {unit}"),
        ),
        None => ("nothing: no kubelet runs here".to_owned(), "nothing".to_owned()),
    };
    let hold = if args.keep_paused { "; keep kubelet paused while a pod is not restored" } else { "" };
    let lines = [
        (
            "check",
            "could every pod be restored? what could not ends this before anything is changed".to_owned(),
        ),
        ("snapshot", "write down the host and every pod, keep it in memory too".to_owned()),
        ("pause", pause),
        ("command", words(&args.command)),
        (
            "restore",
            format!("wait up to {} for the NIC, then restore up to {pods} pods{hold}", time(args.wait)),
        ),
        ("verify", format!("ask every gateway, for up to {}", time(args.timeout))),
        ("resume", resume),
        ("proof", format!("watch for {} that no pod is rebuilt", time(args.settle))),
    ];
    lines.iter().enumerate().map(|(at, (name, what))| format!("{}. {name:<9} {what}", at + 1)).collect()
}

/// Asks once, with the list of what may lose its network.
pub(super) fn confirm(args: &UpgradeArgs, context: &Context) -> Result<(), Early> {
    if args.yes {
        return Ok(());
    }
    let no =
        |message: &str| Box::new(Outcome::refused(Problem::error(Code::Interrupted, "upgrade", message)));
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(no("nobody can be asked here, for this is no terminal: --yes goes on without asking"));
    }
    let prospect = look(args, context)?;
    if ask(args, &prospect).unwrap_or(false) {
        Ok(())
    } else {
        Err(no("nobody said yes; nothing was changed"))
    }
}

fn ask(args: &UpgradeArgs, prospect: &Prospect) -> io::Result<bool> {
    let mut talk = io::stderr().lock();
    for problem in &prospect.problems {
        writeln!(talk, "{}: {problem}", problem.severity)?;
    }
    let course = course(args, prospect.unit.as_deref(), prospect.pods.len());
    report::prospect(&course, &prospect.pods, &mut talk)?;
    write!(talk, "\nGo on? [yes/no] ")?;
    talk.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "yes" | "y"))
}
