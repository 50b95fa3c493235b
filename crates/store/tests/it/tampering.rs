//! What somebody changed through SQLite itself is found, and where.

use store::StoreError;
use tempfile::TempDir;

use crate::fixture::{
    ALL, LITTLE, answered, asked, audited, beside, calls, empty, filled, folder, late, many, more,
    number, replayed, snapshot, started, sweep,
};

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
               INSERT INTO content SELECT 6, until, kind, role, text FROM content WHERE id = 5";
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
    assert_eq!(found("INSERT INTO content VALUES (11, 5, 1, '', '')"), 11);
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

/// A store that has given up its first records: an answer of then is kept, a segment is in the middle, and an older
/// snapshot's parts and rows are there if it is not swept.
fn given_up(sweeps: bool) -> TempDir {
    let folder = folder();
    let mut store = empty(folder.path());
    more(&mut store, &calls(6));
    more(&mut store, &[asked(7, "{\"pending\":1}", 9, 1_000_000)]);
    for retention in [ALL, ALL, LITTLE] {
        snapshot(&mut store, folder.path(), retention);
        if sweeps {
            sweep(&mut store);
        }
        more(
            &mut store,
            &[late(1, 60), answered(9, "later", 61), late(2, 62)],
        );
    }
    snapshot(&mut store, folder.path(), ALL);
    if sweeps {
        sweep(&mut store);
    }
    more(&mut store, &[late(3, 63)]);
    drop(store);
    folder
}

/// Which record a start and an auditor name once this was done.
fn found_by(sql: &str) -> (Option<u64>, Option<u64>) {
    let folder = given_up(true);
    found_in(&folder, sql)
}

fn found_in(folder: &TempDir, sql: &str) -> (Option<u64>, Option<u64>) {
    assert!(started(folder.path()).is_ok() && audited(folder.path()).is_ok());
    beside(folder.path()).execute_batch(sql).unwrap();
    let named = |error: Option<StoreError>| {
        error.map(|error| match error {
            StoreError::Damaged { record, .. } => record,
            other => panic!("not damage: {other}"),
        })
    };
    let audited = named(audited(folder.path()).err());
    (named(started(folder.path()).err()), audited)
}

/// The records of these stores: 8, and then four times a snapshot's and three more, but for the last.
const OF: u64 = 20;
const SAYS: u64 = 21;
/// Where the record begins.
const BEGINS: u64 = 13;

#[test]
fn the_store_that_is_tampered_with_is_as_it_is_told() {
    let folder = given_up(true);
    let one = |sql: &str| number(folder.path(), sql);
    assert_eq!(one("SELECT of FROM snapshot"), OF);
    assert_eq!(one("SELECT record FROM snapshot"), SAYS);
    assert_eq!(one("SELECT min(begins) FROM segment"), BEGINS);
    assert_eq!(one("SELECT count(*) FROM segment"), 3);
    assert_eq!(one("SELECT min(id) FROM record"), BEGINS);
    assert_eq!(one("SELECT max(id) FROM record"), SAYS + 1);
    assert!(one("SELECT count(*) FROM part") > 8);
}

#[test]
fn a_changed_removed_reordered_or_inserted_part_is_found_by_a_start() {
    for sql in [
        "UPDATE part SET text = replace(text, '\"owner\":1000', '\"owner\":1001')",
        "UPDATE part SET text = 'x' WHERE n = 3",
        "UPDATE part SET text = text || ' ' WHERE n = 2",
        "DELETE FROM part WHERE n = 2",
        "DELETE FROM part WHERE n = (SELECT max(n) FROM part)",
        "UPDATE part SET n = 100 WHERE n = 3",
        "INSERT INTO part SELECT of, 100, record, text FROM part WHERE n = 1",
        "INSERT INTO part SELECT of, -1, record, text FROM part WHERE n = 1",
        "DELETE FROM part",
        "UPDATE part SET of = of - 1",
    ] {
        assert_eq!(found_by(sql), (Some(OF), None), "{sql}");
    }
}

#[test]
fn a_content_that_a_snapshot_needs_and_is_changed_gone_or_anothers_is_found() {
    for sql in [
        "UPDATE content SET text = text || '.' WHERE id = 3",
        "UPDATE content SET text = text || '.' WHERE id = 8",
        "DELETE FROM content WHERE id = 3",
        "UPDATE part SET record = 4 WHERE record = 3",
        "UPDATE part SET record = NULL WHERE record = 3",
    ] {
        assert_eq!(found_by(sql), (Some(OF), None), "{sql}");
    }
}

#[test]
fn a_changed_hash_of_a_snapshot_is_found() {
    let sql = "UPDATE snapshot SET hash = replace(hash, substr(hash, 1, 1), 'x')";
    assert_eq!(found_by(sql), (Some(OF), Some(SAYS)));
}

#[test]
fn a_changed_head_of_a_snapshot_is_found_by_a_start() {
    let sql = "UPDATE snapshot SET head = hash";
    assert_eq!(found_by(sql), (Some(OF), None));
}

/// At the first record whose content no snapshot makes up for.
#[test]
fn a_snapshot_that_is_gone_is_found() {
    for sql in ["DELETE FROM snapshot", "UPDATE snapshot SET record = NULL"] {
        assert_eq!(found_by(sql), (Some(15), Some(15)), "{sql}");
    }
}

#[test]
fn a_snapshot_of_another_record_is_found() {
    for record in ["13", "20", "22", "100"] {
        let sql = format!("UPDATE snapshot SET record = {record}");
        assert_eq!(found_by(&sql), (Some(SAYS), Some(SAYS)), "{record}");
    }
}

#[test]
fn a_snapshot_as_of_another_record_is_found() {
    let sql = "UPDATE snapshot SET of = 19; UPDATE part SET of = 19";
    assert_eq!(found_by(sql), (Some(19), Some(SAYS)));
    let sql = "UPDATE snapshot SET of = 19, head = (SELECT hash FROM record WHERE id = 19); \
               UPDATE part SET of = 19";
    assert_eq!(found_by(sql), (Some(SAYS), Some(SAYS)));
}

#[test]
fn an_older_snapshot_in_the_place_of_the_newest_is_found() {
    for record in ["record", "(SELECT max(record) FROM snapshot)"] {
        let folder = given_up(false);
        let older = format!(
            "UPDATE snapshot SET record = {record} WHERE of = (SELECT of FROM snapshot ORDER BY of DESC LIMIT 1 OFFSET 1); \
             DELETE FROM snapshot WHERE of = {OF}; DELETE FROM part WHERE of = {OF}"
        );
        assert_eq!(
            found_in(&folder, &older),
            (Some(SAYS), Some(SAYS)),
            "{record}"
        );
    }
}

#[test]
fn a_front_cut_off_is_found() {
    for sql in [
        "DELETE FROM segment WHERE begins = 13",
        "DELETE FROM segment WHERE begins = 13; DELETE FROM record WHERE id < 17",
    ] {
        assert_eq!(found_by(sql), (Some(17), Some(17)), "{sql}");
    }
}

#[test]
fn records_before_the_second_segment_that_are_gone_are_found_by_an_auditor() {
    let sql = "DELETE FROM record WHERE id < 16";
    assert_eq!(found_by(sql), (None, Some(BEGINS)));
}

#[test]
fn an_older_front_put_back_is_found() {
    let folder = given_up(false);
    let sql = format!(
        "INSERT INTO segment SELECT 9, hash, 0, 0 FROM record WHERE id = 8; \
         UPDATE record SET id = id WHERE id < {BEGINS}"
    );
    assert_eq!(found_in(&folder, &sql), (Some(9), Some(9)));
}

#[test]
fn a_beginning_that_never_was_is_found() {
    let sql = format!(
        "DELETE FROM segment; INSERT INTO segment VALUES (1, '{}', 0, 0)",
        "0".repeat(64)
    );
    let (start, audit) = found_by(&sql);
    assert!(start.is_some() && audit.is_some(), "{start:?} {audit:?}");
}

#[test]
fn a_changed_or_lost_segment_is_found() {
    for (sql, named) in [
        (
            "UPDATE segment SET before = replace(before, 'a', 'b') WHERE begins = 13",
            13,
        ),
        (
            "UPDATE segment SET before = replace(before, 'a', 'b') WHERE begins = 17",
            16,
        ),
        ("UPDATE segment SET begins = 18 WHERE begins = 17", 17),
        ("UPDATE segment SET begins = 100 WHERE begins = 21", 99),
        ("DELETE FROM segment WHERE begins = 21", SAYS),
        ("UPDATE segment SET begins = -13 WHERE begins = 13", 1),
    ] {
        assert_eq!(found_by(sql), (Some(named), Some(named)), "{sql}");
    }
}

#[test]
fn segments_that_are_all_gone_are_found() {
    assert_eq!(found_by("DELETE FROM segment"), (Some(SAYS), Some(1)));
    assert_eq!(found("DELETE FROM segment"), 1);
}

#[test]
fn what_a_snapshot_s_rows_cannot_say_is_damage() {
    for sql in [
        "UPDATE snapshot SET of = -1",
        "UPDATE snapshot SET record = -1",
        "UPDATE forgotten SET before = -1",
        "UPDATE segment SET at = -1",
        "UPDATE segment SET bytes = -1",
    ] {
        assert_eq!(found_by(sql), (Some(1), Some(1)), "{sql}");
    }
}

#[test]
fn a_changed_text_of_the_last_record_in_the_snapshot_is_found_by_an_auditor() {
    let sql = format!("UPDATE record SET text = replace(text, '62', '63') WHERE id = {OF}");
    assert_eq!(found_by(&sql), (None, Some(OF)));
}

#[test]
fn a_changed_hash_of_the_last_record_in_the_snapshot_is_found() {
    let sql =
        format!("UPDATE record SET hash = replace(hash, substr(hash, 1, 1), 'x') WHERE id = {OF}");
    assert_eq!(found_by(&sql), (Some(OF), Some(OF)));
}

#[test]
fn a_changed_record_that_says_that_a_snapshot_counts_is_found() {
    let sql = format!(
        "UPDATE record SET text = replace(text, '\"of\":20', '\"of\":16') WHERE id = {SAYS}"
    );
    assert_eq!(found_by(&sql), (Some(SAYS), Some(SAYS)));
}

#[test]
fn a_segment_that_says_it_is_larger_than_all_gives_nothing_wrong_up() {
    let folder = given_up(true);
    let large = format!("UPDATE segment SET bytes = {} WHERE begins = 17", i64::MAX);
    beside(folder.path()).execute_batch(&large).unwrap();
    let mut store = empty(folder.path());
    snapshot(&mut store, folder.path(), LITTLE);
    sweep(&mut store);
    drop(store);
    assert!(audited(folder.path()).is_ok() && started(folder.path()).is_ok());
}
