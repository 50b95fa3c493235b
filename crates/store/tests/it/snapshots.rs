//! A snapshot and the records after it are as good as all records, from when it counts on, and whatever happens.

use std::path::Path;

use engine::{Part, Record};
use store::{Made, Store, StoreError};

use crate::fixture::{
    ALL, LITTLE, audited, calls, config, counting, database, day, empty, folder, killed, late,
    made, more, number, put, replayed, snapshot, started, state, sweep,
};

#[test]
fn a_start_from_a_snapshot_finds_what_a_start_from_all_records_finds() {
    for of in 1..day().len() {
        let folder = folder();
        let (mut before, after) = (day(), day().split_off(of));
        before.truncate(of);
        let mut store = empty(folder.path());
        more(&mut store, &before);
        before.push(snapshot(&mut store, folder.path(), ALL));
        sweep(&mut store);
        more(&mut store, &after);
        before.extend(after);
        drop(store);
        assert!(
            started(folder.path()).unwrap() == state(&before),
            "as of {of}"
        );
    }
}

#[test]
fn a_snapshot_of_a_start_from_a_snapshot_is_the_same_too() {
    let folder = folder();
    let mut store = empty(folder.path());
    let mut written = Vec::new();
    for record in day() {
        more(&mut store, std::slice::from_ref(&record));
        written.push(record);
        written.push(snapshot(&mut store, folder.path(), LITTLE));
        sweep(&mut store);
    }
    drop(store);
    assert_eq!(started(folder.path()).unwrap(), state(&written));
}

#[test]
fn a_start_reads_only_the_records_after_the_snapshot() {
    let folder = folder();
    let mut store = empty(folder.path());
    more(&mut store, &calls(20));
    let said = snapshot(&mut store, folder.path(), ALL);
    more(&mut store, &[late(1, 60)]);
    drop(store);
    assert_eq!(replayed(folder.path()).unwrap().0, [said, late(1, 60)]);
}

/// A store whose day was given up: two snapshots came after it, and everything was swept.
fn long_ago(folder: &Path) -> Vec<Part> {
    let mut store = empty(folder);
    more(&mut store, &day());
    for _ in 0..2 {
        snapshot(&mut store, folder, LITTLE);
        sweep(&mut store);
    }
    drop(store);
    assert!(number(folder, "SELECT min(id) FROM record") > day().len() as u64);
    started(folder).unwrap()
}

#[test]
fn an_answer_whose_record_was_given_up_is_there_byte_for_byte() {
    let folder = folder();
    let parts = long_ago(folder.path());
    let answers: Vec<_> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Answered { msg, .. } => Some(msg.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(answers, ["{\"text\":\"\u{0}\u{1f600}\"}", "the last"]);
}

#[test]
fn pending_arguments_whose_record_was_given_up_are_there_byte_for_byte() {
    let folder = folder();
    let parts = long_ago(folder.path());
    let pending: Vec<_> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Asked { request, .. } => Some(request.arguments.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(pending, ["{\"pending\":\"\u{e9}\"}"]);
}

#[test]
fn a_snapshot_that_is_not_recorded_does_not_count() {
    let folder = folder();
    let mut store = empty(folder.path());
    more(&mut store, &calls(20));
    put(&mut store, made(folder.path()), ALL);
    drop(store);
    assert_eq!(replayed(folder.path()).unwrap().0, calls(20));
}

#[test]
fn a_snapshot_that_is_not_recorded_is_swept_after_the_next_open() {
    for counts in [false, true] {
        let folder = folder();
        let mut store = empty(folder.path());
        more(&mut store, &calls(20));
        if counts {
            snapshot(&mut store, folder.path(), ALL);
            sweep(&mut store);
        }
        put(&mut store, made(folder.path()), ALL);
        drop(store);
        sweep(&mut empty(folder.path()));
        let left = number(folder.path(), "SELECT count(DISTINCT of) FROM part");
        assert_eq!(left, u64::from(counts));
        let left = number(folder.path(), "SELECT count(*) FROM snapshot");
        assert_eq!(left, u64::from(counts));
    }
}

#[test]
fn a_record_of_a_snapshot_that_is_not_there_is_refused_and_not_written() {
    let folder = folder();
    let mut store = empty(folder.path());
    more(&mut store, &calls(20));
    let mut said = put(&mut store, made(folder.path()), ALL);
    said.of.0 -= 1;
    let next = crate::fixture::numbered(22, vec![counting(said)]);
    let refused = store.append(next, crate::fixture::KEEP);
    assert!(
        matches!(refused, Err(StoreError::Sql { .. })),
        "{refused:?}"
    );
    drop(store);
    assert_eq!(started(folder.path()).unwrap(), state(&calls(20)));
}

/// That a start from the files as they are now finds what these records leave, and an auditor nothing wrong.
fn survives(folder: &Path, records: &[Record], step: &str) {
    let left = killed(folder);
    assert!(
        audited(left.path()).is_ok(),
        "{step}: {:?}",
        audited(left.path())
    );
    assert!(started(left.path()).unwrap() == state(records), "{step}");
    // Once more, after what is left over was taken away.
    let mut store = empty(left.path());
    sweep(&mut store);
    drop(store);
    assert!(
        started(left.path()).unwrap() == state(records),
        "{step}, swept"
    );
    assert!(audited(left.path()).is_ok(), "{step}, swept");
}

#[test]
fn a_power_cut_after_any_step_changes_nothing() {
    let folder = folder();
    let mut records = calls(1_200);
    let mut store = empty(folder.path());
    more(&mut store, &records);
    for turn in 0..3 {
        let mut made = made(folder.path());
        let mut chunks = 0;
        let said = loop {
            survives(
                folder.path(),
                &records,
                &format!("turn {turn}, put {chunks}"),
            );
            chunks += 1;
            if let Some(said) = store
                .put(&mut made, LITTLE, crate::fixture::at(50))
                .unwrap()
            {
                break said;
            }
        };
        assert!(chunks > 2, "{chunks}");
        survives(folder.path(), &records, "put");
        records.push(counting(said));
        more(&mut store, &records[records.len() - 1..]);
        let mut steps = 0;
        while store.has_leftovers() {
            survives(
                folder.path(),
                &records,
                &format!("turn {turn}, swept {steps}"),
            );
            store.sweep().unwrap();
            steps += 1;
        }
        records.push(late(1, 60));
        more(&mut store, &records[records.len() - 1..]);
        survives(folder.path(), &records, "gone on");
    }
}

#[test]
fn what_is_made_while_much_is_written_and_forgotten_is_sound() {
    let folder = folder();
    let mut store = empty(folder.path());
    more(&mut store, &calls(200));
    let (tell, told) = std::sync::mpsc::channel();
    let path = folder.path().to_owned();
    let making = std::thread::spawn(move || {
        for _ in 0..40 {
            let made = Made::of(&database(&path), config());
            if tell.send(made).is_err() {
                return;
            }
        }
    });
    let mut last = None;
    let mut turn = 0;
    while !making.is_finished() {
        turn += 1;
        let when = turn * 1_000;
        let next = crate::fixture::answered(1_000 + turn, "answer", when);
        more(&mut store, &[next]);
        store.forget(crate::fixture::at(when)).unwrap();
        for made in told.try_iter() {
            last = Some(made.unwrap());
        }
    }
    for made in told.try_iter() {
        last = Some(made.unwrap());
    }
    let said = counting(put(&mut store, last.unwrap(), ALL));
    let all = Store::open_read_only(&database(folder.path()))
        .unwrap()
        .replay(|_, records| records.collect::<Vec<_>>())
        .unwrap();
    more(&mut store, std::slice::from_ref(&said));
    drop(store);
    let all: Vec<_> = all.into_iter().chain([said]).collect();
    assert!(started(folder.path()).unwrap() == state(&all));
}

#[test]
fn a_copy_is_as_good_at_any_step() {
    let folder = folder();
    let mut store = empty(folder.path());
    let mut records = calls(700);
    more(&mut store, &records);
    let is_good = |store: &Store, records: &[Record]| {
        let copy = crate::fixture::folder();
        store
            .copy_into(database(copy.path()).to_str().unwrap())
            .unwrap();
        audited(copy.path()).unwrap();
        assert!(started(copy.path()).unwrap() == state(records));
    };
    for _ in 0..2 {
        let mut made = made(folder.path());
        store
            .put(&mut made, LITTLE, crate::fixture::at(50))
            .unwrap();
        is_good(&store, &records);
        records.push(counting(put(&mut store, made, LITTLE)));
        is_good(&store, &records[..records.len() - 1]);
        more(&mut store, &records[records.len() - 1..]);
        while store.has_leftovers() {
            is_good(&store, &records);
            store.sweep().unwrap();
        }
        is_good(&store, &records);
    }
}

#[test]
fn an_opened_store_that_was_not_read_sweeps_nothing() {
    let folder = folder();
    let mut store = empty(folder.path());
    more(&mut store, &calls(20));
    let said = snapshot(&mut store, folder.path(), ALL);
    drop(store);
    let mut store = Store::open(folder.path()).unwrap();
    for _ in 0..10 {
        store.sweep().unwrap();
    }
    drop(store);
    let all: Vec<_> = calls(20).into_iter().chain([said]).collect();
    assert_eq!(started(folder.path()).unwrap(), state(&all));
}
