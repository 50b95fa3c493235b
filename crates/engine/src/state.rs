//! What the engine holds: sessions, calls, approvals. Data only; what happens to it stands in the
//! modules that are named for it.

use std::collections::BTreeMap;

use bytes::Bytes;
use policy::{AskingGrant, EffectiveTool, Pins};
use proto::{
    ApprovalId, ApprovalRequest, ApprovalSettled, CallId, Digest, Effects, GrantId, Label, Raise,
    RoleName, Scope, SessionId, Timestamp, ToolName,
};

use crate::event::ConnId;
use crate::record::{By, CallKey, RecordId};

/// One conversation.
#[derive(Debug)]
pub(crate) struct Session {
    /// The uid that first used it.
    pub(crate) owner: u32,
    /// What it has seen itself; see `Engine::effective` for what decides.
    pub(crate) label: Label,
    /// The last record that `label` depends on.
    pub(crate) changed: Option<RecordId>,
    /// The session that it was closed into.
    pub(crate) went_into: Option<SessionId>,
    /// It was closed, or idle for too long: it shrinks once no call is in flight.
    pub(crate) closed: bool,
    /// Call ids up to this one are `unknown_outcome` where they are not held.
    pub(crate) watermark: Option<CallId>,
    /// The highest call id that was taken.
    pub(crate) highest: Option<CallId>,
    pub(crate) calls: BTreeMap<CallId, Call>,
    /// How many of `calls` are not answered.
    pub(crate) in_flight: u64,
    pub(crate) raises: Vec<Raise>,
    /// Refused fingerprints, and until when they are answered so.
    pub(crate) refusals: BTreeMap<Digest, Timestamp>,
    pub(crate) standing: BTreeMap<ApprovalId, Standing>,
    /// Granted approvals of single calls.
    pub(crate) covers: BTreeMap<CallId, Cover>,
    pub(crate) last_used: Timestamp,
}

impl Session {
    pub(crate) fn new(owner: u32, label: Label, now: Timestamp) -> Self {
        Self {
            owner,
            label,
            changed: None,
            went_into: None,
            closed: false,
            watermark: None,
            highest: None,
            calls: BTreeMap::new(),
            in_flight: 0,
            raises: Vec::new(),
            refusals: BTreeMap::new(),
            standing: BTreeMap::new(),
            covers: BTreeMap::new(),
            last_used: now,
        }
    }
}

/// One tool request.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) tool: ToolName,
    pub(crate) fingerprint: Digest,
    /// What running it twice does, as it counted when last judged.
    pub(crate) effects: Effects,
    pub(crate) since: Timestamp,
    /// Empty once it is answered.
    pub(crate) arguments: String,
    /// The canonical bytes of the request's `msg`; empty once it is answered.
    pub(crate) request: Bytes,
    /// Bytes charged to the agent role while it is in flight.
    pub(crate) charge: u64,
    /// It was sent to a runner before the last restart: if it is not kept, it is this again.
    pub(crate) interrupted: bool,
    /// The generation of the rules under which no deny applied to it; 0: of another life.
    pub(crate) judged: u64,
    /// How often it was sent to a runner since the last restart.
    pub(crate) attempts: u32,
    pub(crate) waiters: Vec<Waiter>,
    pub(crate) state: State,
}

/// Where a call is in its life.
#[derive(Debug)]
pub(crate) enum State {
    /// Taken, and about to be judged.
    New,
    /// A person is asked.
    Asked(ApprovalId),
    /// Permitted; waits for this runner role.
    Claimed {
        runner: RoleName,
        since: Timestamp,
    },
    Dispatched(Box<Flight>),
    Answered(Stored),
    /// Dispatched before a restart, and may run again: on a repeat.
    Interrupted,
}

/// A call on its way through a runner.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) conn: ConnId,
    /// The request's number on the runner's connection.
    pub(crate) wire: u64,
    pub(crate) tool: EffectiveTool,
    /// The last record that the dispatch depends on.
    pub(crate) after: Option<RecordId>,
    /// When it has taken too long in all.
    pub(crate) limit: Timestamp,
    /// Somebody cancelled it.
    pub(crate) cancelled: bool,
    /// A part of it reached an agent's connection.
    pub(crate) released: bool,
    /// The parts so far, joined.
    pub(crate) content: String,
    /// The bytes of `content` inside JSON quotes.
    pub(crate) written: usize,
    /// The join of what the tool's floor and its parts say.
    pub(crate) label: Label,
    /// The parts no longer fit a frame: the rest is not kept.
    pub(crate) overflowed: bool,
    /// A part said that it was cut.
    pub(crate) truncated: bool,
    /// The last `progress.done`.
    pub(crate) done: u64,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Stored {
    /// The canonical bytes of its `msg`.
    pub(crate) msg: Bytes,
    /// The label of its content.
    pub(crate) label: Label,
    /// The last record that it depends on.
    pub(crate) after: Option<RecordId>,
}

/// A request that waits for a call.
#[derive(Debug)]
pub(crate) struct Waiter {
    pub(crate) conn: ConnId,
    pub(crate) id: u64,
    /// Bytes of content that it got in parts; `None`: it gets no parts.
    pub(crate) parts: Option<usize>,
    pub(crate) progress: bool,
    /// It could not take a part; the rest waits until its outbox drains.
    pub(crate) lags: bool,
}

/// A pending approval.
#[derive(Debug)]
pub(crate) struct Approval {
    pub(crate) request: ApprovalRequest,
    /// The canonical bytes of `request` as a message.
    pub(crate) msg: Bytes,
    pub(crate) call: CallKey,
    pub(crate) question: Question,
    /// The approver roles that are asked.
    pub(crate) asked: Vec<RoleName>,
    pub(crate) votes: Vec<Vote>,
    /// A no that was read back without the end that it led to.
    pub(crate) refused: Option<Vote>,
    /// The record that it depends on.
    pub(crate) after: Option<RecordId>,
}

/// What a person is asked to approve: an approval holds for exactly this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) fingerprint: Digest,
    pub(crate) runner: RoleName,
    pub(crate) definition: Digest,
    pub(crate) grants: Vec<(GrantId, Digest)>,
    pub(crate) label: Label,
}

impl Question {
    /// Whether an answer to this question is one to `other` too: the same but for a label that may
    /// be lower.
    pub(crate) fn covers(&self, other: &Question) -> bool {
        self.fingerprint == other.fingerprint
            && self.runner == other.runner
            && self.definition == other.definition
            && self.grants == other.grants
            && other.label.is_within(self.label)
    }
}

/// The grants of an ask as an approval remembers them.
pub(crate) fn hashes(grants: &[AskingGrant]) -> Vec<(GrantId, Digest)> {
    grants
        .iter()
        .map(|g| (g.id.clone(), Digest::from_bytes(g.hash)))
        .collect()
}

/// An approver's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Vote {
    pub(crate) by: By,
    pub(crate) scope: Scope,
    pub(crate) comment: String,
}

/// A granted approval of one call.
#[derive(Debug)]
pub(crate) struct Cover {
    pub(crate) approval: ApprovalId,
    pub(crate) question: Question,
    /// Who is told how the call ends; nobody where nobody was asked.
    pub(crate) asked: Vec<RoleName>,
    /// Until when it may be spent.
    pub(crate) expires: Timestamp,
    pub(crate) spent: bool,
}

/// An approval for more than one call.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    pub(crate) tool: ToolName,
    pub(crate) runner: RoleName,
    pub(crate) definition: Digest,
    pub(crate) grants: Vec<(GrantId, Digest)>,
    pub(crate) pins: Pins,
    pub(crate) label: Label,
    pub(crate) uses_left: u64,
    pub(crate) expires: Timestamp,
    pub(crate) by: By,
    /// Who is told how its calls end; nobody where nobody was asked.
    pub(crate) asked: Vec<RoleName>,
}

/// A settled approval, as it is listed for an hour.
#[derive(Debug)]
pub(crate) struct SettledApproval {
    pub(crate) at: Timestamp,
    pub(crate) asked: Vec<RoleName>,
    pub(crate) settled: ApprovalSettled,
    pub(crate) after: Option<RecordId>,
}
