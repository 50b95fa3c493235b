//! Contents go when their time is over, and not before.

use std::path::Path;

use engine::Record;
use store::{Head, Keep, Store};

use crate::fixture::{
    KEEP, answered, asked, at, beside, database, evicted, filled, folder, late, numbered, replayed,
    sound,
};

/// What is replayed once contents were forgotten at this time.
fn after(folder: &Path, records: &[Record], now: u64) -> Vec<Record> {
    let mut store = filled(folder, records);
    store.forget(at(now)).unwrap();
    drop(store);
    sound(folder)
}

#[test]
fn an_answer_is_kept_until_its_time_is_over() {
    let folder = folder();
    let records = [answered(1, "answer", 5)];
    assert_eq!(after(folder.path(), &records, 5 + KEEP.answers), records);
}

#[test]
fn an_answer_that_is_forgotten_is_replayed_as_its_end() {
    let folder = folder();
    let records = [answered(1, "answer", 5), late(2, 6)];
    let after = after(folder.path(), &records, 6 + KEEP.answers);
    assert_eq!(after, [evicted(1, 5), late(2, 6)]);
}

#[test]
fn arguments_are_kept_until_their_time_is_over() {
    let folder = folder();
    let records = [asked(1, "{}", 5, 10)];
    assert_eq!(after(folder.path(), &records, 5 + KEEP.arguments), records);
}

#[test]
fn arguments_that_are_forgotten_are_replayed_empty() {
    let folder = folder();
    let records = [asked(1, "{}", 5, 10)];
    let after = after(folder.path(), &records, 6 + KEEP.arguments);
    assert_eq!(after, [asked(1, "", 5, 10)]);
}

#[test]
fn arguments_are_kept_as_long_as_their_approval_is_pending() {
    let folder = folder();
    let expires = 50 + KEEP.arguments;
    let records = [asked(1, "{}", 5, expires)];
    assert_eq!(after(folder.path(), &records, expires), records);
}

#[test]
fn arguments_that_are_never_kept_stay_as_long_as_their_approval_is_pending() {
    let folder = folder();
    let never = Keep {
        answers: 0,
        arguments: 0,
    };
    let records = [asked(1, "{}", 5, 10)];
    let mut store = Store::open(folder.path()).unwrap();
    store.append(numbered(1, records.to_vec()), never).unwrap();
    store.forget(at(10)).unwrap();
    drop(store);
    assert_eq!(sound(folder.path()), records);
}

#[test]
fn the_head_stays_as_it_was() {
    let folder = folder();
    let mut store = filled(folder.path(), &[answered(1, "answer", 5)]);
    let head: Head = store.head().clone();
    store.forget(at(6 + KEEP.answers)).unwrap();
    drop(store);
    assert_eq!(replayed(folder.path()).unwrap().1, head);
}

#[test]
fn appending_goes_on_after_forgetting() {
    let folder = folder();
    let mut store = filled(folder.path(), &[answered(1, "answer", 5)]);
    store.forget(at(6 + KEEP.answers)).unwrap();
    let more = answered(2, "answer", 6 + KEEP.answers);
    store.append(numbered(2, vec![more.clone()]), KEEP).unwrap();
    drop(store);
    assert_eq!(sound(folder.path()), [evicted(1, 5), more]);
}

#[test]
fn all_of_a_long_store_is_gone_over_in_rounds() {
    let folder = folder();
    let records: Vec<_> = (1..=50_000)
        .map(|number| answered(number, "x", 5))
        .collect();
    let mut store = filled(folder.path(), &records);
    for _ in 0..3 {
        store.forget(at(6 + KEEP.answers)).unwrap();
    }
    let left: u64 = beside(folder.path())
        .query_row("SELECT count(*) FROM content", [], |row| row.get(0))
        .unwrap();
    assert_eq!(left, 0);
}

#[test]
fn what_became_old_meanwhile_is_found_in_a_later_round() {
    let folder = folder();
    let mut store = filled(folder.path(), &[answered(1, "answer", 5)]);
    store.forget(at(5)).unwrap();
    store.forget(at(6 + KEEP.answers)).unwrap();
    drop(store);
    assert_eq!(sound(folder.path()), [evicted(1, 5)]);
}

#[test]
fn space_is_given_back() {
    let folder = folder();
    let large = "x".repeat(1_000_000);
    let records: Vec<_> = (1..=10).map(|number| answered(number, &large, 5)).collect();
    let mut store = filled(folder.path(), &records);
    let size = || {
        beside(folder.path())
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .unwrap();
        database(folder.path()).metadata().unwrap().len()
    };
    assert!(size() > 10_000_000);
    for _ in 0..3 {
        store.forget(at(6 + KEEP.answers)).unwrap();
    }
    let left = size();
    assert!(left < 100_000, "{left} bytes");
}

#[test]
fn what_is_forgotten_is_no_longer_in_the_file() {
    let folder = folder();
    let records = [
        answered(1, "kept", 5_000_000),
        answered(2, "the word is xyzzy", 5),
        asked(3, "the word is xyzzy", 5, 10),
    ];
    let mut store = filled(folder.path(), &records);
    store.forget(at(6 + KEEP.arguments)).unwrap();
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let path = file.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let found = bytes.windows(5).any(|window| window == b"xyzzy");
        assert!(!found, "{}", path.display());
    }
}

#[test]
fn a_reader_does_not_stop_what_is_forgotten() {
    let folder = folder();
    let mut store = filled(folder.path(), &[answered(1, "answer", 5)]);
    let reader = beside(folder.path());
    reader.execute_batch("BEGIN; SELECT * FROM record").unwrap();
    store.forget(at(6 + KEEP.answers)).unwrap();
    assert_eq!(sound(folder.path()), [evicted(1, 5)]);
}

#[test]
fn what_was_forgotten_stays_so_when_the_clock_goes_back() {
    let folder = folder();
    let mut store = filled(folder.path(), &[answered(1, "answer", 500)]);
    store.forget(at(501 + KEEP.answers)).unwrap();
    store
        .append(numbered(2, vec![answered(2, "answer", 5)]), KEEP)
        .unwrap();
    store.forget(at(6 + KEEP.answers)).unwrap();
    drop(store);
    assert_eq!(sound(folder.path()), [evicted(1, 500), evicted(2, 5)]);
}
