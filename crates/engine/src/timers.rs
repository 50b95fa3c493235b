//! What is due when. One deadline for each timer; setting it again moves it.

use std::collections::{BTreeMap, BTreeSet};

use proto::{ApprovalId, RoleName, Timestamp};

use crate::event::ConnId;
use crate::record::{CallKey, SessionKey};

/// What may be due.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// A drain has lasted long enough.
    Drain,
    /// A claimed call has waited, or a dispatched one was silent or cancelled, for long enough.
    Call(CallKey),
    /// A pending approval lapses.
    Approval(ApprovalId),
    /// A granted approval lapses that its call did not spend.
    Cover(CallKey),
    /// A standing approval lapses.
    Standing(SessionKey, ApprovalId),
    /// An answer is kept no longer.
    Answer(CallKey),
    /// A session may have been idle for too long.
    Session(SessionKey),
    /// Requests of a role that were over its rate are recorded.
    Refused(RoleName),
    /// An outbox made no progress.
    Write(ConnId),
    /// An abandoned call's place on its runner connection is free again.
    Slot(ConnId, u64),
}

/// Every deadline.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    due: BTreeSet<(Timestamp, Timer)>,
    at: BTreeMap<Timer, Timestamp>,
}

impl Timers {
    pub(crate) fn set(&mut self, timer: Timer, at: Timestamp) {
        self.cancel(&timer);
        self.at.insert(timer.clone(), at);
        self.due.insert((at, timer));
    }

    /// Sets a timer that is not set; leaves one that is.
    pub(crate) fn set_once(&mut self, timer: Timer, at: Timestamp) {
        if !self.at.contains_key(&timer) {
            self.set(timer, at);
        }
    }

    pub(crate) fn cancel(&mut self, timer: &Timer) {
        if let Some(at) = self.at.remove(timer) {
            self.due.remove(&(at, timer.clone()));
        }
    }

    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Takes one timer that is due.
    pub(crate) fn pop(&mut self, now: Timestamp) -> Option<Timer> {
        if self.next()? > now {
            return None;
        }
        let (_, timer) = self.due.pop_first()?;
        self.at.remove(&timer);
        Some(timer)
    }
}
