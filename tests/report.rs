//! `netfix report` on the records in `testdata/windows`: the text against `NAME.txt`, and the page read by an HTML
//! parser.
//!
//! `NETFIX_BLESS=1 cargo test --test report` writes the texts anew, and the checksums of the records; to be read before
//! they are committed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on stops")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use netfix::model::{InterfaceView, Problem, Window};
use netfix::store::Store;
use scraper::{Html, Selector};
use serde_json::Value;

const NAMES: [&str; 4] = ["well", "troubled", "killed", "pause"];

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/windows").join(name)
}

fn fixture(name: &str) -> Window {
    serde_json::from_str(&fs::read_to_string(testdata(&format!("{name}.json"))).unwrap()).unwrap()
}

/// A state folder of the test's own.
struct Machine {
    folder: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn with(windows: &[Window]) -> Self {
        let machine = Self::new();
        let guard = machine.store().lock("test").unwrap();
        for window in windows {
            guard.close_window(window).unwrap();
        }
        machine
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn store(&self) -> Store {
        Store::new(self.state())
    }

    fn netfix(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_netfix"));
        command.args(words).arg("--state-dir").arg(self.state()).current_dir(self.folder.path());
        command.env_remove("NETFIX_STATE_DIR").env("NO_COLOR", "1").env("COLUMNS", "200").output().unwrap()
    }

    /// What a report of the newest window prints.
    fn text(&self) -> String {
        let output = self.netfix(&["report"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, words: &[&str]) -> Value {
        let output = self.netfix(&[words, &["-o", "json"]].concat());
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The page of the newest window.
    fn page(&self) -> String {
        let output = self.netfix(&["report", "--html", "page.html"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        fs::read_to_string(self.folder.path().join("page.html")).unwrap()
    }
}

/// The page as a browser understands it; whatever the parser had to put right is a failure.
fn parsed(page: &str) -> Html {
    let html = Html::parse_document(page);
    assert!(html.errors.is_empty(), "{:?}", html.errors);
    html
}

fn select<'a>(html: &'a Html, selector: &str) -> Vec<scraper::ElementRef<'a>> {
    html.select(&Selector::parse(selector).unwrap()).collect()
}

fn words(element: scraper::ElementRef<'_>) -> String {
    element.text().collect::<String>()
}

#[test]
fn every_record_in_testdata_gives_its_text() {
    let bless = std::env::var_os("NETFIX_BLESS").is_some();
    for name in NAMES {
        let window = fixture(name);
        let machine = Machine::with(std::slice::from_ref(&window));
        let expected = testdata(&format!("{name}.txt"));
        let stored = machine.state().join("windows").join(format!("{}.json", window.id));
        if bless {
            fs::write(&expected, machine.text()).unwrap();
            fs::copy(&stored, testdata(&format!("{name}.json"))).unwrap();
        }
        assert_eq!(machine.text(), fs::read_to_string(&expected).unwrap_or_default(), "{name}");
        let record = fs::read_to_string(testdata(&format!("{name}.json"))).unwrap();
        assert_eq!(fs::read_to_string(stored).unwrap(), record, "{name}: the format on disk has changed");
    }
}

#[test]
fn the_document_has_the_record_and_what_follows_from_it() {
    let window = fixture("well");
    let answer = Machine::with(std::slice::from_ref(&window)).json(&["report"]);
    assert_eq!(answer["command"], "report");
    assert_eq!(answer["exit"], 0);
    let mut report = answer["report"].clone();
    let computed = report.as_object_mut().unwrap().remove("computed").unwrap();
    assert_eq!(report, serde_json::to_value(&window).unwrap());
    assert_eq!(computed["verdict"], "well");
    assert_eq!(computed["open"], false);
    assert_eq!(computed["pause_ms"], 14390 - 2117);
    let outages = &computed["outages"];
    assert_eq!(outages["worst_ms"], 12504 - 3480);
    assert_eq!(outages["median_ms"], 12318 - 3480);
    assert_eq!(outages["pods"].as_array().unwrap().len(), 3);
    assert_eq!(computed["pods"]["back"], 3);
}

#[test]
fn what_nobody_knows_is_null_and_a_dash() {
    let machine = Machine::with(&[fixture("killed")]);
    let computed = &machine.json(&["report"])["report"]["computed"];
    assert_eq!(computed["verdict"], "interrupted");
    assert_eq!(computed["outages"]["worst_ms"], Value::Null);
    assert_eq!(computed["outages"]["unanswered"], 2);
    assert_eq!(computed["pods"]["unknown"], 2);
    assert_eq!(computed["pods"]["back"], 0);
    let text = machine.text();
    let row = text.lines().find(|line| line.contains("shop/web-0")).unwrap();
    let cells: Vec<&str> = row.split('┆').map(|cell| cell.trim_matches(['│', ' '])).collect();
    assert_eq!(cells[2..], ["-", "no answer", "-", "-", "-"], "{row}");
    let untouched = Window { hold: None, pods: Vec::new(), phases: Vec::new(), ..fixture("killed") };
    let computed = Machine::with(&[untouched]).json(&["report"])["report"]["computed"].clone();
    assert_eq!(computed["pause_ms"], Value::Null);
    assert_eq!(computed["outages"]["median_ms"], Value::Null);
}

#[test]
fn a_window_that_went_wrong_is_never_called_well() {
    let well = fixture("well");
    let verdict = |window: Window| {
        let machine = Machine::with(&[window]);
        machine.json(&["report"])["report"]["computed"]["verdict"].as_str().unwrap().to_owned()
    };
    let with_pod = |change: &dyn Fn(&mut netfix::model::window::WindowPod)| {
        let mut window = well.clone();
        change(&mut window.pods[1]);
        window
    };
    assert_eq!(verdict(well.clone()), "well");
    assert_eq!(verdict(with_pod(&|pod| pod.rebuilt = Some(true))), "pods-affected");
    assert_eq!(verdict(with_pod(&|pod| pod.gateways[0].reachable = Some(false))), "pods-affected");
    assert_eq!(verdict(with_pod(&|pod| pod.state = Some(netfix::model::State::Partial))), "pods-affected");
    assert_eq!(verdict(with_pod(&|pod| pod.state = None)), "unknown");
    assert_eq!(verdict(with_pod(&|pod| pod.rebuilt = None)), "unknown");
    assert_eq!(verdict(with_pod(&|pod| pod.gateways[0].reachable = None)), "unknown");
    assert_eq!(verdict(Window { exit: Some(1), ..well.clone() }), "failed");
    assert_eq!(verdict(Window { exit: Some(4), ..well.clone() }), "refused");
    assert_eq!(verdict(Window { exit: None, ended: None, ..well.clone() }), "interrupted");
    let mut failed = Window { exit: Some(1), ..well.clone() };
    failed.run.as_mut().unwrap().exit = Some(3);
    assert_eq!(verdict(failed), "command-failed");
    let mut cut = well.clone();
    cut.phases.last_mut().unwrap().to = None;
    assert_eq!(verdict(cut), "interrupted");
    let mut held = well;
    held.hold.as_mut().unwrap().resumed = None;
    assert_eq!(verdict(held), "failed", "nobody has seen kubelet again");
}

#[test]
fn the_newest_is_shown_unless_another_is_named() {
    let all: Vec<Window> = NAMES.iter().map(|name| fixture(name)).collect();
    let machine = Machine::with(&all);
    let id = |words: &[&str]| machine.json(words)["report"]["id"].as_str().unwrap().to_owned();
    assert_eq!(id(&["report"]), "20261121T031500Z");
    assert_eq!(id(&["report", "20261118"]), "20261118T013000Z");
    assert_eq!(id(&["report", "20261116T090512Z"]), "20261116T090512Z");
    let open = Window { id: "20261121T040000Z".to_owned(), ended: None, exit: None, ..all[0].clone() };
    machine.store().lock("test").unwrap().save_window(&open).unwrap();
    assert_eq!(id(&["report"]), "20261121T040000Z");
    assert_eq!(machine.json(&["report"])["report"]["computed"]["verdict"], "open");
    assert_eq!(id(&["report", "20261121T03"]), "20261121T031500Z");
    let list = machine.json(&["report", "--list"]);
    let ids: Vec<&str> =
        list["windows"].as_array().unwrap().iter().map(|w| w["id"].as_str().unwrap()).collect();
    let mut sorted = ids.clone();
    sorted.sort_unstable();
    assert_eq!(ids, sorted);
    assert_eq!(ids.len(), 5);
    let lines = String::from_utf8(machine.netfix(&["report", "--list"]).stdout).unwrap();
    assert!(ids.iter().all(|id| lines.lines().filter(|line| line.contains(id)).count() == 1), "{lines}");
}

#[test]
fn an_unknown_window_is_refused_with_those_that_there_are() {
    let machine = Machine::with(&[fixture("well"), fixture("pause")]);
    for (wanted, told) in [
        ("2025", "there are 20261116T090512Z, 20261121T031500Z"),
        ("202611", "several windows begin like that: 20261116T090512Z, 20261121T031500Z"),
        ("../windows/20261121T031500Z", "there is no such window"),
        ("", "several windows"),
    ] {
        let output = machine.netfix(&["report", wanted]);
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(4), "{err}");
        assert!(err.contains("not-found") && err.contains(told), "{wanted}: {err}");
        assert!(output.stdout.is_empty());
    }
    let nothing = Machine::new().netfix(&["report"]);
    assert_eq!(nothing.status.code(), Some(4));
    assert!(String::from_utf8(nothing.stderr).unwrap().contains("no window has been recorded here"));
}

#[test]
fn readers_neither_make_nor_take_the_lock() {
    let machine = Machine::with(&[fixture("well")]);
    let _guard = machine.store().lock("test").unwrap();
    machine.text();
    let empty = Machine::new();
    empty.netfix(&["report", "--list"]);
    assert!(!empty.state().exists());
}

#[test]
fn a_damaged_record_is_named_and_hides_no_other() {
    let machine = Machine::with(&[fixture("well"), fixture("pause")]);
    let path = machine.state().join("windows/20261121T031500Z.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"rebuilt\": false", "\"rebuilt\": true")).unwrap();
    let output = machine.netfix(&["report"]);
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(4), "{err}");
    assert!(err.contains("checkpoint-corrupt") && err.contains(path.to_str().unwrap()), "{err}");
    let output = machine.netfix(&["report", "--list"]);
    let lines = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(lines.contains("20261116T090512Z") && lines.contains("cannot be read"), "{lines}");
    assert!(String::from_utf8(output.stderr).unwrap().contains("warning: checkpoint-corrupt"));
    // Whether a window is open is not known then, and that is no reason to hide a record.
    fs::write(machine.state().join("window.json"), "{").unwrap();
    assert_eq!(machine.netfix(&["report", "20261116"]).status.code(), Some(0));
    assert_eq!(machine.netfix(&["report"]).status.code(), Some(4));
    assert_eq!(machine.netfix(&["report", "--list"]).status.code(), Some(5));
}

#[test]
fn the_page_has_every_pod_and_phase_and_needs_nothing_else() {
    for name in NAMES {
        let window = fixture(name);
        let page = Machine::with(std::slice::from_ref(&window)).page();
        let html = parsed(&page);
        let rows: Vec<String> = select(&html, "table.pods tbody tr").into_iter().map(words).collect();
        assert_eq!(rows.len(), window.pods.len(), "{name}");
        for pod in &window.pods {
            let own: Vec<&String> = rows.iter().filter(|row| row.contains(pod.info.id.as_str())).collect();
            assert_eq!(own.len(), 1, "{name}: {}", pod.info.id);
            assert!(own[0].contains(&pod.info.title()), "{name}: {}", own[0]);
        }
        let bars = select(&html, "svg.chart g.phase").len();
        let phases: Vec<String> = select(&html, "table.phases tbody th").into_iter().map(words).collect();
        let expected: Vec<String> = window.phases.iter().map(|phase| phase.name.to_string()).collect();
        assert_eq!((bars, phases), (expected.len(), expected), "{name}");
        let lost = window.pods.iter().filter(|pod| pod.lost.is_some()).count();
        assert_eq!(select(&html, "svg.chart g.lane").len(), lost.min(30), "{name}");
        assert_eq!(select(&html, "table.problems tbody tr").len(), window.problems.len(), "{name}");
        assert_needs_nothing(&html, &page);
    }
}

/// No element and no attribute that loads or runs anything, and a policy that says so.
fn assert_needs_nothing(html: &Html, page: &str) {
    let foreign = [
        "script",
        "link",
        "img",
        "iframe",
        "object",
        "embed",
        "base",
        "form",
        "a",
        "use",
        "image",
        "foreignObject",
    ];
    for element in foreign {
        assert!(select(html, element).is_empty(), "<{element}> on the page");
    }
    for element in select(html, "*") {
        for (name, value) in element.value().attrs() {
            let loads = ["src", "href", "xlink:href", "style", "srcset", "background"].contains(&name);
            assert!(!loads && !name.starts_with("on"), "<{} {name}={value:?}>", element.value().name());
        }
    }
    let addresses = page.match_indices("://").count();
    let names_of_svg = page.matches("xmlns=\"http://www.w3.org/2000/svg\"").count();
    assert_eq!(addresses, names_of_svg, "an address on the page");
    assert!(!page.contains("@import"), "a style that loads another");
    let policy = select(html, "meta[http-equiv=Content-Security-Policy]");
    assert!(policy[0].attr("content").unwrap().starts_with("default-src 'none'"));
}

#[test]
fn the_page_can_be_read_without_seeing_it() {
    let html = parsed(&Machine::with(&[fixture("troubled")]).page());
    assert_eq!(select(&html, "html[lang=en]").len(), 1);
    let ids: Vec<&str> =
        select(&html, "[id]").into_iter().map(|element| element.attr("id").unwrap()).collect();
    assert_eq!(ids.len(), ids.iter().collect::<BTreeSet<_>>().len(), "an id twice");
    for drawing in select(&html, "svg") {
        if drawing.attr("aria-hidden") == Some("true") {
            continue;
        }
        assert_eq!(drawing.attr("role"), Some("img"));
        for name in drawing.attr("aria-labelledby").unwrap().split(' ') {
            assert!(!words(select(&html, &format!("#{name}"))[0]).is_empty());
        }
    }
    assert_eq!(select(&html, "table").len(), select(&html, "table > caption").len());
    assert!(select(&html, "th").iter().all(|head| matches!(head.attr("scope"), Some("col" | "row"))));
}

#[test]
fn with_many_pods_the_worst_have_lanes_and_all_are_counted() {
    let window = fixture("troubled");
    let html = parsed(&Machine::with(std::slice::from_ref(&window)).page());
    let lanes: Vec<String> = select(&html, "g.lane").into_iter().map(words).collect();
    assert_eq!(lanes.len(), 30);
    assert!(lanes[0].contains("no answer") && lanes[1].contains("no answer"), "{:?}", &lanes[..2]);
    let mut longest: Vec<u64> = window.pods.iter().filter_map(|pod| pod.outage()).collect();
    longest.sort_unstable();
    let worst = longest.pop().unwrap();
    assert!(lanes[2].contains(&format!("{}.{:03} s", worst / 1000, worst % 1000)), "{}", lanes[2]);
    let counts = select(&html, "svg g > rect.outage ~ text.mark").into_iter();
    let counted: usize = counts.map(|count| words(count).parse::<usize>().unwrap()).sum();
    assert_eq!(counted, longest.len() + 1);
}

/// A record in which every text that somebody else chose is an attack.
fn hostile() -> (Window, &'static str) {
    let evil = "</title></style></pre><script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u{1b}]0;x\u{7}\u{1b}[2J\u{202e}";
    let mut window = fixture("troubled");
    let text = || evil.to_owned();
    window.node.hostname = Some(text());
    window.command = text();
    window.closed_by = Some(text());
    window.started = text();
    window.run.as_mut().unwrap().argv = vec![text(), text()];
    window.run.as_mut().unwrap().error = Some(text());
    window.hold.as_mut().unwrap().unit = text();
    window.node.boot_id = Some(text());
    let interface: InterfaceView = serde_json::from_value(serde_json::json!({
        "name": "<b>\u{1b}[2J", "kind": evil, "mac": null, "parent": "<i>", "mtu": 1500, "addresses": [evil], "gateways": []
    }))
    .unwrap();
    for pod in &mut window.pods {
        pod.info.name = Some(text());
        pod.info.namespace = Some(text());
        pod.info.source = text();
        pod.before = vec![interface.clone()];
        pod.after = Some(vec![interface.clone(), interface.clone()]);
        if let Some(lives) = &mut pod.lives_after {
            lives.sandbox = text();
        }
    }
    let code = netfix::model::Code::Failed;
    window.problems = vec![Problem::error(code, evil, evil).of(&window.pods[0].info.id)];
    window.log = Some(text());
    (window, evil)
}

#[test]
fn hostile_names_are_inert_on_the_page_and_on_the_terminal() {
    let (window, evil) = hostile();
    let machine = Machine::with(std::slice::from_ref(&window));
    let log = machine.store().window_log_path(&window.id);
    fs::write(log, format!("{evil}\n{evil}\n")).unwrap();
    let page = machine.page();
    let html = parsed(&page);
    assert_needs_nothing(&html, &page.replace("x://", ""));
    assert_eq!(select(&html, "table.pods tbody tr").len(), window.pods.len());
    assert!(
        words(select(&html, "table.pods tbody th")[0]).contains("<script>alert(1)</script>"),
        "shown as text"
    );
    assert!(words(select(&html, "pre")[0]).contains("<img src=x onerror=alert(2)>"));
    for text in [machine.text(), page] {
        let obeyed = |c: char| (c.is_control() && c != '\n' && c != '\t') || c == '\u{202e}';
        assert!(!text.contains(obeyed), "{:?}", text.chars().find(|c| obeyed(*c)));
    }
}

#[test]
fn the_log_is_on_the_page_as_a_terminal_would_show_it() {
    let window = fixture("well");
    let machine = Machine::with(std::slice::from_ref(&window));
    let lines: Vec<String> = (0..300).map(|line| format!("\x1b[32mline {line}\x1b[0m <&>\r\n")).collect();
    fs::write(machine.store().window_log_path(&window.id), lines.concat()).unwrap();
    let html = parsed(&machine.page());
    let shown = words(select(&html, "pre")[0]);
    let shown: Vec<&str> = shown.trim_start_matches('\n').lines().collect();
    assert_eq!(shown.len(), 200);
    assert_eq!((shown[0], shown[199]), ("line 100 <&>", "line 299 <&>"));
}

#[test]
fn the_page_is_written_whole_or_not_at_all() {
    let machine = Machine::with(&[fixture("well")]);
    machine.page();
    let path = machine.folder.path().join("page.html");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
    let before = fs::read_to_string(&path).unwrap();
    fs::create_dir_all(machine.folder.path().join(".page.html.tmp/in")).unwrap();
    let output = machine.netfix(&["report", "--html", "page.html"]);
    assert_eq!(output.status.code(), Some(1));
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(err.contains("page.html") && out.contains("20261121T031500Z"), "{out}{err}");
    assert!(!out.contains("page.html"), "it says that it wrote a page: {out}");
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
    let output = machine.netfix(&["report", "--html", "/nowhere/page.html"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("No such file"));
}

#[test]
fn a_log_that_cannot_be_read_costs_no_page() {
    let window = fixture("well");
    let machine = Machine::with(std::slice::from_ref(&window));
    symlink("/etc/passwd", machine.store().window_log_path(&window.id)).unwrap();
    let output = machine.netfix(&["report", "--html", "page.html"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8(output.stderr).unwrap().contains("warning: unreadable"));
    let page = fs::read_to_string(machine.folder.path().join("page.html")).unwrap();
    assert!(select(&parsed(&page), "pre").is_empty());
}
