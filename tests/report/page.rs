//! The HTML page, read by an HTML parser.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use netfix::model::window::{WindowKind, WindowPod};
use netfix::model::{Interface, Problem, Severity, Window};
use scraper::{Html, Selector};

use crate::machine::{Machine, NAMES, fixture};

/// The page as a browser parses it; every correction by the parser is a failure.
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
fn the_page_says_what_its_record_is_of() {
    for (kind, of) in [
        (None, "Maintenance window"),
        (Some(WindowKind::Unplanned), "Restore by netfix guard"),
        (Some(WindowKind::Restore), "Restore by netfix restore"),
        (Some(WindowKind::Accept), "Loss accepted by netfix snapshot"),
    ] {
        let mut window = fixture("well");
        window.kind = kind;
        for pod in &mut window.pods {
            pod.rebuilt = None;
        }
        let page = Machine::with(&[window]).page();
        assert_eq!(words(select(&parsed(&page), "p.over")[0]), of);
        let is_watched = page.contains("watch for rebuilt pods has not ended");
        assert_eq!(is_watched, kind == Some(WindowKind::Unplanned), "{of}");
    }
}

#[test]
fn the_page_has_every_pod_and_phase_and_is_self_contained() {
    for name in NAMES {
        let window = fixture(name);
        let page = Machine::with(std::slice::from_ref(&window)).page();
        let html = parsed(&page);
        let rows: Vec<String> = select(&html, "table.pods tbody tr")
            .into_iter()
            .map(words)
            .collect();
        assert_eq!(rows.len(), window.pods.len(), "{name}");
        for pod in &window.pods {
            let own: Vec<&String> = rows
                .iter()
                .filter(|row| row.contains(pod.info.id.as_str()))
                .collect();
            assert_eq!(own.len(), 1, "{name}: {}", pod.info.id);
            assert!(own[0].contains(&pod.info.title()), "{name}: {}", own[0]);
        }
        let bars = select(&html, "table.phases td > .bar").len();
        let phases: Vec<String> = select(&html, "table.phases tbody th")
            .into_iter()
            .map(words)
            .collect();
        let expected: Vec<String> = window
            .phases
            .iter()
            .map(|phase| phase.name.to_string())
            .collect();
        assert_eq!((bars, phases), (expected.len(), expected), "{name}");
        let lost = window.pods.iter().filter(|pod| pod.lost.is_some()).count();
        assert_eq!(select(&html, "table.pods .bar").len(), lost, "{name}");
        let nics: Vec<String> = select(&html, "table.nics tbody tr")
            .into_iter()
            .map(words)
            .collect();
        let expected = window.nics.iter().flatten();
        let expected: Vec<&str> = expected
            .map(|nic| nic.name().unwrap().as_str().unwrap())
            .collect();
        assert_eq!(nics.len(), expected.len(), "{name}");
        assert!(
            nics.iter()
                .zip(&expected)
                .all(|(row, nic)| row.starts_with(nic)),
            "{name}: {nics:?}"
        );
        assert_eq!(
            select(&html, "table.problems tbody tr").len(),
            window.problems.len(),
            "{name}"
        );
        assert_needs_nothing(&html, &page);
    }
}

/// No element and no attribute that loads or runs anything, and a policy that forbids it.
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
            let loads = ["src", "href", "xlink:href", "srcset", "background"].contains(&name)
                || name == "style" && place(value).is_none();
            assert!(
                !loads && !name.starts_with("on"),
                "<{} {name}={value:?}>",
                element.value().name()
            );
        }
    }
    let addresses = page.match_indices("://").count();
    let names_of_svg = page.matches("xmlns=\"http://www.w3.org/2000/svg\"").count();
    assert_eq!(addresses, names_of_svg, "an address on the page");
    assert!(!page.contains("@import"), "a style that loads another");
    let policy = select(html, "meta[http-equiv=Content-Security-Policy]");
    assert!(
        policy[0]
            .attr("content")
            .unwrap()
            .starts_with("default-src 'none'")
    );
}

#[test]
fn the_page_is_accessible_to_screen_readers() {
    let html = parsed(&Machine::with(&[fixture("troubled")]).page());
    assert_eq!(select(&html, "html[lang=en]").len(), 1);
    let ids: Vec<&str> = select(&html, "[id]")
        .into_iter()
        .map(|element| element.attr("id").unwrap())
        .collect();
    assert_eq!(
        ids.len(),
        ids.iter().collect::<BTreeSet<_>>().len(),
        "an id twice"
    );
    for drawing in select(&html, "svg") {
        if drawing.attr("aria-hidden") == Some("true") {
            continue;
        }
        assert_eq!(drawing.attr("role"), Some("img"));
        for name in drawing.attr("aria-labelledby").unwrap().split(' ') {
            assert!(!words(select(&html, &format!("#{name}"))[0]).is_empty());
        }
    }
    assert_eq!(
        select(&html, "table").len(),
        select(&html, "table > caption").len()
    );
    assert!(
        select(&html, "th")
            .iter()
            .all(|head| matches!(head.attr("scope"), Some("col" | "row")))
    );
}

/// Where a bar begins, and how long it is, in percent; nothing for any other style.
fn place(style: &str) -> Option<(f64, f64)> {
    let (from, length) = style
        .strip_prefix("margin-left:")?
        .strip_suffix('%')?
        .split_once("%;width:")?;
    Some((from.parse().ok()?, length.parse().ok()?))
}

#[test]
fn every_outage_has_a_bar_of_its_length() {
    let window = fixture("troubled");
    let html = parsed(&Machine::with(std::slice::from_ref(&window)).page());
    let worst = window.pods.iter().filter_map(WindowPod::outage).max();
    let (worst, bar) = (worst.unwrap(), Selector::parse(".bar").unwrap());
    for row in select(&html, "table.pods tbody tr") {
        let mut bars = row.select(&bar);
        let text = words(row);
        let mut pods = window.pods.iter();
        let pod = pods.find(|pod| text.contains(pod.info.id.as_str()));
        let pod = pod.unwrap();
        let length = bars.next().map(|bar| place(bar.attr("style").unwrap()));
        let outage = pod.lost.map(|_| pod.outage().unwrap_or(worst));
        let length = length.map(|place| place.unwrap());
        assert_eq!(length.is_some(), outage.is_some(), "{text}");
        let Some(((from, length), outage)) = length.zip(outage) else {
            continue;
        };
        #[allow(clippy::cast_precision_loss)]
        let expected = outage as f64 * 100.0 / worst as f64;
        let is_so = from.abs() < 0.1 && (length - expected).abs() <= 0.1;
        assert!(is_so, "{from} {length} for {expected}: {text}");
    }
}

#[test]
fn the_bar_of_a_phase_is_where_the_phase_is_in_the_window() {
    let html = parsed(&Machine::with(&[fixture("troubled")]).page());
    let bars = select(&html, "table.phases .bar").into_iter();
    let places: Vec<_> = bars
        .map(|bar| place(bar.attr("style").unwrap()).unwrap())
        .collect();
    let is_within = |(from, length): &(f64, f64)| from + length <= 100.1;
    let is_later = |pair: &[(f64, f64)]| pair[0].0 <= pair[1].0;
    assert!(
        places.iter().all(is_within) && places.windows(2).all(is_later),
        "{places:?}"
    );
}

/// A record in which every text from outside netfix is an attack.
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
    window.pause.as_mut().unwrap().unit = text();
    window.node.boot_id = Some(text());
    let interface: Interface = serde_json::from_value(serde_json::json!({
        "name": "<b>\u{1b}[2J", "kind": evil, "mac": null, "parent": "<i>", "mtu": 1500, "addresses": ["192.0.2.7/24"], "gateways": []
    }))
    .unwrap();
    for pod in &mut window.pods {
        pod.info.name = Some(text().into());
        pod.info.namespace = Some(text());
        pod.info.source = text();
        pod.before = vec![interface.clone()];
        pod.after = Some(vec![interface.clone(), interface.clone()]);
        if let Some(fingerprint) = &mut pod.fingerprint_after {
            fingerprint.sandbox = text();
        }
    }
    let code = netfix::model::Code::Failed;
    window.problems =
        vec![Problem::recorded(Severity::Error, code, evil, evil).of(&window.pods[0].info.id)];
    window.log = Some(text());
    for nic in window.nics.as_mut().unwrap() {
        let before = nic.before.as_mut().unwrap();
        (before.driver, before.version) = (Some(text()), Some(text()));
        (before.firmware, before.bus) = (Some(text()), Some(text()));
    }
    window.rollback = fixture("rolled-back").rollback;
    window.rollback.as_mut().unwrap().run.argv = vec![text(), text()];
    (window, evil)
}

#[test]
fn hostile_names_are_escaped_on_the_page_and_on_the_terminal() {
    let (window, evil) = hostile();
    let machine = Machine::with(std::slice::from_ref(&window));
    let log = machine.store().window_log_path(&window.id);
    fs::write(log, format!("{evil}\n{evil}\n")).unwrap();
    let page = machine.page();
    let html = parsed(&page);
    assert_needs_nothing(&html, &page.replace("x://", ""));
    assert_eq!(
        select(&html, "table.pods tbody tr").len(),
        window.pods.len()
    );
    assert!(
        words(select(&html, "table.pods tbody th")[0]).contains("<script>alert(1)</script>"),
        "shown as text"
    );
    assert!(words(select(&html, "pre")[0]).contains("<img src=x onerror=alert(2)>"));
    for text in [machine.text(), page] {
        let obeyed = |c: char| (c.is_control() && c != '\n' && c != '\t') || c == '\u{202e}';
        assert!(
            !text.contains(obeyed),
            "{:?}",
            text.chars().find(|c| obeyed(*c))
        );
    }
}

#[test]
fn the_page_shows_the_log_like_a_terminal() {
    let window = fixture("well");
    let machine = Machine::with(std::slice::from_ref(&window));
    let lines: Vec<String> = (0..300)
        .map(|line| format!("\x1b[32mline {line}\x1b[0m <&>\r\n"))
        .collect();
    fs::write(machine.store().window_log_path(&window.id), lines.concat()).unwrap();
    let html = parsed(&machine.page());
    let shown = words(select(&html, "pre")[0]);
    let shown: Vec<&str> = shown.trim_start_matches('\n').lines().collect();
    assert_eq!(shown.len(), 200);
    assert_eq!((shown[0], shown[199]), ("line 100 <&>", "line 299 <&>"));
}

#[test]
fn the_page_is_written_atomically() {
    let machine = Machine::with(&[fixture("well")]);
    machine.page();
    let path = machine.folder.path().join("page.html");
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o644
    );
    let before = fs::read_to_string(&path).unwrap();
    fs::create_dir_all(machine.folder.path().join(".page.html.tmp/in")).unwrap();
    let output = machine.netfix(&["report", "--html", "page.html"]);
    assert_eq!(output.status.code(), Some(1));
    let (out, err) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    assert!(
        err.contains("page.html") && out.contains("20261121T031500Z"),
        "{out}{err}"
    );
    assert!(
        !out.contains("page.html"),
        "it reports that it wrote a page: {out}"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
    let link = machine.folder.path().join("link");
    symlink(&path, &link).unwrap();
    for place in ["link", "state"] {
        let output = machine.netfix(&["report", "--html", place]);
        assert_eq!(output.status.code(), Some(1));
        assert!(
            String::from_utf8(output.stderr)
                .unwrap()
                .starts_with("error: unwritable: ")
        );
    }
    assert!(link.is_symlink());
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
    let output = machine.netfix(&["report", "--html", "/nowhere/page.html"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("No such file")
    );
}

#[test]
fn an_unreadable_log_does_not_prevent_the_page() {
    let window = fixture("well");
    let machine = Machine::with(std::slice::from_ref(&window));
    symlink("/etc/passwd", machine.store().window_log_path(&window.id)).unwrap();
    let output = machine.netfix(&["report", "--html", "page.html"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("warning: unreadable")
    );
    let page = fs::read_to_string(machine.folder.path().join("page.html")).unwrap();
    assert!(select(&parsed(&page), "pre").is_empty());
}
