//! What of the record is given up, and that the rest is whole.

use engine::{Record, Snapshot};
use store::{Head, Store, StoreError};

use crate::fixture::{
    ALL, LITTLE, audited, calls, database, empty, folder, killed, late, more, number, snapshot,
    started, state, sweep,
};

/// Three times a few records and a snapshot, of which only the newest segments are kept. Not swept, if `sweeps` is not
/// set.
fn given_up(sweeps: bool) -> (tempfile::TempDir, Store, Vec<Record>) {
    let folder = folder();
    let mut store = empty(folder.path());
    let mut records = calls(20);
    more(&mut store, &records);
    for turn in 0..3 {
        records.push(snapshot(&mut store, folder.path(), LITTLE));
        if sweeps {
            sweep(&mut store);
        }
        let next: Vec<_> = (0..10).map(|number| late(number, 60 + turn)).collect();
        more(&mut store, &next);
        records.extend(next);
    }
    (folder, store, records)
}

fn begins(record: &Record) -> u64 {
    match record {
        Record::Snapshot { begins, .. } => begins.0,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_first_snapshot_gives_nothing_up() {
    let (_folder, _store, records) = given_up(true);
    assert_eq!(begins(&records[21]), 1);
}

#[test]
fn a_later_snapshot_gives_up_what_came_before_the_one_before_it() {
    let (_folder, _store, records) = given_up(true);
    assert_eq!((begins(&records[32]), begins(&records[43])), (22, 33));
}

#[test]
fn an_auditor_reads_from_where_the_last_snapshot_says() {
    for sweeps in [false, true] {
        let (folder, store, records) = given_up(sweeps);
        let kept: Vec<u64> = (33..=records.len() as u64).collect();
        assert_eq!(audited(folder.path()).unwrap(), kept);
        drop(store);
        assert_eq!(audited(folder.path()).unwrap(), kept);
    }
}

#[test]
fn the_chain_is_the_one_that_all_records_have() {
    let (folder, mut store, records) = given_up(false);
    let rows: u64 = number(folder.path(), "SELECT count(*) FROM record");
    assert_eq!(rows, records.len() as u64, "nothing is swept");
    let mut head = Head::empty();
    let mut texts = Vec::new();
    let sql = crate::fixture::beside(folder.path());
    let mut select = sql.prepare("SELECT text FROM record ORDER BY id").unwrap();
    let rows = select.query_map([], |row| row.get::<_, String>(0)).unwrap();
    for text in rows.map(Result::unwrap) {
        if head.count == 32 {
            store.read(|entries| entries.for_each(drop)).unwrap();
            assert_eq!(store.begins(), head);
        }
        head = head.and(&text);
        texts.push(text);
    }
    assert_eq!(*store.head(), head);
}

#[test]
fn a_file_that_is_half_swept_reads_the_same() {
    let (folder, mut store, records) = given_up(false);
    let read = |folder: &std::path::Path| {
        Store::open_read_only(&database(folder))
            .unwrap()
            .read(|entries| entries.collect::<Vec<_>>())
            .unwrap()
    };
    let kept = read(folder.path());
    while store.has_leftovers() {
        store.sweep().unwrap();
        assert!(read(folder.path()) == kept);
        assert!(started(killed(folder.path()).path()).unwrap() == state(&records));
    }
}

#[test]
fn sweeping_takes_the_rows_away() {
    let (folder, _store, _) = given_up(true);
    assert_eq!(number(folder.path(), "SELECT min(id) FROM record"), 33);
    assert_eq!(number(folder.path(), "SELECT count(*) FROM segment"), 2);
    assert_eq!(number(folder.path(), "SELECT count(*) FROM snapshot"), 1);
}

#[test]
fn space_is_given_back() {
    let folder = folder();
    let mut store = empty(folder.path());
    let long = Record::Late {
        at: crate::fixture::at(5),
        call: crate::fixture::call(1),
        status: "x".repeat(3_000),
    };
    more(&mut store, &vec![long; 5_000]);
    let pages = || number(folder.path(), "PRAGMA page_count");
    let before = pages();
    for _ in 0..2 {
        snapshot(&mut store, folder.path(), LITTLE);
        sweep(&mut store);
    }
    assert!(
        before > 3_000 && pages() < 100,
        "{before}, then {}",
        pages()
    );
}

#[test]
fn appending_goes_on_after_a_start() {
    let (folder, store, mut records) = given_up(true);
    drop(store);
    let mut store = empty(folder.path());
    more(&mut store, &[late(9, 90)]);
    records.push(late(9, 90));
    records.push(snapshot(&mut store, folder.path(), LITTLE));
    sweep(&mut store);
    drop(store);
    assert!(started(folder.path()).unwrap() == state(&records));
    assert_eq!(audited(folder.path()).unwrap().first(), Some(&44));
}

#[test]
fn what_is_kept_is_the_same_whether_a_start_came_between() {
    let said = |restarts: bool| {
        let (folder, mut store, _) = given_up(true);
        if restarts {
            drop(store);
            store = empty(folder.path());
        }
        let small = store::Retention {
            bytes: 4_000,
            ..ALL
        };
        let made = crate::fixture::made(folder.path());
        let Snapshot { begins, before, .. } = crate::fixture::put(&mut store, made, small);
        (begins, before)
    };
    assert_eq!(said(false), said(true));
}

#[test]
fn a_follower_that_reads_for_the_first_time_begins_with_the_first_that_is_kept() {
    let (folder, _store, records) = given_up(true);
    let mut reader = Store::open_read_only(&database(folder.path())).unwrap();
    let read: Vec<_> = reader
        .read_on(|entries| entries.map(|entry| entry.head.count).collect())
        .unwrap();
    assert_eq!(read, (33..=records.len() as u64).collect::<Vec<_>>());
}

#[test]
fn a_follower_goes_on_over_a_snapshot_that_gives_up_what_it_has_read() {
    let (folder, mut store, records) = given_up(true);
    let mut reader = Store::open_read_only(&database(folder.path())).unwrap();
    let mut read_on = || reader.read_on(|entries| entries.count()).unwrap();
    read_on();
    snapshot(&mut store, folder.path(), LITTLE);
    sweep(&mut store);
    more(&mut store, &[late(9, 90)]);
    assert!(number(folder.path(), "SELECT min(id) FROM record") <= records.len() as u64);
    assert_eq!(read_on(), 2);
}

#[test]
fn a_follower_is_told_that_what_comes_next_was_given_up() {
    let (folder, mut store, records) = given_up(true);
    let mut reader = Store::open_read_only(&database(folder.path())).unwrap();
    reader.read_on(|entries| entries.count()).unwrap();
    for _ in 0..3 {
        more(&mut store, &[late(9, 90)]);
        snapshot(&mut store, folder.path(), LITTLE);
    }
    let told = reader.read_on(|entries| entries.count());
    let next = records.len() as u64 + 1;
    assert!(
        matches!(told, Err(StoreError::Damaged { record, .. }) if record == next),
        "{told:?}"
    );
}
