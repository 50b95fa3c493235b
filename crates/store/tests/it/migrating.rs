//! A file of layout 1 becomes one of today.

use std::path::Path;

use rusqlite::params;
use store::{Store, StoreError};

use crate::fixture::{
    LITTLE, answered, asked, audited, beside, database, empty, evicted, filled, folder, late, more,
    number, opened, replayed, snapshot, started, state, sweep,
};

const LAYOUT: &str = "
    PRAGMA auto_vacuum = INCREMENTAL;
    PRAGMA journal_mode = WAL;
    CREATE TABLE record (
        id   INTEGER PRIMARY KEY,
        text TEXT NOT NULL,
        hash TEXT NOT NULL
    ) STRICT;
    CREATE TABLE content (
        id    INTEGER PRIMARY KEY,
        until INTEGER NOT NULL,
        text  TEXT NOT NULL
    ) STRICT;
    CREATE TABLE forgotten (before INTEGER NOT NULL) STRICT;
    INSERT INTO forgotten VALUES (0);
    PRAGMA application_id = 0x726f6c62;
    PRAGMA user_version = 1;
";

fn records() -> Vec<engine::Record> {
    let mut question = asked(2, "{\"to\":\"x\"}", 4, 1_000_000);
    if let engine::Record::Asked { basis, .. } = &mut question {
        *basis = None;
    }
    vec![
        opened("work", 1),
        answered(1, "answer", 3),
        question,
        answered(3, "dead", 5),
        evicted(3, 6),
    ]
}

/// These, as the version before wrote them.
fn layout_1(folder: &Path) {
    let today = crate::fixture::folder();
    drop(filled(today.path(), &records()));
    let sql = beside(folder);
    sql.execute_batch(LAYOUT).unwrap();
    sql.execute(
        "ATTACH ? AS today",
        params![database(today.path()).to_str().unwrap()],
    )
    .unwrap();
    sql.execute_batch(
        "INSERT INTO record SELECT id, text, hash FROM today.record; \
         INSERT INTO content SELECT id, until, text FROM today.content",
    )
    .unwrap();
    let new = number(
        folder,
        "SELECT count(*) FROM record WHERE text LIKE '%\"basis\"%'",
    );
    assert_eq!(new, 0);
}

#[test]
fn a_file_of_layout_1_is_replayed_whole() {
    let folder = folder();
    layout_1(folder.path());
    assert_eq!(replayed(folder.path()).unwrap().0, records());
    assert_eq!(number(folder.path(), "PRAGMA user_version"), 2);
}

#[test]
fn a_row_that_layout_1_wrote_is_read() {
    let folder = folder();
    let sql = beside(folder.path());
    sql.execute_batch(LAYOUT).unwrap();
    let text = r#"{"id":1,"record":{"record":"draining","at":5,"by":null},"content":null}"#;
    let head = store::Head::empty().and(text);
    sql.execute(
        "INSERT INTO record VALUES (1, ?, ?)",
        params![text, head.hash.as_str()],
    )
    .unwrap();
    drop(sql);
    assert_eq!(replayed(folder.path()).unwrap().1, head);
}

#[test]
fn it_goes_on_with_snapshots_and_gives_records_up() {
    let folder = folder();
    layout_1(folder.path());
    let mut store = empty(folder.path());
    let mut all = records();
    for _ in 0..3 {
        all.push(late(1, 40));
        more(&mut store, &all[all.len() - 1..]);
        all.push(snapshot(&mut store, folder.path(), LITTLE));
        sweep(&mut store);
    }
    drop(store);
    assert_eq!(started(folder.path()).unwrap(), state(&all));
    assert_eq!(audited(folder.path()).unwrap(), [9, 10, 11]);
    let dead = "SELECT count(*) FROM content WHERE id = 4";
    assert_eq!(number(folder.path(), dead), 0);
}

#[test]
fn a_snapshot_is_due_at_once() {
    let folder = folder();
    layout_1(folder.path());
    let store = empty(folder.path());
    // A day since 0: nobody knows when its record began.
    let days = crate::fixture::at(24 * 3600 * 1000);
    assert!(store.is_snapshot_due(crate::fixture::ALL, days));
}

#[test]
fn an_auditor_is_told_who_leads_it_on() {
    let folder = folder();
    layout_1(folder.path());
    let error = Store::open_read_only(&database(folder.path())).unwrap_err();
    assert!(
        matches!(error, StoreError::Older { found: 1, .. }),
        "{error}"
    );
    assert!(
        error.to_string().contains("start rolebrokerd once"),
        "{error}"
    );
    assert_eq!(number(folder.path(), "PRAGMA user_version"), 1);
}

#[test]
fn a_step_that_fails_leaves_layout_1() {
    let folder = folder();
    layout_1(folder.path());
    // In the way of the last table.
    beside(folder.path())
        .execute_batch("CREATE TABLE segment (x)")
        .unwrap();
    Store::open(folder.path()).unwrap_err();
    assert_eq!(number(folder.path(), "PRAGMA user_version"), 1);
    beside(folder.path())
        .execute_batch("DROP TABLE segment")
        .unwrap();
    assert_eq!(replayed(folder.path()).unwrap().0, records());
}

#[test]
fn layout_3_is_refused_and_untouched() {
    let folder = folder();
    layout_1(folder.path());
    beside(folder.path())
        .execute_batch("PRAGMA user_version = 3; PRAGMA wal_checkpoint(TRUNCATE)")
        .unwrap();
    let before = std::fs::read(database(folder.path())).unwrap();
    for error in [
        Store::open(folder.path()).unwrap_err(),
        Store::open_read_only(&database(folder.path())).unwrap_err(),
    ] {
        assert!(
            matches!(error, StoreError::Newer { found: 3, .. }),
            "{error}"
        );
    }
    assert!(std::fs::read(database(folder.path())).unwrap() == before);
}
