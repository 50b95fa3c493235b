//! The thread that writes: all in order, and nothing after a failure.

use std::path::Path;
use std::sync::mpsc::{self, Receiver};

use engine::RecordId;
use store::{Head, Keep, Store, StoreError, Told, Writer};

use crate::fixture::{KEEP, answered, at, beside, config, filled, folder, many, numbered, sound};

type Heard = Receiver<Result<Head, StoreError>>;

fn outcome(said: Told) -> Result<Head, StoreError> {
    match said {
        Told::Durable(head) => Ok(head),
        Told::Failed(error) | Told::NoSnapshot(error) => Err(error),
        Told::Snapshot(snapshot) => panic!("{snapshot:?}"),
    }
}

fn writer(store: Store) -> (Writer, Heard) {
    let (tell, told) = mpsc::channel();
    let writer = Writer::start(store, config(), at(1), move |said| {
        tell.send(outcome(said)).unwrap()
    })
    .unwrap();
    (writer, told)
}

/// Hands these over, one by one, and ends.
fn write(folder: &Path, count: u64) -> Heard {
    let (writer, told) = writer(Store::open(folder).unwrap());
    for (id, record) in numbered(1, many(count)) {
        writer.write(vec![(id, record)], KEEP, at(id.0));
    }
    writer.end();
    told
}

#[test]
fn what_waits_is_written_before_the_end() {
    let folder = folder();
    write(folder.path(), 300);
    assert_eq!(sound(folder.path()), many(300));
}

#[test]
fn what_is_told_grows_up_to_the_last() {
    let folder = folder();
    let told: Vec<_> = write(folder.path(), 300)
        .iter()
        .map(|said| said.unwrap().count)
        .collect();
    assert!(told.is_sorted_by(|one, next| one < next), "{told:?}");
    assert_eq!(told.last(), Some(&300));
}

#[test]
fn what_is_told_is_durable() {
    let folder = folder();
    let (writer, told) = writer(Store::open(folder.path()).unwrap());
    for (id, record) in numbered(1, many(20)) {
        writer.write(vec![(id, record)], KEEP, at(1));
        let told = told.recv().unwrap().unwrap().count;
        let there: u64 = beside(folder.path())
            .query_row("SELECT max(id) FROM record", [], |row| row.get(0))
            .unwrap();
        assert_eq!(there, told);
    }
    writer.end();
}

#[test]
fn a_writer_with_nothing_to_write_tells_nothing() {
    let folder = folder();
    assert!(write(folder.path(), 0).recv().is_err());
}

/// What is told of three batches where the second cannot be written, and the third could.
fn failing(folder: &Path) -> Vec<Result<Head, StoreError>> {
    let store = filled(folder, &many(10));
    let sql = beside(folder);
    sql.execute_batch(
        "CREATE TRIGGER full BEFORE INSERT ON record WHEN NEW.id = 12 \
         BEGIN SELECT RAISE(ABORT, 'full'); END",
    )
    .unwrap();
    let (writer, told) = writer(store);
    let records = numbered(1, many(12));
    let hand = |id: usize| writer.write(vec![records[id - 1].clone()], KEEP, at(1));
    hand(11);
    let mut said = vec![told.recv().unwrap()];
    hand(12);
    said.push(told.recv().unwrap());
    sql.execute_batch("DROP TRIGGER full").unwrap();
    hand(12);
    writer.end();
    said.extend(told);
    said
}

#[test]
fn a_failure_is_told_once_and_nothing_after_it() {
    let folder = folder();
    let said = failing(folder.path());
    assert!(
        matches!(
            said[..],
            [Ok(Head { count: 11, .. }), Err(StoreError::Sql { .. })]
        ),
        "{said:?}"
    );
}

#[test]
fn nothing_is_written_after_a_failure() {
    let folder = folder();
    failing(folder.path());
    assert_eq!(sound(folder.path()), many(11));
}

#[test]
fn a_record_out_of_turn_is_told_as_a_failure() {
    let folder = folder();
    let (writer, told) = writer(filled(folder.path(), &many(10)));
    writer.write(numbered(12, many(1)), KEEP, at(1));
    writer.end();
    let said: Vec<_> = told.iter().collect();
    assert!(
        matches!(said[..], [Err(StoreError::OutOfTurn { record: 11, .. })]),
        "{said:?}"
    );
}

#[test]
fn how_long_contents_are_kept_counts_from_the_batch_on_that_says_so() {
    let folder = folder();
    let (tell, told) = mpsc::channel();
    let (go_on, gate) = mpsc::channel::<()>();
    let store = Store::open(folder.path()).unwrap();
    let writer = Writer::start(store, config(), at(1), move |said| {
        tell.send(outcome(said)).unwrap();
        let _ = gate.recv();
    })
    .unwrap();
    let mut records = (1..).map(|id| (RecordId(id), answered(id, "answer", 5)));
    let mut hand = |keep| writer.write(vec![records.next().unwrap()], keep, at(5));
    hand(KEEP);
    told.recv().unwrap().unwrap();
    // Both wait, and are written as one.
    hand(KEEP);
    hand(Keep { answers: 1, ..KEEP });
    drop(go_on);
    writer.end();
    let until: u64 = beside(folder.path())
        .query_row("SELECT until FROM content WHERE id = 3", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(until, 6);
}
