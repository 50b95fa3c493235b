//! One call's life as the wire shows it: what was asked, how often it was run, which answer is
//! kept (invariants 3 and 6).

use std::collections::{BTreeMap, BTreeSet};

use engine::{ConnId, RecordId};
use proto::{ApprovalId, DenyReason, FailureCode, Label, Timestamp, ToolResponse};

use crate::store::Store;

/// A call.
#[derive(Debug, Default)]
pub(crate) struct Call {
    /// What was asked under this identity, with the text of it.
    pub(crate) asked: BTreeMap<u64, (String, String)>,
    /// How often its session had been closed when it was last asked.
    pub(crate) closes: u64,
    /// How often it was given to a runner since the last restart.
    pub(crate) attempts: u32,
    /// Whether any attempt counted as `once`.
    pub(crate) once: bool,
    /// Whether every attempt counted as `read`.
    pub(crate) read: bool,
    /// Whether it was ever given to a runner.
    pub(crate) ever_dispatched: bool,
    /// Attempts that reached a runner.
    pub(crate) reached: u32,
    /// Whether a part of an answer was released since the last restart.
    pub(crate) part_given: bool,
    /// The floor that its results have at least.
    pub(crate) floor: Label,
    /// Where it runs or ran last, and what was said of its results there.
    pub(crate) at: Option<(ConnId, u64)>,
    pub(crate) said: Label,
    pub(crate) kept: Option<Kept>,
    /// When it was first asked: how old what is kept of it may be.
    pub(crate) held_since: Option<Timestamp>,
    /// The approval that its dispatch spent; it covers a second one.
    pub(crate) covered: Option<(RecordId, ApprovalId)>,
}

/// The answer that every repeat must get.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) fingerprint: u64,
    pub(crate) response: ToolResponse,
    /// Sends that carried it.
    pub(crate) tickets: Vec<u64>,
    pub(crate) crashed: bool,
}

/// What a final answer is to the call that it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    /// It is told to every repeat.
    Kept,
    /// The call may be asked again.
    NotKept,
}

impl Call {
    /// What is left of it when the broker falls.
    pub(crate) fn crash(&mut self, waiting: &BTreeSet<u64>, store: &Store) {
        self.covered = self.covered.take().filter(|(id, _)| store.is_durable(*id));
        self.attempts = 0;
        self.at = None;
        self.said = Label::BOTTOM;
        self.part_given = false;
        let read = self.read || !self.ever_dispatched;
        if self.read {
            // Nothing of it is recorded: its number may stand for something else by now.
            self.ever_dispatched = false;
            self.reached = 0;
        }
        let Some(kept) = &mut self.kept else { return };
        kept.tickets.retain(|ticket| !waiting.contains(ticket));
        kept.crashed = true;
        // An answer that nobody got may be lost; one of a read tool is in memory only.
        if kept.tickets.is_empty() || read {
            self.kept = None;
        }
    }
}

/// DESIGN 7: what is kept. `dispatched`: since this identity was last free.
pub(crate) fn weight(response: &ToolResponse, dispatched: bool) -> Weight {
    let kept = match response {
        ToolResponse::PendingApproval { .. } => false,
        ToolResponse::Result { .. } => true,
        ToolResponse::Denied { reason } => match reason {
            DenyReason::ApprovalRefused | DenyReason::ApprovalExpired => true,
            DenyReason::NoGrant
            | DenyReason::GrantExpired
            | DenyReason::TaintTooHigh
            | DenyReason::DeniedByGrant => false,
        },
        ToolResponse::Failed { message } => match FailureCode::of_message(message) {
            Some(FailureCode::Cancelled | FailureCode::UnknownOutcome) => true,
            Some(FailureCode::TimedOut | FailureCode::RunnerFailed) => true,
            Some(FailureCode::TooLarge) => dispatched,
            Some(FailureCode::NoRunner | FailureCode::Busy | FailureCode::ShuttingDown) => false,
            None => panic!("a failure without a code: {message:?}"),
        },
    };
    if kept { Weight::Kept } else { Weight::NotKept }
}

/// The failure's code, if it is one.
pub(crate) fn code(response: &ToolResponse) -> Option<FailureCode> {
    match response {
        ToolResponse::Failed { message } => FailureCode::of_message(message),
        ToolResponse::Result { .. }
        | ToolResponse::Denied { .. }
        | ToolResponse::PendingApproval { .. } => None,
    }
}
