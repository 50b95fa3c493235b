//! An auditor goes on reading while a broker writes.

use store::{Store, StoreError};

use crate::fixture::{KEEP, beside, database, filled, folder, many, numbered};

fn read_on(store: &mut Store) -> Result<Vec<u64>, StoreError> {
    store.read_on(|entries| entries.map(|entry| entry.head.count).collect())
}

#[test]
fn what_was_appended_since_is_read_and_nothing_twice() {
    let folder = folder();
    let records = many(9);
    let mut writer = filled(folder.path(), &records[..4]);
    let mut reader = Store::open_read_only(&database(folder.path())).unwrap();
    assert_eq!(read_on(&mut reader).unwrap(), [1, 2, 3, 4]);
    assert_eq!(read_on(&mut reader).unwrap(), [0; 0]);
    let version = reader.version().unwrap();
    assert_eq!(reader.version().unwrap(), version);
    writer
        .append(numbered(5, records[4..].to_vec()), KEEP)
        .unwrap();
    assert_ne!(reader.version().unwrap(), version);
    assert_eq!(read_on(&mut reader).unwrap(), [5, 6, 7, 8, 9]);
    assert_eq!(reader.head(), writer.head());
}

#[test]
fn what_a_transaction_has_not_committed_is_not_read() {
    let folder = folder();
    let mut writer = filled(folder.path(), &many(2));
    let mut reader = Store::open_read_only(&database(folder.path())).unwrap();
    assert_eq!(read_on(&mut reader).unwrap(), [1, 2]);
    let other = beside(folder.path());
    other
        .execute_batch("BEGIN IMMEDIATE; INSERT INTO record VALUES (3, 'x', 'y')")
        .unwrap();
    assert_eq!(read_on(&mut reader).unwrap(), [0; 0]);
    other.execute_batch("ROLLBACK").unwrap();
    writer
        .append(numbered(3, many(3)[2..].to_vec()), KEEP)
        .unwrap();
    assert_eq!(read_on(&mut reader).unwrap(), [3]);
}

#[test]
fn a_record_that_was_read_and_is_cut_off_or_written_anew_is_damage() {
    for sql in [
        "DELETE FROM record WHERE id = 3",
        "UPDATE record SET hash = (SELECT hash FROM record WHERE id = 1) WHERE id = 3",
    ] {
        let folder = folder();
        drop(filled(folder.path(), &many(3)));
        let mut reader = Store::open_read_only(&database(folder.path())).unwrap();
        read_on(&mut reader).unwrap();
        beside(folder.path()).execute_batch(sql).unwrap();
        let damaged = read_on(&mut reader).unwrap_err();
        assert!(
            matches!(damaged, StoreError::Damaged { record: 3, .. }),
            "{sql}: {damaged}"
        );
    }
}

#[test]
fn an_appended_record_that_does_not_follow_is_damage() {
    let folder = folder();
    drop(filled(folder.path(), &many(3)));
    let mut reader = Store::open_read_only(&database(folder.path())).unwrap();
    read_on(&mut reader).unwrap();
    beside(folder.path())
        .execute(
            "INSERT INTO record SELECT 4, text, hash FROM record WHERE id = 3",
            [],
        )
        .unwrap();
    let damaged = read_on(&mut reader).unwrap_err();
    assert!(
        matches!(damaged, StoreError::Damaged { record: 4, .. }),
        "{damaged}"
    );
}
