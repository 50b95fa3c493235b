//! The store: a list of records that become durable in order, some time after they were written.
//! A crash keeps the durable ones, and perhaps a few of those that were on their way.

use engine::{Record, RecordId};

#[derive(Debug, Default)]
pub(crate) struct Store {
    records: Vec<Record>,
    durable: usize,
    first: u64,
}

impl Store {
    /// Takes a record.
    pub(crate) fn append(&mut self, id: RecordId, record: Record) {
        if self.records.is_empty() {
            self.first = id.0;
        }
        let next = self.first + self.records.len() as u64;
        assert_eq!(id.0, next, "records grow by one: {record:?}");
        self.records.push(record);
    }

    /// How many are not durable yet.
    pub(crate) fn pending(&self) -> usize {
        self.records.len() - self.durable
    }

    /// Makes the oldest `count` of the pending ones durable.
    pub(crate) fn commit(&mut self, count: usize) {
        self.durable = (self.durable + count).min(self.records.len());
    }

    /// Whether a record is durable.
    pub(crate) fn is_durable(&self, id: RecordId) -> bool {
        !self.records.is_empty() && id.0 < self.first + self.durable as u64
    }

    /// The power goes: what was not durable is lost. Gives what is left.
    pub(crate) fn crash(&mut self) -> Vec<Record> {
        self.records.truncate(self.durable);
        self.records.clone()
    }

    /// What a restart reads.
    pub(crate) fn durable_records(&self) -> &[Record] {
        &self.records[..self.durable]
    }
}
