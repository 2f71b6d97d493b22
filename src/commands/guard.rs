//! `netfix guard`: restores pods after a loss that no window caused.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::mem;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use crate::cli::{Cli, Command, GuardArgs};
use crate::clock;
use crate::commands::common::{Reply, prepare};
use crate::context::{ConfigFile, ConfigSetting, Context};
use crate::guard::decide::{Choice, Decided, GuardDecision};
use crate::guard::look::look;
use crate::guard::request::{GuardRequest, LookResult};
use crate::guard::watch::{LookInput, LookOutput, watch, watch_restored};
use crate::guard::watched::WatchEnd;
use crate::journal::{self, CommandEnd};
use crate::kubelet::unit::UnitToPause;
use crate::model::problem::{GuardCause, InventoryCause};
use crate::model::window::{GUARD_SCHEMA, GuardDeed, GuardHold};
use crate::model::{Exit, Problem};
use crate::refusal::Refusal;
use crate::report;
use crate::upgrade::ledger::Upgraded;
use crate::upgrade::request::{Accepts, UpgradeRequest};
use crate::window::event::{Event, RebuildCheck};
use crate::window::log_file::DEFAULT_LIMIT;

/// How long kubelet may be paused.
const DEADLINE: Duration = Duration::from_secs(600);
/// What the restore of one pod may cost before all others come first, and how long a gateway may take to answer.
const POD: Duration = Duration::from_secs(5);

pub(super) fn run(args: &GuardArgs, context: &mut Context) -> Reply {
    let code = prepare().and_then(|()| carry_out(args, context));
    Reply::Printed(code.unwrap_or_else(|refusal| {
        for problem in &refusal.problems {
            tell_problem(problem);
        }
        let end = if refusal.failed {
            Exit::Failed
        } else {
            Exit::Refused
        };
        end as u8
    }))
}

/// Looks once, or watches; returns the exit code.
fn carry_out(args: &GuardArgs, context: &mut Context) -> Result<u8, Refusal> {
    if args.step {
        let mut text = Vec::new();
        let _ = io::stdin().read_to_end(&mut text);
        let mut input: LookInput = serde_json::from_slice(&text).unwrap_or_default();
        let settings = mem::take(&mut input.config);
        let cli = Cli::with(ConfigFile {
            settings,
            ..ConfigFile::default()
        });
        let args = match cli.map(|cli| cli.command) {
            Ok(Command::Guard(args)) => args,
            _ => args.clone(),
        };
        let looked = look_once(&args, input, context)?;
        let code = exit(&looked);
        let output = LookOutput {
            exit: once_exit(&args, &looked),
            record: looked.record,
        };
        let output = serde_json::to_vec(&output).unwrap_or_default();
        let _ = io::stdout().write_all(&output);
        return Ok(code);
    }
    let folder = context.store.folder().to_owned();
    if let Some(time) = args.hold {
        return hold(time, context);
    }
    let watched = if args.once {
        let looked = look_once(args, LookInput::default(), context)?;
        let exit = once_exit(args, &looked);
        if looked.record.watch.is_none() {
            return Ok(exit);
        }
        let record = looked.record;
        watch_restored(&folder, &mut config(), LookOutput { record, exit })
    } else if folder.is_dir() {
        watch(&folder, &mut config()).map(|()| Exit::Done as u8)
    } else {
        return Err(GuardCause::NoStateDirectory.error(folder.display()).into());
    };
    watched.map_err(|error| {
        let error = error.to_string();
        Refusal::failed(GuardCause::Failed { error }.error("guard"))
    })
}

/// Keeps the guard still.
fn hold(time: Duration, context: &Context) -> Result<u8, Refusal> {
    let until = (!time.is_zero()).then(|| clock::wall_in(time));
    let hold = until.map(|until| GuardHold {
        schema: GUARD_SCHEMA,
        until,
        is_pause: false,
    });
    context.store.lock("guard")?.save_hold(hold.as_ref())?;
    say_and_log(&match hold {
        Some(GuardHold { until, .. }) => GuardDecision::Held { until, lost: 0 }.to_string(),
        None => "no longer held".to_owned(),
    });
    Ok(Exit::Done as u8)
}

/// How `--once` ends after this look: as the last restore did, or by what is left.
fn once_exit(args: &GuardArgs, looked: &LookResult) -> u8 {
    // The record of the restore has what was found in its watch. The first look ends that of a guard that is gone.
    let is_own = looked.upgraded.is_some()
        || looked.record.watch.is_some()
        || args.step && !looked.watched.is_empty();
    let last = looked.record.last.as_ref().filter(|_| is_own);
    let last = last.map(|last| last.exit).filter(|code| *code != 0);
    last.unwrap_or(looked.left as u8)
}

/// What the configuration file sets, each time anew; while the file cannot be used, what it set before.
fn config() -> impl FnMut() -> Vec<ConfigSetting> {
    let (mut settings, mut told) = (Vec::new(), String::new());
    move || {
        match Cli::config_now() {
            Ok(file) => (settings, told) = (file.settings, String::new()),
            Err(error) if error == told => {}
            Err(error) => {
                say_and_log(&format!("{error}: what the file set before stays"));
                told = error;
            }
        }
        settings.clone()
    }
}

fn exit(looked: &LookResult) -> u8 {
    let end = looked.upgraded.as_ref().map(|upgraded| upgraded.end);
    end.unwrap_or(Exit::Done) as u8
}

fn look_once(
    args: &GuardArgs,
    input: LookInput,
    context: &mut Context,
) -> Result<LookResult, Refusal> {
    let begin = Instant::now();
    let request = GuardRequest {
        upgrade: request(args)?,
        choice: Choice {
            also_deleted: args.also_deleted,
            reports_only: args.report_only,
            pause: clock::milliseconds(args.backoff),
        },
        losses: input.losses,
        logged: input.logged,
        watcher: input.watcher,
        known: input.record,
    };
    let looked = look(request, context, &mut tell)?;
    looked.problems.iter().for_each(tell_problem);
    if let Some(upgraded) = &looked.upgraded {
        tell_end(upgraded, begin.elapsed());
    }
    looked.watched.iter().for_each(tell_watched);
    // The second announcements of restored addresses.
    context.finish();
    Ok(looked)
}

/// A window like that of `netfix upgrade`, but without a COMMAND.
fn request(args: &GuardArgs) -> Result<UpgradeRequest<'static>, Refusal> {
    Ok(UpgradeRequest {
        selection: args.selectors.selection()?,
        runtimes: args.runtimes.config(),
        devices: Vec::new(),
        pause: UnitToPause::Nothing,
        deadline: DEADLINE,
        command_timeout: None,
        wait: args.wait,
        manager_grace: args.manager_grace,
        pod_budget: POD,
        conflict_probe: args.probe.mode(),
        probe_rate: args.probe.rate.probe_rate,
        nic: args.nic.nic_settings,
        index: args.nic.index.nic_index,
        timeout: POD,
        targets: Vec::new(),
        settle: args.settle,
        keep: NonZeroUsize::MIN,
        keep_paused: false,
        accepts: Accepts::Everything,
        rehearse: false,
        log_limit: DEFAULT_LIMIT,
        command: &[],
        before: None,
        after: None,
        drivers: &[],
        echo: false,
        rollback: None,
    })
}

/// Logs a decision and the deleted links, each once.
fn tell(decided: &mut Decided) {
    for (link, below) in &decided.deleted {
        let below = below.clone();
        tell_problem(&GuardCause::Deleted { below }.warning(link));
    }
    for (link, attempts) in &decided.given_up {
        let attempts = *attempts;
        tell_problem(&GuardCause::Repeats { attempts }.error(link));
    }
    let text = decided.decision.to_string();
    match &decided.decision {
        // The end of the wait is not what it is about.
        GuardDecision::Restore(_) => say_and_log(&text),
        _ if decided.record.said == text => return,
        GuardDecision::NoPod { selectors } => {
            tell_problem(&InventoryCause::NoSuchPod.error(selectors.as_str()));
        }
        _ => say_and_log(&text),
    }
    if decided.decision.is_deed() {
        decided.record.note_deed(GuardDeed {
            at: clock::wall(),
            text: text.clone(),
            left: !matches!(decided.decision, GuardDecision::Restore(_)),
        });
    }
    decided.record.said = text;
}

/// The end of a watch.
fn tell_watched(watched: &WatchEnd) {
    watched.problems.iter().for_each(tell_problem);
    let check = Event::RebuildChecked {
        check: RebuildCheck::of(&watched.window.pods),
        is_selection: false,
    };
    say_and_log(&format!("the watch is over: {check}"));
}

fn tell_problem(problem: &Problem) {
    journal::finds("guard", problem);
    say(&problem.line(None));
}

fn say_and_log(text: &str) {
    journal::decides("guard", text);
    say(text);
}

/// On stderr, unless that leads to the journal, which has it already.
fn say(text: &str) {
    if std::env::var_os("JOURNAL_STREAM").is_none() {
        report::line(&format!("netfix guard: {text}"));
    }
}

fn tell_end(upgraded: &Upgraded, took: Duration) {
    let pods = &upgraded.restored.pods;
    journal::ends(&CommandEnd {
        command: "guard",
        exit: upgraded.end as u8,
        pods: pods
            .iter()
            .map(|one| (&one.pod.info.id, (&one.pod.info, one.pod.netns.as_ref())))
            .collect::<BTreeMap<_, _>>(),
        problems: &upgraded.problems,
        changes: true,
        took,
    });
    for problem in upgraded.problems.iter().filter(|one| one.is_error()) {
        say(&problem.line(None));
    }
    if upgraded.window.is_some() {
        say(&report::unplanned(upgraded));
    }
}
