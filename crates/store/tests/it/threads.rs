//! The writer makes snapshots beside its writing, and room after them.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};

use engine::{Record, RecordId, Snapshot};
use policy::Config;
use store::{StoreError, Told, Writer};

use crate::fixture::{
    KEEP, answered, at, audited, beside, call, config_of, counting, database, empty, folder,
    number, opened, started, state, sweep,
};

fn tiny() -> Arc<Config> {
    config_of("audit_bytes = \"64KiB\"")
}

/// A writer, and what was handed to it.
struct Broker {
    writer: Option<Writer>,
    told: Receiver<Told>,
    records: Vec<Record>,
    durable: u64,
}

impl Broker {
    fn of(folder: &Path) -> Self {
        let (tell, told) = mpsc::channel();
        let store = empty(folder);
        let writer = Writer::start(store, tiny(), at(1), move |word| {
            let _ = tell.send(word);
        });
        let mut broker = Self {
            writer: Some(writer.unwrap()),
            told,
            records: Vec::new(),
            durable: 0,
        };
        broker.write(opened("work", 1));
        broker
    }

    fn write(&mut self, record: Record) {
        self.records.push(record.clone());
        let id = RecordId(self.records.len() as u64);
        let writer = self.writer.as_ref().unwrap();
        writer.write(vec![(id, record)], KEEP, at(50));
    }

    /// Records of about sixty kilobytes, a thousandth part of them answers.
    fn write_much(&mut self) {
        let from = self.records.len() as u64;
        for number in from..from + 99 {
            self.write(Record::Late {
                at: at(50),
                call: call(number),
                status: "x".repeat(500),
            });
        }
        self.write(answered(from, "answer", 50));
    }

    /// The next thing that is said other than how far all is durable.
    fn hear(&mut self) -> Told {
        loop {
            match self.told.recv().unwrap() {
                Told::Durable(head) => self.durable = head.count,
                word => return word,
            }
        }
    }

    fn hear_snapshot(&mut self) -> Snapshot {
        match self.hear() {
            Told::Snapshot(snapshot) => snapshot,
            other => panic!("{other:?}"),
        }
    }

    /// Waits until all that was handed over is durable; a snapshot that comes meanwhile.
    fn settle(&mut self) -> Option<Snapshot> {
        let mut snapshot = None;
        while self.durable < self.records.len() as u64 {
            match self.told.recv().unwrap() {
                Told::Durable(head) => self.durable = head.count,
                Told::Snapshot(said) => assert!(snapshot.replace(said).is_none()),
                other => panic!("{other:?}"),
            }
        }
        snapshot
    }

    /// Ends it; what a start then finds is what was handed over.
    fn end(&mut self, folder: &Path) {
        self.writer.take().unwrap().end();
        assert!(started(folder).unwrap() == state(&self.records));
        audited(folder).unwrap();
    }
}

#[test]
fn the_file_stays_small_and_all_that_was_told_is_there() {
    let folder = folder();
    let mut broker = Broker::of(folder.path());
    for _ in 0..40 {
        broker.write_much();
        let said = match broker.settle() {
            Some(said) => said,
            None => broker.hear_snapshot(),
        };
        broker.write(counting(said));
    }
    broker.end(folder.path());
    sweep(&mut empty(folder.path()));
    let kept = audited(folder.path()).unwrap();
    assert_eq!(kept.last(), Some(&(broker.records.len() as u64)));
    assert!(kept[0] > 3_500, "begins at {}", kept[0]);
    // Of some two and a half megabytes.
    let pages = number(folder.path(), "PRAGMA page_count");
    assert!(pages < 150, "{pages} pages");
}

#[test]
fn a_snapshot_that_nobody_records_does_no_harm() {
    let folder = folder();
    let mut broker = Broker::of(folder.path());
    broker.write_much();
    broker.hear_snapshot();
    for _ in 0..5 {
        broker.write_much();
        assert!(broker.settle().is_none(), "another one");
    }
    broker.end(folder.path());
    assert_eq!(number(folder.path(), "SELECT count(*) FROM snapshot"), 1);
    sweep(&mut empty(folder.path()));
    assert_eq!(number(folder.path(), "SELECT count(*) FROM part"), 0);
    assert_eq!(number(folder.path(), "SELECT count(*) FROM snapshot"), 0);
}

#[test]
fn an_end_while_a_snapshot_is_made_keeps_all() {
    for _ in 0..5 {
        let folder = folder();
        let mut broker = Broker::of(folder.path());
        broker.write_much();
        broker.settle();
        broker.write_much();
        broker.end(folder.path());
    }
}

#[test]
fn an_end_before_a_snapshot_is_recorded_keeps_all() {
    let folder = folder();
    let mut broker = Broker::of(folder.path());
    broker.write_much();
    broker.hear_snapshot();
    broker.end(folder.path());
}

#[test]
fn an_end_just_after_a_snapshot_is_recorded_keeps_all() {
    let folder = folder();
    let mut broker = Broker::of(folder.path());
    for _ in 0..3 {
        broker.write_much();
        let said = broker.hear_snapshot();
        broker.write(counting(said));
    }
    broker.end(folder.path());
}

#[test]
fn a_writer_goes_on_from_where_another_ended_with_a_snapshot_not_recorded() {
    let folder = folder();
    let mut first = Broker::of(folder.path());
    first.write_much();
    first.hear_snapshot();
    first.end(folder.path());
    let (tell, told) = mpsc::channel();
    let store = empty(folder.path());
    let writer = Writer::start(store, tiny(), at(1), move |word| {
        let _ = tell.send(word);
    });
    let mut second = Broker {
        writer: Some(writer.unwrap()),
        told,
        ..first
    };
    // It is made once more, as of the same record: the old one was swept before.
    let said = second.hear_snapshot();
    second.write(counting(said));
    second.settle();
    second.end(folder.path());
}

#[test]
fn damage_that_a_snapshot_finds_is_told_as_a_failure() {
    let folder = folder();
    let mut broker = Broker::of(folder.path());
    broker.settle();
    beside(folder.path())
        .execute_batch("UPDATE record SET text = replace(text, '1000', '1001') WHERE id = 1")
        .unwrap();
    broker.write_much();
    let said = broker.hear();
    assert!(
        matches!(said, Told::Failed(StoreError::Damaged { record: 1, .. })),
        "{said:?}"
    );
}

#[test]
fn a_snapshot_that_cannot_be_made_is_told_and_nothing_else_stops() {
    let folder = folder();
    let mut broker = Broker::of(folder.path());
    broker.settle();
    // The snapshot's own connection does not find it.
    let (file, elsewhere) = (database(folder.path()), folder.path().join("elsewhere"));
    std::fs::rename(&file, &elsewhere).unwrap();
    broker.write_much();
    let said = broker.hear();
    assert!(
        matches!(said, Told::NoSnapshot(StoreError::Sql { .. })),
        "{said:?}"
    );
    broker.write_much();
    assert!(broker.settle().is_none());
    std::fs::rename(&elsewhere, &file).unwrap();
    broker.end(folder.path());
}
