//! `report --merge` and `check --merge`: the documents of many nodes, as netfix printed them, in one answer.

use std::env;
use std::fs;

use jiff::Timestamp;
use scraper::{Html, Selector};
use serde_json::Value;

use crate::machine::{Machine, fixture, testdata};
use crate::schema_file::faults;

/// The document of `netfix report` for this record, on a node of this name.
fn report(name: &str, hostname: &str, form: &str) -> String {
    let mut window = fixture(name);
    window.node.hostname = Some(hostname.to_owned());
    let output = Machine::with(&[window]).netfix(&["report", "-o", form]);
    String::from_utf8(output.stdout).unwrap()
}

/// A machine with the reports of nodes, one file each.
fn fleet(nodes: &[(&str, &str)]) -> Machine {
    let machine = Machine::new();
    for (name, hostname) in nodes {
        let file = machine.folder.path().join(format!("{hostname}.json"));
        fs::write(file, report(name, hostname, "json")).unwrap();
    }
    machine
}

fn document(machine: &Machine, words: &[&str], exit: i32) -> Value {
    let output = machine.netfix(&[words, &["-o", "json"]].concat());
    assert_eq!(output.status.code(), Some(exit), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(faults(&document), [""; 0], "{document:#}");
    document
}

#[test]
fn every_node_has_its_row_and_the_worst_is_not_hidden() {
    let machine = fleet(&[
        ("well", "node9"),
        ("troubled", "node10"),
        ("rolled-back", "node2"),
    ]);
    let words = [
        "report",
        "--merge",
        "node9.json",
        "node10.json",
        "node2.json",
    ];
    let document = document(&machine, &words, 0);
    let fleet = &document["fleet"];
    let of = |key: &str| -> Vec<&str> {
        let nodes = fleet["nodes"].as_array().unwrap();
        nodes
            .iter()
            .map(|node| node[key].as_str().unwrap())
            .collect()
    };
    assert_eq!(of("hostname"), ["node10", "node2", "node9"]);
    assert_eq!(of("verdict"), ["pods-affected", "rolled-back", "well"]);
    assert_eq!(fleet["verdicts"]["well"], 1);
    // The figures are those of the record.
    let worst = |at: usize| &fleet["nodes"][at]["worst_outage_ms"];
    let single = Machine::with(&[fixture("troubled")]).json(&["report"]);
    assert_eq!(
        worst(0),
        &single["report"]["computed"]["outages"]["worst_ms"]
    );
    let errors = single["report"]["problems"].as_array().unwrap();
    let code = errors
        .iter()
        .find(|problem| problem["severity"] == "error")
        .unwrap()["code"]
        .clone();
    let groups = fleet["problems"].as_array().unwrap();
    let group = groups.iter().find(|group| group["code"] == code).unwrap();
    assert!(
        group["nodes"]
            .as_array()
            .unwrap()
            .contains(&"node10".into())
    );

    let output = machine.netfix(&words);
    let text = String::from_utf8(output.stdout).unwrap();
    let file = testdata("fleet.txt");
    if env::var_os("NETFIX_BLESS").is_some() {
        fs::write(&file, &text).unwrap();
    }
    assert_eq!(text, fs::read_to_string(&file).unwrap());
    let last = text.lines().last().unwrap();
    assert_eq!(
        last,
        "1 of 3 nodes: well; 1 pods-affected, 1 rolled-back: node10, node2"
    );
}

#[test]
fn of_many_nodes_those_that_are_not_well_come_first_and_are_named_last() {
    let machine = Machine::new();
    let well = report("well", "NODE", "jsonl");
    let bad = report("troubled", "NODE", "jsonl");
    let mut text = String::new();
    for number in 1..=300 {
        let form = if number % 41 == 0 { &bad } else { &well };
        text += &form.replace("NODE", &format!("worker-{number}"));
    }
    fs::write(machine.folder.path().join("all"), text).unwrap();
    let run = |words: &[&str]| {
        let output = machine.netfix(&[&["report", "--merge", "all"], words].concat());
        String::from_utf8(output.stdout).unwrap()
    };
    let short = run(&[]);
    let rows = |text: &str, word: &str| {
        let of_node = text.lines().filter(|line| line.contains("worker-"));
        of_node.filter(|line| line.contains(word)).count()
    };
    assert_eq!(rows(&short, " well "), 0, "{short}");
    assert_eq!(rows(&short, " pods-affected "), 7, "{short}");
    assert!(short.contains("293 nodes: well"), "{short}");
    assert!(short.lines().count() < 40, "{short}");
    let names = "worker-41, worker-82, worker-123, worker-164, worker-205 and 2 more";
    let last = format!("293 of 300 nodes: well; 7 pods-affected: {names}");
    assert_eq!(short.lines().last(), Some(last.as_str()));
    let long = run(&["-v"]);
    assert_eq!(rows(&long, " well "), 293, "{long}");
    let first_well = long.lines().position(|line| line.contains(" well "));
    let last_bad = long.lines().position(|line| line.contains("worker-287 "));
    assert!(last_bad < first_well, "{long}");
}

#[test]
fn files_with_several_documents_one_a_line_or_indented_are_read_whole() {
    let machine = Machine::new();
    let text = ["a", "b"]
        .map(|node| report("well", node, "jsonl"))
        .concat()
        + &report("well", "c", "json");
    fs::write(machine.folder.path().join("all"), text).unwrap();
    let document = document(&machine, &["report", "--merge", "all"], 0);
    assert_eq!(document["fleet"]["nodes"].as_array().unwrap().len(), 3);
    let output = machine.netfix(&["report", "--merge", "all"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.ends_with("3 nodes: all well\n"), "{text}");
}

#[test]
fn a_file_that_cannot_be_read_is_named_and_the_others_are_merged() {
    let machine = fleet(&[("well", "good")]);
    let folder = machine.folder.path();
    let whole = report("well", "cut", "json");
    fs::write(folder.join("cut.json"), &whole[..whole.len() / 2]).unwrap();
    fs::write(folder.join("empty.json"), "").unwrap();
    fs::write(folder.join("binary.json"), [0xff, 0xfe, 0]).unwrap();
    fs::write(folder.join("other.json"), "{\"a\": 1}").unwrap();
    let bad = [
        "cut.json",
        "empty.json",
        "binary.json",
        "other.json",
        "missing.json",
    ];
    let merged = document(
        &machine,
        &[&["report", "--merge", "good.json"], &bad[..]].concat(),
        5,
    );
    assert_eq!(merged["fleet"]["nodes"].as_array().unwrap().len(), 1);
    let problems = merged["problems"].as_array().unwrap();
    let named: Vec<&str> = problems
        .iter()
        .map(|one| one["object"].as_str().unwrap())
        .collect();
    assert_eq!(named, bad);
    assert_eq!(merged["fleet"]["unread"], bad.len());
    let verdict = |words: &[&str]| {
        let output = machine.netfix(words);
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().last().unwrap().to_owned()
    };
    let words = ["report", "--merge", "good.json", "cut.json"];
    assert_eq!(verdict(&words), "1 of 1 node: well; 1 file not read");
    assert_eq!(
        verdict(&["check", "--merge", "cut.json"]),
        "0 of 0 nodes: well; 1 file not read"
    );
    document(&machine, &[&["report", "--merge"], &bad[..]].concat(), 1);
    // A page of no node does not replace a good one.
    fs::write(folder.join("page"), "good").unwrap();
    document(
        &machine,
        &["report", "--merge", "cut.json", "--html", "page"],
        1,
    );
    assert_eq!(fs::read_to_string(folder.join("page")).unwrap(), "good");
}

/// Writes the document of a check, with `at` as the time in its file; `None`: as an earlier netfix printed it.
fn check(machine: &Machine, file: &str, node: &str, at: Option<Timestamp>, status: &str) {
    let (exit, pods) = match status {
        "OK" => (0, r#"{"in-sync":3,"empty":1,"degraded":0}"#),
        "WARNING" => (1, r#"{"in-sync":3,"stale":1}"#),
        "UNKNOWN" => (3, r#"{"in-sync":null,"empty":null}"#),
        _ => (2, r#"{"degraded":2}"#),
    };
    let at = at.map(|at| format!("\"at\":\"{at}\","));
    let at = at.unwrap_or_default();
    let text = format!(
        r#"{{"schema":"netfix/v1","command":"check","exit":{exit},"node":{{"hostname":"{node}","created":null}},"pods":[],
        "problems":[],"check":{{{at}"status":"{status}","pods":{pods},"left_out":0,"oldest_age":1,"steps":0,"unsupported":0,
        "last_success":null}}}}"#
    );
    fs::write(machine.folder.path().join(file), text).unwrap();
}

fn hours_ago(hours: i64) -> Timestamp {
    Timestamp::from_second(Timestamp::now().as_second() - hours * 3600).unwrap()
}

#[test]
fn a_check_that_is_not_of_now_is_never_well() {
    let machine = Machine::new();
    check(&machine, "good", "good", Some(hours_ago(1)), "OK");
    check(&machine, "old", "old", Some(hours_ago(24 * 400)), "OK");
    check(&machine, "warned", "warned", Some(hours_ago(4)), "WARNING");
    check(&machine, "future", "future", Some(hours_ago(-1)), "OK");
    check(&machine, "undated", "undated", None, "OK");
    check(&machine, "bad", "bad", Some(hours_ago(4)), "CRITICAL");
    for (file, words) in [
        ("old", "was checked 400 d ago (--max-age 3 h)"),
        ("warned", "was checked 4 h ago (--max-age 3 h)"),
        ("future", "in the future"),
        ("undated", "does not have the time of its check"),
    ] {
        let merged = document(&machine, &["check", "--merge", "good", file], 3);
        let node = &merged["fleet"]["nodes"][0];
        assert_eq!(
            (&node["hostname"], &node["verdict"], &node["pods"]),
            (&file.into(), &"UNKNOWN".into(), &Value::Null)
        );
        let group = &merged["fleet"]["problems"][0];
        assert_eq!(group["code"], "checkpoint-stale", "{group}");
        let example = group["example"].as_str().unwrap();
        assert!(
            example.starts_with(file) && example.contains(words),
            "{example}"
        );
    }
    let output = machine.netfix(&["check", "--merge", "good", "old", "--max-age", "3h"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        text.lines().last(),
        Some("1 of 2 nodes: well; 1 UNKNOWN: old")
    );
    // Some pods are not the node.
    let text = fs::read_to_string(machine.folder.path().join("good")).unwrap();
    let part = text.replace("\"check\":{", "\"check\":{\"selection\":true,");
    fs::write(machine.folder.path().join("part"), part).unwrap();
    let merged = document(&machine, &["check", "--merge", "good", "part"], 3);
    assert_eq!(merged["fleet"]["verdicts"]["UNKNOWN"], 1);
    assert_eq!(merged["fleet"]["problems"][0]["code"], "not-selected");
    // What was lost then is no better now.
    let merged = document(&machine, &["check", "--merge", "good", "bad"], 2);
    assert_eq!(merged["fleet"]["nodes"][0]["verdict"], "CRITICAL");
    let words = ["check", "--merge", "good", "warned", "--max-age", "5h"];
    document(&machine, &words, 1);
    document(
        &machine,
        &["check", "--merge", "good", "old", "--max-age", "500days"],
        0,
    );
}

#[test]
fn a_node_counts_once_by_its_newest_document_and_that_is_told() {
    let machine = Machine::new();
    check(&machine, "first", "a", Some(hours_ago(2)), "CRITICAL");
    check(&machine, "last", "a", Some(hours_ago(0)), "OK");
    check(&machine, "other", "b", Some(hours_ago(0)), "OK");
    for order in [["first", "last", "other"], ["last", "other", "first"]] {
        let merged = document(&machine, &[&["check", "--merge"], &order[..]].concat(), 0);
        let nodes = merged["fleet"]["nodes"].as_array().unwrap();
        let files: Vec<_> = nodes.iter().map(|node| &node["file"]).collect();
        assert_eq!(files, ["last", "other"]);
        let [note] = &merged["problems"].as_array().unwrap()[..] else {
            panic!("{merged:#}");
        };
        assert_eq!(
            (&note["object"], &note["severity"]),
            (&"a".into(), &"info".into())
        );
        let message = note["message"].as_str().unwrap();
        assert!(
            message.contains("1 older document") && message.contains("in last"),
            "{message}"
        );
    }
    let output = machine.netfix(&["check", "--merge", "last", "last"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.ends_with("1 node: all well\n"), "{text}");

    // Windows too: the later one of a node counts. Another machine of the same name is another node.
    let (mut earlier, mut clone) = (fixture("troubled"), fixture("rolled-back"));
    for window in [&mut earlier, &mut clone] {
        window.node = fixture("well").node;
    }
    clone.node.machine_id = Some("0123456789abcdef0123456789abcdef".to_owned());
    earlier.started = "2026-11-01T00:00:00.000Z".to_owned();
    for (file, window) in [("1", earlier), ("2", fixture("well")), ("3", clone)] {
        let output = Machine::with(&[window]).netfix(&["report", "-o", "json"]);
        fs::write(machine.folder.path().join(file), output.stdout).unwrap();
    }
    let merged = document(&machine, &["report", "--merge", "1", "2", "3"], 0);
    let nodes = merged["fleet"]["nodes"].as_array().unwrap();
    let verdicts: Vec<_> = nodes.iter().map(|node| &node["verdict"]).collect();
    assert_eq!(verdicts, ["rolled-back", "well"]);
}

#[test]
fn the_worst_check_is_the_exit_code() {
    let machine = Machine::new();
    for (node, status) in [
        ("a", "OK"),
        ("b", "WARNING"),
        ("c", "UNKNOWN"),
        ("d", "CRITICAL"),
    ] {
        check(&machine, node, node, Some(Timestamp::now()), status);
    }
    for (files, exit) in [
        (&["a"][..], 0),
        (&["a", "b"], 1),
        (&["a", "b", "c"], 3),
        (&["a", "c", "d"], 2),
        (&["a", "missing"], 3),
        (&["d", "missing"], 2),
    ] {
        let words = [&["check", "--merge"], files].concat();
        let document = document(&machine, &words, exit);
        assert_eq!(document["exit"], exit, "{files:?}");
        let mut read = files.iter().filter(|file| file.len() == 1);
        assert_eq!(
            document["fleet"]["nodes"][0]["hostname"],
            *read.next_back().expect("a node"),
            "the worst is not the first"
        );
    }
    // A document of another command is no check.
    fs::write(machine.folder.path().join("e"), report("well", "e", "json")).unwrap();
    document(&machine, &["check", "--merge", "a", "e"], 3);
}

#[test]
fn the_page_has_every_node_and_escapes_what_nodes_say() {
    let hostile = "<script>alert(1)</script>";
    let machine = fleet(&[("well", "node1"), ("troubled", "node2")]);
    fs::write(
        machine.folder.path().join("x.json"),
        report("well", hostile, "json"),
    )
    .unwrap();
    let words = [
        "report",
        "--merge",
        "node1.json",
        "node2.json",
        "x.json",
        "--html",
        "fleet.html",
    ];
    let document = document(&machine, &words, 0);
    assert_eq!(document["fleet"]["html"], "fleet.html");
    let page = fs::read_to_string(machine.folder.path().join("fleet.html")).unwrap();
    let html = Html::parse_document(&page);
    assert!(html.errors.is_empty(), "{:?}", html.errors);
    let select = |selector: &str| -> Vec<String> {
        let selector = Selector::parse(selector).unwrap();
        html.select(&selector)
            .map(|one| one.text().collect())
            .collect()
    };
    let mut nodes = select("#nodes ~ div tbody th");
    nodes.sort();
    assert_eq!(nodes, [hostile, "node1", "node2"]);
    assert!(select("script").is_empty() && select("link").is_empty() && select("img").is_empty());
    assert!(page.contains("default-src 'none'"));
    assert!(!select("#problems ~ div tbody tr").is_empty());
    assert!(!select("#drivers ~ div tbody tr").is_empty());
}

#[test]
fn a_page_that_cannot_be_written_is_a_failure_and_the_table_is_still_printed() {
    let machine = fleet(&[("well", "node1")]);
    let words = [
        "report",
        "--merge",
        "node1.json",
        "--html",
        "no/such/folder.html",
    ];
    let document = document(&machine, &words, 1);
    assert_eq!(document["fleet"]["html"], Value::Null);
    assert_eq!(document["fleet"]["nodes"][0]["hostname"], "node1");
    assert_eq!(document["problems"].as_array().unwrap().len(), 1);
}
