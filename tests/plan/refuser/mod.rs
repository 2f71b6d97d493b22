//! The order of what a restore sends to a NIC, for one driver after another: each refuses by its state what it is known to refuse
//! (`testdata/refuser/NAME/driver.txt`), and `end.txt` has what it refused all the same and what is left.

mod driver;
mod table;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use netfix::plan::Step;

use self::driver::{Driver, Executor, Request};
use self::table::Table;
use super::in_short;
use super::numbers::Numbers;

/// No restore needs more rounds.
const ROUNDS: usize = 8;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/refuser")
}

/// The drivers, by the names of their directories.
fn drivers() -> Vec<(String, Table)> {
    let read = |name: &str| {
        let path = folder().join(name).join("driver.txt");
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let entries = fs::read_dir(folder()).expect("the directory");
    let mut names: Vec<String> = entries
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("a name")
        })
        .collect();
    names.sort();
    let all = names.into_iter();
    all.map(|name| {
        let table = Table::parse(&read(&name), &read);
        assert!(!table.case.why.is_empty(), "{name} has no reason to exist");
        (name, table)
    })
    .collect()
}

/// Consecutive requests of one kind.
fn groups(requests: Vec<Request>) -> Vec<Vec<Request>> {
    let kind = |request: &Request| request.words().split(' ').next().map(str::to_owned);
    let mut groups: Vec<Vec<Request>> = Vec::new();
    for request in requests {
        match groups
            .last_mut()
            .filter(|last| kind(&last[0]) == kind(&request))
        {
            Some(last) => last.push(request),
            None => groups.push(vec![request]),
        }
    }
    groups
}

fn pods(table: &Table) -> Vec<Request> {
    let own = vec![Request::Macvlan; table.pods.0];
    let on_functions = vec![Request::MacvlanOnFunction; table.pods.1];
    own.into_iter().chain(on_functions).collect()
}

/// Rounds of the host's plan until nothing is left or nothing changes; what was refused goes into `told`.
fn restore_host(driver: &mut Driver<'_>, table: &Table, told: &mut String) -> Vec<Step> {
    let mut last: Option<Vec<Step>> = None;
    for _ in 0..ROUNDS {
        let (plan, _) = table.case.plan(&driver.kernel.observe(), None);
        if plan.steps.is_empty() || last.as_ref() == Some(&plan.steps) {
            return plan.steps;
        }
        let steps = plan.steps.iter().cloned().map(Request::Step);
        for group in groups(steps.collect()) {
            for (request, errno) in driver.group(&group) {
                writeln!(told, "refused {}: {errno:?}", request.words()).expect("a string");
            }
        }
        last = Some(plan.steps);
    }
    panic!("no end after {ROUNDS} rounds\n{told}");
}

/// A restore in the order of the session: the host, the pods, and what waits for carrier.
fn restored(table: &Table) -> String {
    let mut told = String::new();
    let mut driver = Driver::new(table, Executor::Netfix);
    restore_host(&mut driver, table, &mut told);
    for (request, errno) in driver.group(&pods(table)) {
        writeln!(told, "refused {}: {errno:?}", request.words()).expect("a string");
    }
    driver.kernel.pass_time();
    restore_host(&mut driver, table, &mut told);
    let (plan, _) = table.case.plan(&driver.kernel.observe(), None);
    let left = plan.steps.iter().chain(&plan.later);
    told.extend(left.map(|step| format!("left {step}\n")));
    told.extend(plan.problems.iter().map(in_short));
    told
}

#[test]
fn each_driver_accepts_what_a_restore_sends_in_its_order() {
    let bless = std::env::var_os("NETFIX_BLESS").is_some();
    let mut wrong = String::new();
    for (name, table) in drivers() {
        let expected = folder().join(&name).join("end.txt");
        let told = restored(&table);
        if bless {
            fs::write(&expected, &told).expect("it can be written");
        } else if fs::read_to_string(&expected).unwrap_or_default() != told {
            write!(wrong, "{name} ({}):\n{told}", table.case.why).expect("a string");
        }
    }
    assert!(wrong.is_empty(), "these differ from end.txt:\n{wrong}");
}

fn shuffle<T>(all: &mut [T], numbers: &mut Numbers) {
    for at in (1..=all.len()).rev() {
        let other = numbers.below(u64::try_from(at).expect("a few"));
        all.swap(at - 1, usize::try_from(other).expect("a few"));
    }
}

/// Each rule can find a wrong order: without netfix's order and patience the driver refuses something by it.
#[test]
fn each_rule_refuses_some_other_order() {
    const SHUFFLES: usize = 300;
    for (name, table) in drivers() {
        let (plan, _) = table.case.plan(&table.case.observed, None);
        let steps = plan.steps.into_iter().chain(plan.later);
        let requests = steps.map(Request::Step).chain(pods(&table)).collect();
        let groups = groups(requests);
        let mut fired = BTreeSet::new();
        let mut numbers = Numbers::new(1);
        for _ in 0..SHUFFLES {
            let mut shuffled = groups.clone();
            shuffle(&mut shuffled, &mut numbers);
            let parts = shuffled.iter_mut();
            parts.for_each(|group| shuffle(group, &mut numbers));
            let mut driver = Driver::new(&table, Executor::Naive);
            for group in shuffled {
                drop(driver.group(&group));
                driver.kernel.pass_time();
            }
            fired.extend(driver.fired);
        }
        let own = table.rules.len() - table.foreign;
        let silent: Vec<_> = (0..own).filter(|at| !fired.contains(at)).collect();
        let silent: Vec<_> = silent.into_iter().map(|at| &table.rules[at]).collect();
        assert!(
            silent.is_empty(),
            "{name}: no order is refused by {silent:?}"
        );
    }
}

#[test]
fn each_driver_has_its_row_in_the_reference() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/nic-settings.md");
    let page = fs::read_to_string(page).expect("the page");
    let (_, rows) = page.split_once("\n## Drivers\n").expect("the drivers");
    let (rows, _) = rows.split_once("\n## ").expect("the next heading");
    let names: BTreeSet<String> = drivers()
        .iter()
        .map(|(name, _)| name.split('-').next().expect("a name").to_owned())
        .collect();
    for name in names {
        assert!(rows.contains(&format!("| {name} |")), "{name} has no row");
    }
}
