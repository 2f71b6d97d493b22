//! window.json and the records.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use crate::model::window;

fn window(id: &str, ended: Option<u64>) -> Window {
    let text = include_str!("../../../testdata/windows/well.json");
    let window: Window = serde_json::from_str(text).unwrap();
    Window {
        id: id.to_owned(),
        ended,
        ..window
    }
}

fn make_windows_folder(store: &Store) {
    lock::make_folder(&store.windows_folder()).unwrap();
}

fn store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store {
        memory: folder.path().join("memory"),
        ..Store::new(folder.path().join("state"))
    };
    (folder, store)
}

/// Folders in place of the temporary and the spare file make every write fail.
fn refuse_writes(store: &Store) {
    for name in [".window.json.tmp", ".window.json.spare"] {
        let path = store.folder.join(name);
        let _ = fs::remove_file(&path);
        fs::create_dir_all(path.join("in")).unwrap();
    }
}

fn allow_writes(store: &Store) {
    for name in [".window.json.tmp", ".window.json.spare"] {
        fs::remove_dir_all(store.folder.join(name)).unwrap();
    }
}

fn revised(window: &Window, ended: Option<u64>) -> Window {
    Window {
        ended,
        revision: Some(window.revision.unwrap_or_default() + 1),
        ..window.clone()
    }
}

#[test]
fn a_record_that_the_disk_refuses_is_read_from_memory_and_closed_later() {
    let (_folder, store) = store();
    let (guard, open) = (
        store.lock("test").unwrap(),
        window("20261121T031500Z", None),
    );
    guard.save_window(&open).unwrap();
    refuse_writes(&store);
    let phase = revised(&open, None);
    assert!(guard.save_window(&phase).is_err());
    assert_eq!(store.open_window().unwrap(), Some(phase.clone()));
    let ended = revised(&phase, Some(9));
    let closed = guard.close_window(&ended).unwrap();
    assert!(
        matches!(&closed[..], [error] if error.source.is_some()),
        "{closed:?}"
    );
    // The stale record is not published: readers have the one with the end.
    assert!(!store.record_path(&open.id).exists());
    assert_eq!(store.open_window().unwrap(), None);
    assert_eq!(store.windows().unwrap(), [open.id.as_str()]);
    assert_eq!(store.last_window().unwrap(), Some(ended.clone()));
    assert_eq!(store.load_window(&open.id).unwrap(), Some(ended.clone()));
    let log = guard.keep_log_in_memory(&open.id, b"a line\n").unwrap();
    allow_writes(&store);
    let adopted = Window {
        log: Some(log.display().to_string()),
        ..revised(&ended, Some(9))
    };
    assert_eq!(guard.close_window(&adopted).unwrap().len(), 0);
    guard.adopt_logs();
    let record = store.load_record(&open.id).unwrap().unwrap();
    assert_eq!(record.ended, Some(9));
    let kept = store.window_log_path(&open.id);
    assert_eq!(record.log.as_deref().map(Path::new), Some(&*kept));
    assert_eq!(fs::read(kept).unwrap(), b"a line\n");
    assert!(!store.memory.exists(), "nothing is left in memory");
    assert!(!store.has_window_file());
}

#[test]
fn a_log_in_memory_goes_with_its_record_and_stays_while_its_window_is_open() {
    let (_folder, store) = store();
    let guard = store.lock("test").unwrap();
    let open = window("20261121T031500Z", None);
    guard.save_window(&open).unwrap();
    let [live, stray] = [&*open.id, "20261121T031400Z"]
        .map(|id| guard.keep_log_in_memory(id, b"a line\n").unwrap());
    guard.adopt_logs();
    assert!(live.exists() && !stray.exists());
}

#[test]
fn a_record_grows_in_reserved_space_while_it_is_open_and_gives_the_rest_back() {
    use std::os::unix::fs::MetadataExt;
    let (_folder, store) = store();
    let (guard, open) = (store.lock("test").unwrap(), window("b", None));
    guard.save_window(&open).unwrap();
    let size = |path: &Path| {
        let meta = fs::metadata(path).unwrap();
        (meta.len(), meta.blocks() * 512)
    };
    let spare = store.folder.join(".window.json.spare");
    let (length, _) = size(&store.window_path());
    for path in [&store.window_path(), &spare] {
        assert!(size(path).1 >= 4 * length, "{:?}", size(path));
    }
    // A shorter record must not give space back either.
    let mut last = open;
    for pods in [5, 1, 3] {
        last = revised(&last, None);
        last.unselected = last.pods.iter().cycle().take(pods).cloned().collect();
        guard.save_window(&last).unwrap();
        assert_eq!(store.open_window().unwrap(), Some(last.clone()));
        for path in [&store.window_path(), &spare] {
            assert!(size(path).1 >= 4 * length, "{pods}: {:?}", size(path));
        }
    }
    guard.close_window(&revised(&last, Some(1))).unwrap();
    let (length, blocks) = size(&store.record_path("b"));
    assert!(blocks < length + 8192, "{length} {blocks}");
    assert!(!spare.exists());
}

#[test]
fn the_last_record_of_a_large_window_fits_into_the_space_that_the_first_reserved() {
    let whole = window("b", Some(1));
    let problem = whole.pods[0].info.id.clone();
    for count in [1, 3, 40, 250, 1000] {
        let mut last = whole.clone();
        last.pods = last.pods.iter().cycle().take(count).cloned().collect();
        let mut first = last.clone();
        for pod in &mut first.pods {
            (pod.after, pod.fingerprint_after, pod.gateways) = (None, None, Vec::new());
        }
        // Several problems of each pod.
        let cause = crate::model::problem::CheckCause::HostLost {
            what: crate::model::LossCause::LinkGone,
            generation: Some(1),
        };
        let problem = cause.error("x".repeat(200)).of(&problem);
        last.problems = vec![problem; 3 * count];
        let path = Path::new("window.json");
        let length = |window| encode(path, window).unwrap().len() as u64;
        let reserved = spare::space_for(length(&first));
        assert!(
            length(&last) <= reserved,
            "{count}: {} {reserved}",
            length(&last)
        );
    }
}

#[test]
fn windows_are_in_the_order_in_which_they_were_opened_whatever_the_clock_was() {
    let (_folder, store) = store();
    let guard = store.lock("test").unwrap();
    let numbered = |id: &str, number| Window {
        number,
        ..window(id, Some(1))
    };
    for id in ["20261125T140000Z", "20261124T140000Z"] {
        guard.close_window(&numbered(id, None)).unwrap();
    }
    assert_eq!(store.next_window_number().unwrap(), 1);
    for (number, id) in [
        (1, "20261125T143733Z"),
        (2, "20261125T134113Z"),
        (3, "20200101T000000Z"),
    ] {
        assert_eq!(store.next_window_number().unwrap(), number);
        guard.close_window(&numbered(id, Some(number))).unwrap();
    }
    let expected = [
        "20261124T140000Z",
        "20261125T140000Z",
        "20261125T143733Z",
        "20261125T134113Z",
        "20200101T000000Z",
    ];
    assert_eq!(store.windows().unwrap(), expected);
    assert_eq!(store.last_window().unwrap().unwrap().number, Some(3));
    // A damaged record does not become the newest one.
    fs::write(store.record_path("20261125T143733Z"), "{\"a\": 1").unwrap();
    let mut windows = store.windows().unwrap();
    assert_eq!(windows.pop().as_deref(), Some("20200101T000000Z"));
}

#[test]
fn the_oldest_records_are_removed_also_after_the_clock_was_set_back() {
    let (_folder, store) = store();
    let guard = store.lock("test").unwrap();
    make_windows_folder(&store);
    for number in 1..=55_u64 {
        let id = format!("20261121T0315{:02}Z", 59 - number);
        let record = Window {
            number: Some(number),
            ..window(&id, Some(1))
        };
        let path = store.record_path(&id);
        match number {
            55 => drop(guard.close_window(&record).unwrap()),
            _ => fs::write(&path, encode(&path, &record).unwrap()).unwrap(),
        }
    }
    let windows = store.windows().unwrap();
    assert_eq!(windows.len(), 50);
    assert_eq!(windows.last().unwrap(), "20261121T031504Z");
    assert_eq!(windows[0], "20261121T031553Z");
}

#[test]
fn a_damaged_file_is_kept_under_another_name_and_the_record_in_memory_is_used() {
    let (_folder, store) = store();
    let (guard, open) = (store.lock("test").unwrap(), window("b", None));
    guard.save_window(&open).unwrap();
    for (number, damage) in [(1, "{"), (2, "")] {
        fs::write(store.window_path(), damage).unwrap();
        assert!(store.window_damage().is_some());
        assert_eq!(store.open_window().unwrap(), Some(open.clone()));
        let aside = guard.replace_damaged_window(&open).unwrap();
        assert!(aside.ends_with(format!("window.json.damaged-{number}")));
        assert_eq!(fs::read_to_string(aside).unwrap(), damage);
        assert!(store.window_damage().is_none());
    }
    fs::remove_file(store.window_path()).unwrap();
    fs::create_dir_all(store.window_path().join("in")).unwrap();
    let aside = guard.replace_damaged_window(&open).unwrap();
    assert!(aside.join("in").exists());
    assert!(store.window_damage().is_none());
    // Without a record in memory nothing is known.
    fs::write(store.window_path(), "{").unwrap();
    store.forget_memory();
    assert!(store.open_window().is_err());
    guard.set_window_aside().unwrap();
    assert_eq!(store.open_window().unwrap(), None);
}

#[test]
fn a_window_of_another_boot_is_over_for_every_reader() {
    use crate::model::NodeIdentity;
    let (_folder, store) = store();
    let guard = store.lock("test").unwrap();
    let mut open = window("b", None);
    (open.exit, open.closed_by) = (None, None);
    guard.save_window(&open).unwrap();
    let boot = || NodeIdentity {
        boot_id: Some("another".to_owned()),
        ..NodeIdentity::default()
    };
    let store = store.settled(boot, |_| {});
    assert_eq!(store.open_window().unwrap(), None);
    let over = store.last_window().unwrap().unwrap();
    assert_eq!(
        (over.exit, over.closed_by.as_deref()),
        (Some(5), Some("reboot"))
    );
    assert_eq!(store.load_window("b").unwrap(), Some(over));
}

#[test]
fn a_window_that_cannot_be_moved_is_over_all_the_same() {
    let (_folder, store) = store();
    let (guard, open) = (
        store.lock("test").unwrap(),
        window("20261121T031500Z", None),
    );
    guard.save_window(&open).unwrap();
    make_windows_folder(&store);
    fs::create_dir_all(store.record_path(&open.id).join("in")).unwrap();
    let ended = revised(&open, Some(9));
    let failed = guard.close_window(&ended).unwrap();
    assert!(failed[0].to_string().contains("window.json"), "{failed:?}");
    assert_eq!(store.open_window().unwrap(), None);
    assert_eq!(store.unclosed_window().unwrap(), Some(ended));
}

#[test]
fn the_last_fifty_records_are_kept_with_their_logs() {
    let (_folder, store) = store();
    let guard = store.lock("test").unwrap();
    let ids: Vec<String> = (0..53)
        .map(|second| format!("20261121T0315{second:02}Z"))
        .collect();
    for id in &ids {
        make_windows_folder(&store);
        fs::write(store.window_log_path(id), "log").unwrap();
        fs::write(
            store.windows_folder().join(format!(".{id}.json.tmp")),
            "half",
        )
        .unwrap();
        guard.close_window(&window(id, Some(1))).unwrap();
    }
    assert_eq!(store.windows().unwrap(), ids[3..]);
    let mut logs = store.ids_of_windows(LOG).unwrap();
    logs.sort();
    assert_eq!(logs, ids[3..]);
    assert_eq!(
        fs::read_dir(store.windows_folder()).unwrap().count(),
        100,
        "no temporary file is left"
    );
}

#[test]
fn an_id_is_given_once() {
    let (_folder, store) = store();
    let guard = store.lock("test").unwrap();
    for expected in [
        "20261121T031500Z",
        "20261121T031500Z-02",
        "20261121T031500Z-03",
    ] {
        assert_eq!(store.free_window_id("20261121T031500Z").unwrap(), expected);
        guard.close_window(&window(expected, Some(1))).unwrap();
    }
    assert_eq!(
        store.windows().unwrap().last().unwrap(),
        "20261121T031500Z-03"
    );
}

#[test]
fn a_link_another_name_and_another_schema_are_refused() {
    let (_folder, store) = store();
    let guard = store.lock("test").unwrap();
    guard.close_window(&window("b", Some(1))).unwrap();
    symlink("b.json", store.record_path("link")).unwrap();
    assert!(matches!(store.load_window("link"), Err(error) if error.source.is_some()));
    fs::copy(store.record_path("b"), store.record_path("copy")).unwrap();
    let error = store.load_window("copy").unwrap_err().to_string();
    assert!(
        error.ends_with("it is the record of window b, which does not match its name"),
        "{error}"
    );
    let later = Window {
        schema: window::SCHEMA + 1,
        version: Some("9.8.7".to_owned()),
        ..window("later", None)
    };
    let path = store.record_path("later");
    let text = encode(&path, &later).unwrap();
    fs::write(&path, &text).unwrap();
    let error = store.load_window("later").unwrap_err();
    let words = error.to_string();
    assert!(
        error.is_newer() && words.contains("unknown schema 3"),
        "{words}"
    );
    assert!(words.contains("netfix 9.8.7 wrote it"), "{words}");
    // A damaged schema is damage.
    fs::write(&path, text.replace("\"schema\": 3", "\"schema\": 7")).unwrap();
    assert!(!store.load_window("later").unwrap_err().is_newer());
    fs::set_permissions(store.record_path("b"), fs::Permissions::from_mode(0o666)).unwrap();
    assert!(
        store
            .load_window("b")
            .unwrap_err()
            .to_string()
            .contains("only root")
    );
    symlink(store.record_path("b"), store.window_path()).unwrap();
    assert!(
        matches!(store.open_window(), Err(error) if error.source.is_some()),
        "a link is not an open window"
    );
}

#[test]
fn an_id_never_leads_out_of_the_folder() {
    let (_folder, store) = store();
    let guard = store.lock("test").unwrap();
    guard.save_window(&window("a", None)).unwrap();
    assert_eq!(store.load_window("../window").unwrap(), None);
    assert!(guard.save_window(&window("../x", None)).is_err());
    assert!(guard.close_window(&window("../x", None)).is_err());
    assert!(store.open_window().unwrap().is_some());
}

#[test]
fn a_log_is_read_from_its_end_in_whole_lines_wherever_it_is() {
    let (folder, store) = store();
    let guard = store.lock("test").unwrap();
    guard.close_window(&window("b", Some(1))).unwrap();
    let elsewhere = folder.path().join("b.log");
    let with_log = Window {
        log: Some(elsewhere.display().to_string()),
        ..window("b", None)
    };
    assert_eq!(store.window_log(&with_log, 2).unwrap(), None);
    fs::write(&elsewhere, b"one\ntwo\n\xffthree").unwrap();
    let last = |lines| store.window_log(&with_log, lines).unwrap().unwrap();
    assert_eq!(last(2), ["two", "\u{fffd}three"]);
    assert_eq!(last(9).len(), 3);
    fs::write(
        store.window_log_path("b"),
        "0123456789012345678901234567890\n".repeat(1 << 14),
    )
    .unwrap();
    assert_eq!(last(usize::MAX).len(), (256 << 10) / 32 - 1);
    assert!(last(usize::MAX).iter().all(|line| line.len() == 31));
    fs::remove_file(store.window_log_path("b")).unwrap();
    let foreign = Window {
        log: Some("/etc/passwd".to_owned()),
        ..with_log
    };
    assert_eq!(
        store.window_log(&foreign, 2).unwrap(),
        None,
        "whatever a record names is not its log"
    );
}

#[test]
fn an_address_in_a_record_is_an_address() {
    let text = include_str!("../../../testdata/windows/well.json");
    let other = text.replace("10.3.0.17/16", "10.3.0.17");
    assert_ne!(text, other);
    assert!(serde_json::from_str::<Window>(text).is_ok());
    assert!(serde_json::from_str::<Window>(&other).is_err());
}
