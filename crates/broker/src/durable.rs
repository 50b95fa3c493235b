//! Which records are durable. They go to the store's thread once a turn, and it tells how far it has come.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use std::sync::Arc;

use engine::{Record, RecordId};
use policy::Config;
use proto::{RoleName, Timestamp};
use store::{Head, Keep, Store, Told, Writer};
use tokio::sync::{mpsc, watch};

use crate::exit::Fault;
use crate::inbox::{Inbox, Input};

/// Bytes of one role's calls that may be on their way to the disk before nothing more is read from the role.
const MAX_AHEAD: u64 = 16 << 20;
/// Bytes that a record counts for beside those of its call.
const RECORD_BYTES: u64 = 1 << 10;

/// The records that are on their way, and up to which they are durable.
#[derive(Debug, Default)]
pub struct Durable {
    waiting: Vec<(RecordId, Record)>,
    appended: Option<RecordId>,
    durable: Option<RecordId>,
    writer: Option<Writer>,
    /// What each record on its way counts for, and for whom.
    charges: VecDeque<(RecordId, RoleName, u64)>,
    /// Their sums.
    ahead: BTreeMap<RoleName, u64>,
}

impl Durable {
    /// Nothing is on its way, and everything up to `head` is durable.
    pub fn after(head: RecordId) -> Self {
        Self {
            appended: Some(head),
            durable: Some(head),
            ..Self::default()
        }
    }

    /// Writes what was appended so far to `store`, all of whose records were read, before it returns: a broker that
    /// cannot write does not start. Gives the head then. From then on the store's thread writes, and the inbox hears
    /// what has become durable.
    ///
    /// # Errors
    /// It cannot be written, or there can be no thread.
    pub fn begin(
        &mut self,
        mut store: Store,
        config: Arc<Config>,
        now: Timestamp,
        inbox: &Rc<Inbox>,
    ) -> Result<Head, Fault> {
        let keep = keep(&config);
        store
            .append(std::mem::take(&mut self.waiting), keep)
            .map_err(|error| Fault::of_store(&error))?;
        self.durable = self.appended;
        let head = store.head().clone();
        // Only the latest word on what is durable counts.
        let (tell, mut told) = watch::channel(Ok(head.clone()));
        let (also, mut said) = mpsc::unbounded_channel();
        let writer = Writer::start(store, config, now, move |word| {
            // Nobody listens any more where the process ends.
            let _ = match word {
                Told::Durable(head) => tell.send(Ok(head)).is_ok(),
                Told::Failed(error) => tell.send(Err(error.to_string())).is_ok(),
                Told::Snapshot(snapshot) => also.send(Ok(snapshot)).is_ok(),
                Told::NoSnapshot(error) => also.send(Err(error.to_string())).is_ok(),
            };
        });
        let failed = |error| Fault::Internal(format!("cannot start the store's thread: {error}"));
        self.writer = Some(writer.map_err(failed)?);
        let (inbox, inbox_of_snapshots) = (Rc::clone(inbox), Rc::clone(inbox));
        tokio::task::spawn_local(async move {
            while told.changed().await.is_ok() {
                let outcome = told.borrow_and_update().clone();
                inbox.push(Input::Stored(outcome));
            }
        });
        tokio::task::spawn_local(async move {
            while let Some(snapshot) = said.recv().await {
                inbox_of_snapshots.push(Input::Snapshot(snapshot));
            }
        });
        Ok(head)
    }

    /// Takes a record; it goes to the store with the next [`Durable::commit`].
    pub fn append(&mut self, id: RecordId, record: Record) {
        self.appended = Some(id);
        if let Some((role, bytes)) = store::charge(&record) {
            let bytes = bytes + RECORD_BYTES;
            match self.ahead.get_mut(role) {
                Some(ahead) => *ahead += bytes,
                None => {
                    self.ahead.insert(role.clone(), bytes);
                }
            }
            self.charges.push_back((id, role.clone(), bytes));
        }
        self.waiting.push((id, record));
    }

    /// Another configuration says what is kept.
    pub fn configured(&self, config: Arc<Config>) {
        if let Some(writer) = &self.writer {
            writer.configured(config);
        }
    }

    /// Hands over what was appended, in one go. It does not wait.
    pub fn commit(&mut self, config: &Config, now: Timestamp) {
        if let Some(writer) = &self.writer
            && !self.waiting.is_empty()
        {
            writer.write(std::mem::take(&mut self.waiting), keep(config), now);
        }
    }

    /// Everything up to this record is durable. Whether a role that was ahead of the disk is so no more.
    pub fn stored(&mut self, id: RecordId) -> bool {
        self.durable = self.durable.max(Some(id));
        let mut caught_up = false;
        while let Some((first, role, bytes)) = self.charges.pop_front() {
            if first > id {
                self.charges.push_front((first, role, bytes));
                break;
            }
            let was = self.is_ahead(&role);
            if let Some(ahead) = self.ahead.get_mut(&role) {
                *ahead -= bytes;
            }
            caught_up |= was && !self.is_ahead(&role);
        }
        caught_up
    }

    /// Whether so much of a role's calls is on its way to the disk that no more may be read from it.
    pub fn is_ahead(&self, role: &RoleName) -> bool {
        self.ahead.get(role).is_some_and(|ahead| *ahead > MAX_AHEAD)
    }

    /// Whether a send that depends on `after` may go.
    pub fn covers(&self, after: Option<RecordId>) -> bool {
        after.is_none_or(|after| Some(after) <= self.durable)
    }

    /// Whether everything that was appended is durable.
    pub fn is_settled(&self) -> bool {
        self.appended <= self.durable
    }

    /// Waits until the store is closed.
    pub fn end(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.end();
        }
    }
}

fn keep(config: &Config) -> Keep {
    Keep {
        answers: config.settings.answer_ttl,
        arguments: config.settings.audit_arguments_ttl,
    }
}

#[cfg(test)]
mod tests {
    use engine::{Basis, CallKey, SessionKey};
    use proto::{CallId, DenyReason, Digest, Label, SessionId, ToolName};

    use super::*;

    #[test]
    fn a_record_is_durable_only_once_the_store_says_so() {
        let mut durable = Durable::default();
        assert!(durable.covers(None) && durable.is_settled());
        assert!(!durable.covers(Some(RecordId(1))));
        durable.append(
            RecordId(1),
            Record::Draining {
                at: Timestamp::default(),
                by: None,
            },
        );
        assert!(!durable.covers(Some(RecordId(1))) && !durable.is_settled());
        durable.stored(RecordId(1));
        assert!(durable.covers(Some(RecordId(1))) && durable.is_settled());
        assert!(!durable.covers(Some(RecordId(2))));
    }

    #[test]
    fn a_role_is_ahead_until_enough_of_its_calls_is_durable_and_no_other_is() {
        let denied = |role: &str| Record::Denied {
            at: Timestamp::default(),
            call: CallKey {
                session: SessionKey {
                    role: RoleName::new(role).unwrap(),
                    session: SessionId::new("s").unwrap(),
                },
                call: CallId(1),
            },
            tool: ToolName::new("post").unwrap(),
            fingerprint: Digest::from_bytes([0; 32]),
            reason: DenyReason::NoGrant,
            grant: None,
            basis: Some(Box::new(Basis {
                asks: false,
                label: Label::BOTTOM,
                offer: None,
                uses: Vec::new(),
                arguments: Some("x".repeat(64 << 10)),
            })),
        };
        let (loud, quiet) = (
            RoleName::new("loud").unwrap(),
            RoleName::new("quiet").unwrap(),
        );
        let mut durable = Durable::default();
        durable.append(RecordId(1), denied("quiet"));
        let mut last = 1;
        while !durable.is_ahead(&loud) {
            last += 1;
            durable.append(RecordId(last), denied("loud"));
        }
        assert!(last < 260 && !durable.is_ahead(&quiet), "{last} records");
        assert!(!durable.stored(RecordId(1)) && durable.is_ahead(&loud));
        assert!(durable.stored(RecordId(2)) && !durable.is_ahead(&loud));
        assert!(!durable.stored(RecordId(last)));
    }
}
