//! window.json and the records.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

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
    let store = Store::new(folder.path().join("state"));
    (folder, store)
}

#[test]
fn a_record_that_cannot_be_completed_stays_as_last_saved() {
    let (_folder, store) = store();
    let (guard, open) = (
        store.lock("test").unwrap(),
        window("20261121T031500Z", None),
    );
    guard.save_window(&open).unwrap();
    // A folder in place of the temporary file makes every write fail.
    fs::create_dir_all(store.folder.join(".window.json.tmp/in")).unwrap();
    let closed = guard
        .close_window(&Window {
            ended: Some(9),
            ..open.clone()
        })
        .unwrap();
    assert!(
        matches!(&closed[..], [error] if error.source.is_some()),
        "{closed:?}"
    );
    assert_eq!(store.load_window(&open.id).unwrap(), Some(open));
    assert_eq!(store.open_window().unwrap(), None);
}

#[test]
fn a_window_that_cannot_be_closed_stays_open() {
    let (_folder, store) = store();
    let (guard, open) = (
        store.lock("test").unwrap(),
        window("20261121T031500Z", None),
    );
    guard.save_window(&open).unwrap();
    make_windows_folder(&store);
    fs::create_dir_all(store.record_path(&open.id).join("in")).unwrap();
    let ended = Window {
        ended: Some(9),
        ..open
    };
    let error = guard.close_window(&ended).unwrap_err();
    assert!(error.to_string().contains("window.json"), "{error}");
    assert_eq!(store.open_window().unwrap(), Some(ended));
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
    save(
        &store.record_path("later"),
        &Window {
            schema: window::SCHEMA + 1,
            ..window("later", None)
        },
    )
    .unwrap();
    let error = store.load_window("later").unwrap_err().to_string();
    assert!(error.contains("unknown schema 3"), "{error}");
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
