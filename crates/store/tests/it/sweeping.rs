//! Which contents a snapshot makes room for, and which stay.

use std::path::Path;
use std::sync::mpsc;

use engine::Record;
use proto::Outcome;
use store::{Store, Told, Writer};

use crate::fixture::{
    ALL, KEEP, LITTLE, answered, asked, at, beside, config_with, dispatched, each, empty, evicted,
    folder, late, more, number, numbered, opened, snapshot, started, state, sweep,
};

/// The numbers of the records whose contents are there.
fn contents(folder: &Path) -> Vec<u64> {
    let sql = beside(folder);
    let mut ids = sql.prepare("SELECT id FROM content ORDER BY id").unwrap();
    let ids = ids.query_map([], |row| row.get(0)).unwrap();
    ids.map(Result::unwrap).collect()
}

fn kind(folder: &Path, id: u64) -> u64 {
    number(folder, &format!("SELECT kind FROM content WHERE id = {id}"))
}

/// A store with a session, these records from 2 on, and a snapshot, swept.
fn condensed(folder: &Path, records: &[Record]) -> Store {
    let mut store = empty(folder);
    more(&mut store, &[opened("work", 1)]);
    more(&mut store, records);
    snapshot(&mut store, folder, ALL);
    sweep(&mut store);
    store
}

fn settled(number: u64) -> Record {
    Record::Settled {
        at: at(20),
        approval: format!("a-{number}").as_str().try_into().unwrap(),
        outcome: Outcome::Refused,
        by: "people".to_owned(),
        comment: String::new(),
    }
}

/// Another role's arguments.
fn others(arguments: &str) -> Record {
    let mut record = dispatched(1, proto::Effects::Read, arguments, 5);
    if let Record::Dispatched { call, .. } = &mut record {
        call.session.role = "other".try_into().unwrap();
    }
    record
}

fn arguments(text: &str) -> Record {
    dispatched(1, proto::Effects::Read, text, 5)
}

#[test]
fn an_answer_that_no_snapshot_keeps_is_gone() {
    let folder = folder();
    condensed(
        folder.path(),
        &[
            answered(1, "dead", 5),
            answered(2, "kept", 6),
            evicted(1, 7),
        ],
    );
    assert_eq!(contents(folder.path()), [3, 5]);
}

#[test]
fn an_answer_that_ended_after_the_snapshot_stays_until_the_next() {
    let folder = folder();
    let mut store = condensed(folder.path(), &[answered(1, "answer", 5)]);
    more(&mut store, &[evicted(1, 7)]);
    assert_eq!(contents(folder.path()), [2, 3]);
    snapshot(&mut store, folder.path(), ALL);
    sweep(&mut store);
    assert_eq!(contents(folder.path()), [3, 5]);
}

#[test]
fn an_answer_that_is_kept_goes_when_its_time_is_over() {
    let folder = folder();
    let mut store = condensed(folder.path(), &[answered(1, "answer", 5)]);
    store.forget(at(5 + KEEP.answers)).unwrap();
    assert_eq!(contents(folder.path()), [2, 3]);
    store.forget(at(6 + KEEP.answers)).unwrap();
    assert_eq!(contents(folder.path()), [3]);
    drop(store);
    let left = started(folder.path()).unwrap();
    let watermark = |part: &engine::Part| matches!(part, engine::Part::Session { watermark: Some(call), .. } if call.0 == 1);
    assert!(left.iter().any(watermark), "{left:?}");
}

#[test]
fn pending_arguments_are_nobodys_to_take() {
    let folder = folder();
    let mut store = condensed(folder.path(), &[asked(1, "{}", 5, 1_000)]);
    store.outgrow(|_| 0).unwrap();
    assert_eq!(
        (contents(folder.path()), kind(folder.path(), 2)),
        (vec![2, 3], 1)
    );
}

#[test]
fn asked_arguments_are_an_audits_once_settled() {
    let folder = folder();
    condensed(folder.path(), &[asked(1, "{}", 5, 1_000), settled(1)]);
    assert_eq!(kind(folder.path(), 2), 2);
}

#[test]
fn settled_arguments_can_be_outgrown_and_the_state_is_the_same() {
    let folder = folder();
    let records = [asked(1, "{}", 5, 1_000), settled(1)];
    let mut store = condensed(folder.path(), &records);
    let before = started(folder.path()).unwrap();
    store.outgrow(|_| 0).unwrap();
    drop(store);
    assert_eq!(contents(folder.path()), [4]);
    assert_eq!(started(folder.path()).unwrap(), before);
    crate::fixture::audited(folder.path()).unwrap();
}

#[test]
fn arguments_of_a_decision_stay_after_a_snapshot_until_their_time() {
    let folder = folder();
    let mut store = condensed(folder.path(), &[arguments("{}")]);
    assert_eq!(contents(folder.path()), [2, 3]);
    store.forget(at(6 + KEEP.arguments)).unwrap();
    assert_eq!(contents(folder.path()), [3]);
}

#[test]
fn arguments_and_rules_go_with_their_record_and_what_is_live_stays() {
    let folder = folder();
    let configured = each()
        .into_iter()
        .find(|record| matches!(record, Record::Configured { .. }))
        .unwrap();
    let records = [
        arguments("{}"),
        configured,
        answered(1, "kept", 5),
        asked(2, "pending", 5, 1_000),
        asked(3, "settled", 5, 1_000),
        settled(3),
    ];
    let mut store = condensed(folder.path(), &records);
    assert_eq!(contents(folder.path()), [2, 3, 4, 5, 6, 8]);
    snapshot(&mut store, folder.path(), LITTLE);
    sweep(&mut store);
    assert_eq!(contents(folder.path()), [4, 5, 8, 9]);
    drop(store);
    crate::fixture::audited(folder.path()).unwrap();
}

#[test]
fn the_oldest_of_a_role_that_has_too_many_go_and_nobody_elses() {
    let folder = folder();
    let ten = "x".repeat(10);
    let mut store = empty(folder.path());
    let mut records = vec![opened("work", 1), others(&ten)];
    records.extend((0..9).map(|_| arguments(&ten)));
    records.push(answered(7, &ten, 6));
    more(&mut store, &records);
    store
        .outgrow(|role| if role == "bot" { 80 } else { 10 })
        .unwrap();
    // Seven are left, an eighth less than the quota.
    assert_eq!(contents(folder.path()), [2, 5, 6, 7, 8, 9, 10, 11, 12]);
    drop(store);
    assert_eq!(started(folder.path()).unwrap(), state(&records));
}

#[test]
fn who_has_no_more_than_the_quota_keeps_all() {
    let folder = folder();
    let mut store = empty(folder.path());
    more(&mut store, &[arguments("1234567890"), others("1234567890")]);
    store.outgrow(|_| 10).unwrap();
    assert_eq!(contents(folder.path()), [1, 2]);
}

#[test]
fn what_is_written_after_a_look_counts_at_the_next() {
    let folder = folder();
    let mut store = empty(folder.path());
    more(&mut store, &[arguments("1234567890")]);
    store.outgrow(|_| 10).unwrap();
    more(&mut store, &[others("1234567890"), arguments("1234567890")]);
    store.outgrow(|_| 10).unwrap();
    assert_eq!(contents(folder.path()), [2]);
}

#[test]
fn large_contents_are_forgotten_a_few_at_a_time() {
    let folder = folder();
    let large = "x".repeat(9 << 17);
    let records: Vec<_> = (1..=8).map(|number| answered(number, &large, 5)).collect();
    let mut store = empty(folder.path());
    more(&mut store, &records);
    let mut forgets = || store.forget(at(6 + KEEP.answers)).unwrap();
    assert!(forgets());
    assert_eq!(contents(folder.path()), [5, 6, 7, 8]);
    assert!(forgets() && !forgets());
    assert_eq!(contents(folder.path()), [0; 0]);
}

#[test]
fn large_arguments_are_outgrown_a_few_at_a_time() {
    let folder = folder();
    let large = "x".repeat(9 << 17);
    let mut store = empty(folder.path());
    more(&mut store, &vec![arguments(&large); 8]);
    assert!(store.outgrow(|_| 0).unwrap());
    assert_eq!(contents(folder.path()), [5, 6, 7, 8]);
    assert!(!store.outgrow(|_| 0).unwrap());
    assert_eq!(contents(folder.path()), [0; 0]);
}

#[test]
fn what_is_swept_is_no_longer_in_the_file() {
    let folder = folder();
    let records = [answered(1, "the word is xyzzy", 5), evicted(1, 7)];
    let _store = condensed(folder.path(), &records);
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let path = file.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let found = bytes.windows(5).any(|window| window == b"xyzzy");
        assert!(!found, "{}", path.display());
    }
}

#[test]
fn a_writer_begins_with_what_is_over_its_time_or_its_role_s_quota() {
    let folder = folder();
    let mut store = empty(folder.path());
    let ten = || arguments("1234567890");
    more(
        &mut store,
        &[answered(1, "old", 1), ten(), ten(), others("1234567890")],
    );
    let (tell, told) = mpsc::channel();
    let config = config_with("", "quota = { arguments_bytes = 16 }");
    let now = at(5 + KEEP.answers);
    let writer = Writer::start(store, config, now, move |word| tell.send(word).unwrap()).unwrap();
    // What follows a batch is done before the next.
    for number in [5, 6] {
        writer.write(numbered(number, vec![late(number, 6)]), KEEP, now);
        assert!(matches!(told.recv().unwrap(), Told::Durable(_)));
    }
    writer.end();
    assert_eq!(contents(folder.path()), [3, 4]);
}
