//! Which records are durable. Without a store a record counts as durable once its batch is
//! committed, and nothing outlives the process.

use engine::{Record, RecordId};

/// The records, and up to which they are durable.
#[derive(Debug, Default)]
pub struct Durable {
    appended: Option<RecordId>,
    durable: Option<RecordId>,
}

impl Durable {
    /// Takes a record; it is durable once a later commit has ended.
    pub fn append(&mut self, id: RecordId, record: Record) {
        drop(record);
        self.appended = Some(id);
    }

    /// Makes everything durable that was appended, in one go.
    pub fn commit(&mut self) {
        self.durable = self.appended;
    }

    /// Whether a send that depends on `after` may go.
    pub fn covers(&self, after: Option<RecordId>) -> bool {
        after.is_none_or(|after| Some(after) <= self.durable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_durable_only_once_it_is_committed() {
        let mut durable = Durable::default();
        assert!(durable.covers(None));
        assert!(!durable.covers(Some(RecordId(1))));
        durable.append(
            RecordId(1),
            Record::Draining {
                at: proto::Timestamp::default(),
                by: None,
            },
        );
        assert!(!durable.covers(Some(RecordId(1))));
        durable.commit();
        assert!(durable.covers(Some(RecordId(1))));
        assert!(!durable.covers(Some(RecordId(2))));
    }
}
