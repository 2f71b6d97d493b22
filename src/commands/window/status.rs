//! `netfix status`: the state of snapshots, runtimes, lock and window on one screen; changes nothing.

use std::io::{self, Write};

use crate::cli::Runtimes;
use crate::commands::window::pause::window;
use crate::context::{ConfigFile, Context};
use crate::model::problem::WindowCause;
use crate::model::{NodeState, Problem};
use crate::records::stored::{age, last_success, shown};
use crate::refusal::Refusal;
use crate::report::{
    ConfigView, Document, Exit, Extra, HoldView, NodeView, ReportView, RuntimeView, SettingView,
    Standing, StatusView, UnreadView, WindowView,
};
use crate::window::observed::lost_in_time;
use crate::window::status::{self, Followed};

pub(crate) fn run(runtimes: &Runtimes, context: &mut Context) -> Result<Document, Refusal> {
    let found = status::run(&runtimes.config(), context)?;
    let runtimes = found.runtimes.into_iter().map(|queried| RuntimeView {
        endpoint: queried.endpoint.display().to_string(),
        version: queried.version,
        pods: queried.sandboxes,
    });
    let recorded = found.recorded.as_ref();
    let completed = recorded.and_then(NodeState::completed);
    let status = StatusView {
        state_dir: context.store.folder().display().to_string(),
        config: config(&context.config),
        checkpoints: found.checkpoints,
        damaged: found.damaged,
        generations: found.generations,
        last_success_age: completed.as_ref().map(|at| age(at).into()),
        last_success: last_success(recorded),
        running: found.running,
        covered: found.covered,
        network: found.network,
        nics: found.nics,
        private_namespaces: found.private,
        runtimes: runtimes.collect(),
        lock: context.store.holder(),
        window: found.window.as_ref().map(HoldView::new),
        guard: found.guard,
        last: found
            .last
            .map(|window| WindowView::new(ReportView::new(window, Standing::Closed))),
        unread: found.unread.into_iter().map(UnreadView::from).collect(),
    };
    Ok(Document {
        exit: Exit::Failed.if_errors(&found.problems) as u8,
        node: NodeView::recorded(
            &found.node,
            found.recorded.map(|state| shown(&state.stamp())),
        ),
        problems: found.problems,
        extra: Some(Extra::Status(Box::new(status))),
        ..Document::default()
    })
}

/// What the configuration file sets.
fn config(file: &ConfigFile) -> Option<ConfigView> {
    let settings = file.settings.iter().map(|setting| SettingView {
        command: setting.command.clone(),
        option: setting.option.clone(),
        values: setting.values.clone(),
    });
    Some(ConfigView {
        file: file.path.as_ref()?.display().to_string(),
        settings: settings.collect(),
        error: file.error.clone(),
    })
}

/// `netfix status --follow`: the log of the open window, from any login.
pub(crate) fn follow(context: &mut Context) -> Result<Document, Refusal> {
    // With -o json stdout has the document.
    let to: &mut dyn Write = if context.json {
        &mut io::stderr()
    } else {
        &mut io::stdout()
    };
    let mut document = Document::default();
    let store = &context.store;
    match status::follow(store, to, &|| lost_in_time(store))? {
        Followed::NoWindow => document.problems = vec![WindowCause::NoneOpen.info("window")],
        Followed::ReaderGone => {}
        Followed::Left(status) => {
            // How the window ends is not known.
            document.exit = Exit::Partly as u8;
            let finding = status.finding(0);
            document.problems.extend(finding.map(Problem::into_error));
            document.extra = window(Some(*status));
        }
        Followed::Closed(status) => {
            document.exit = status.window.exit.unwrap_or(Exit::Failed as u8);
            document.extra = window(Some(*status));
        }
    }
    Ok(document)
}
