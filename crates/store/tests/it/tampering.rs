//! What somebody changed through SQLite itself is found, and where.

use store::StoreError;

use crate::fixture::{beside, filled, folder, many, replayed};

/// The record that is named once this was done to ten of them.
fn found(sql: &str) -> u64 {
    let folder = folder();
    filled(folder.path(), &many(10));
    beside(folder.path()).execute_batch(sql).unwrap();
    match replayed(folder.path()) {
        Err(StoreError::Damaged { record, .. }) => record,
        other => panic!("not found: {other:?}"),
    }
}

#[test]
fn a_changed_text_is_found() {
    let sql = "UPDATE record SET text = replace(text, 'result', 'failed') WHERE id = 5";
    assert_eq!(found(sql), 5);
}

#[test]
fn a_changed_hash_is_found() {
    let sql = "UPDATE record SET hash = (SELECT hash FROM record WHERE id = 4) WHERE id = 5";
    assert_eq!(found(sql), 5);
}

#[test]
fn a_hash_that_is_none_is_found() {
    assert_eq!(
        found("UPDATE record SET hash = upper(hash) WHERE id = 5"),
        5
    );
}

#[test]
fn a_row_that_is_gone_is_found() {
    assert_eq!(found("DELETE FROM record WHERE id = 5"), 5);
}

#[test]
fn a_first_row_that_is_gone_is_found() {
    assert_eq!(found("DELETE FROM record WHERE id = 1"), 1);
}

#[test]
fn a_row_gone_and_the_gap_closed_is_found() {
    let sql = "DELETE FROM content WHERE id = 5; DELETE FROM record WHERE id = 5; \
               UPDATE record SET id = id - 1 WHERE id > 5";
    assert_eq!(found(sql), 5);
}

#[test]
fn two_rows_swapped_are_found() {
    let sql = "UPDATE record SET id = 100 WHERE id = 5; UPDATE record SET id = 5 WHERE id = 9; \
               UPDATE record SET id = 9 WHERE id = 100";
    assert_eq!(found(sql), 5);
}

#[test]
fn two_texts_and_hashes_swapped_are_found() {
    let sql = "CREATE TABLE was AS SELECT * FROM record; \
               UPDATE record SET (text, hash) = (SELECT text, hash FROM was WHERE was.id = 14 - record.id) \
               WHERE id IN (5, 9); DROP TABLE was";
    assert_eq!(found(sql), 5);
}

#[test]
fn an_inserted_row_is_found() {
    let sql = "UPDATE record SET id = -id - 1 WHERE id >= 5; UPDATE record SET id = -id WHERE id < 0; \
               INSERT INTO record SELECT 5, text, hash FROM record WHERE id = 1";
    assert_eq!(found(sql), 5);
}

#[test]
fn a_row_before_the_first_is_found() {
    assert_eq!(
        found("INSERT INTO record SELECT -1, text, hash FROM record WHERE id = 1"),
        1
    );
}

#[test]
fn a_row_after_the_last_is_found() {
    assert_eq!(
        found("INSERT INTO record SELECT 11, text, hash FROM record WHERE id = 10"),
        11
    );
}

#[test]
fn a_changed_content_is_found() {
    assert_eq!(
        found("UPDATE content SET text = text || '.' WHERE id = 4"),
        4
    );
}

#[test]
fn a_content_moved_to_a_record_that_has_none_is_found() {
    let sql = "UPDATE content SET id = 5 WHERE id = 6; \
               INSERT INTO content SELECT 6, until, text, kind, role FROM content WHERE id = 5";
    assert_eq!(found(sql), 5);
}

#[test]
fn a_content_moved_to_another_content_s_record_is_found() {
    let sql = "UPDATE content SET text = (SELECT text FROM content WHERE id = 6) WHERE id = 8";
    assert_eq!(found(sql), 8);
}

#[test]
fn a_content_gone_before_its_time_is_found() {
    assert_eq!(found("DELETE FROM content WHERE id = 4"), 4);
}

#[test]
fn arguments_gone_before_their_time_are_found() {
    assert_eq!(found("DELETE FROM content WHERE id = 6"), 6);
}

#[test]
fn a_content_of_no_record_is_found() {
    assert_eq!(found("INSERT INTO content VALUES (11, 5, '', 1, '')"), 11);
}

/// The chain alone does not say where it ended: the head from outside does.
#[test]
fn a_tail_cut_off_is_told_by_the_head_alone() {
    let folder = folder();
    let head = filled(folder.path(), &many(10)).head().clone();
    beside(folder.path())
        .execute_batch("DELETE FROM record WHERE id > 7; DELETE FROM content WHERE id > 7")
        .unwrap();
    let (records, found) = replayed(folder.path()).unwrap();
    assert_eq!(records, many(7));
    assert_ne!(found, head);
}
