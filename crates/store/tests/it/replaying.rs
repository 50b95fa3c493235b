//! What was appended is what a restart reads.

use store::{Store, StoreError};

use crate::fixture::{KEEP, beside, each, filled, folder, late, many, numbered, replayed, sound};

#[test]
fn every_kind_of_record_is_replayed_as_it_was() {
    let folder = folder();
    filled(folder.path(), &each());
    assert_eq!(sound(folder.path()), each());
}

#[test]
fn batches_are_replayed_in_order() {
    let folder = folder();
    let records = many(100);
    let mut store = Store::open(folder.path()).unwrap();
    for (turn, batch) in (0..).zip(records.chunks(7)) {
        store
            .append(numbered(turn * 7 + 1, batch.to_vec()), KEEP)
            .unwrap();
    }
    drop(store);
    assert_eq!(sound(folder.path()), records);
}

#[test]
fn the_head_is_the_same_after_a_replay() {
    let folder = folder();
    let head = filled(folder.path(), &each()).head().clone();
    assert_eq!(replayed(folder.path()).unwrap().1, head);
}

#[test]
fn appending_goes_on_after_a_replay() {
    let folder = folder();
    let records = many(50);
    filled(folder.path(), &records[..30]);
    let mut store = Store::open(folder.path()).unwrap();
    store.replay(|_, records| records.count()).unwrap();
    store
        .append(numbered(31, records[30..].to_vec()), KEEP)
        .unwrap();
    drop(store);
    assert_eq!(sound(folder.path()), records);
}

#[test]
fn a_replay_checks_what_was_not_taken_too() {
    let folder = folder();
    let head = filled(folder.path(), &many(10)).head().clone();
    let mut store = Store::open(folder.path()).unwrap();
    store.replay(|_, records| records.next()).unwrap();
    assert_eq!(*store.head(), head);
}

#[test]
fn a_record_out_of_turn_is_refused() {
    for first in [1, 10, 12] {
        let folder = folder();
        let mut store = filled(folder.path(), &many(10));
        let refused = store.append(numbered(first, many(1)), KEEP);
        assert!(
            matches!(refused, Err(StoreError::OutOfTurn { record: 11, .. })),
            "{first}: {refused:?}"
        );
    }
}

#[test]
fn of_a_batch_that_is_refused_nothing_is_written() {
    let folder = folder();
    let mut store = filled(folder.path(), &many(10));
    let mut batch = numbered(11, many(3));
    batch[2].0.0 = 14;
    let head = store.head().clone();
    store.append(batch, KEEP).unwrap_err();
    assert_eq!(*store.head(), head);
    drop(store);
    assert_eq!(sound(folder.path()), many(10));
}

#[test]
fn of_a_batch_that_fails_nothing_is_written() {
    let folder = folder();
    let mut store = filled(folder.path(), &many(10));
    beside(folder.path())
        .execute_batch(
            "CREATE TRIGGER full BEFORE INSERT ON record WHEN NEW.id = 13 \
             BEGIN SELECT RAISE(ABORT, 'full'); END",
        )
        .unwrap();
    let head = store.head().clone();
    let refused = store.append(numbered(11, many(3)), KEEP);
    assert!(
        matches!(refused, Err(StoreError::Sql { .. })),
        "{refused:?}"
    );
    assert_eq!(*store.head(), head);
    drop(store);
    assert_eq!(sound(folder.path()), many(10));
}

#[test]
fn a_store_that_was_not_replayed_takes_nothing() {
    let folder = folder();
    filled(folder.path(), &many(10));
    let mut store = Store::open(folder.path()).unwrap();
    store
        .append(numbered(1, vec![late(1, 1)]), KEEP)
        .unwrap_err();
    drop(store);
    assert_eq!(sound(folder.path()), many(10));
}
