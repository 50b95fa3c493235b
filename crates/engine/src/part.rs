//! The state as of a record, in parts: what a restart reads instead of all the records before it (DESIGN 9).

use proto::{
    ApprovalId, ApprovalRequest, ApprovalSettled, CallId, Digest, Effects, GrantId, Label, Raise,
    RoleName, Scope, SessionId, Timestamp, ToolName, ToolSpec,
};
use serde::{Deserialize, Serialize};

use crate::record::{By, CallKey, RecordId, SessionKey};

/// One part of the state. All of them, read back in their order, are what the records up to
/// [`Part::AsOf`] leave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "part", rename_all = "snake_case", deny_unknown_fields)]
pub enum Part {
    /// The first one.
    AsOf {
        /// The last record that is in it.
        record: RecordId,
        /// The latest time by then.
        at: Timestamp,
    },
    /// A role's own label.
    Role {
        /// Whose.
        role: RoleName,
        /// The join of all that its sessions have seen.
        label: Label,
        /// Where its sessions begin.
        opening: Label,
        /// The calls that raised it.
        raises: Vec<Raise>,
    },
    /// A session, open or closed.
    Session {
        /// Which.
        session: SessionKey,
        /// Whose it is.
        owner: u32,
        /// Its own label.
        label: Label,
        /// The session that it was closed into.
        went_into: Option<SessionId>,
        /// Whether it is closed.
        closed: bool,
        /// Call ids up to this one are `unknown_outcome` where they are not kept.
        watermark: Option<CallId>,
        /// The highest call id that was taken.
        highest: Option<CallId>,
        /// When it was last used, as far as records tell.
        last_used: Timestamp,
        /// The calls that raised its label.
        raises: Vec<Raise>,
        /// Refused fingerprints, and until when they are answered so.
        refusals: Vec<(Digest, Timestamp)>,
    },
    /// A standing approval that holds.
    Standing {
        /// Where.
        session: SessionKey,
        /// Its name.
        approval: ApprovalId,
        /// For which tool.
        tool: ToolName,
        /// What it was given for.
        definition: Definition,
        /// With these values.
        pins: Vec<(String, Option<String>)>,
        /// At a label no higher than this.
        label: Label,
        /// For so many more calls.
        uses_left: u64,
        /// Until then.
        expires: Timestamp,
        /// Who gave it.
        by: By,
        /// Who is told how its calls end.
        asked: Vec<RoleName>,
    },
    /// A granted approval of one call.
    Cover {
        /// Which call.
        call: CallKey,
        /// Its name.
        approval: ApprovalId,
        /// What was asked.
        fingerprint: Digest,
        /// What it was given for.
        definition: Definition,
        /// At a label no higher than this.
        label: Label,
        /// Who is told how the call ends.
        asked: Vec<RoleName>,
        /// Until when it may be spent.
        expires: Timestamp,
        /// Whether it is.
        spent: bool,
    },
    /// A call that was dispatched, and has no answer.
    Interrupted {
        /// When it was dispatched, or a question about a repeat of it ended.
        at: Timestamp,
        /// Which call.
        call: CallKey,
        /// Its tool.
        tool: ToolName,
        /// What was asked.
        fingerprint: Digest,
        /// What running it twice does.
        effects: Effects,
    },
    /// A person is asked about a call.
    Asked {
        /// The record that says so.
        record: RecordId,
        /// What the approvers are shown.
        request: ApprovalRequest,
        /// What was asked.
        fingerprint: Digest,
        /// What is asked about.
        definition: Definition,
        /// What running it twice does.
        effects: Effects,
        /// Whether the call was dispatched before.
        interrupted: bool,
        /// The approver roles that are asked.
        asked: Vec<RoleName>,
        /// Those who said yes, for how much, and with which words.
        votes: Vec<(By, Scope, String)>,
        /// A no without the end that it led to.
        refused: Option<(By, Scope, String)>,
    },
    /// A kept answer; a role's come in the order in which they were given.
    Answered {
        /// The record that says so.
        record: RecordId,
        /// When.
        at: Timestamp,
        /// Which call.
        call: CallKey,
        /// Its tool.
        tool: ToolName,
        /// What was asked.
        fingerprint: Digest,
        /// The canonical bytes of the answer's `msg`.
        msg: String,
        /// The label of its content.
        label: Label,
    },
    /// An answer that was forgotten since: its call id and those below are `unknown_outcome`.
    Evicted {
        /// Which call.
        call: CallKey,
    },
    /// An approval of the last hour.
    Settled {
        /// When.
        at: Timestamp,
        /// Who was asked.
        asked: Vec<RoleName>,
        /// What became of it.
        settled: ApprovalSettled,
    },
    /// An accepted definition.
    Pinned {
        /// The runner role.
        runner: RoleName,
        /// What it says it is.
        spec: ToolSpec,
    },
    /// Uses spent of a grant.
    Uses {
        /// Which.
        grant: GrantId,
        /// How many.
        count: u64,
    },
    /// A grant of run time.
    Granted {
        /// Which.
        grant: GrantId,
        /// What it says.
        toml: String,
    },
}

/// Who would serve what is approved, and what it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// The runner role.
    pub runner: RoleName,
    /// The definition that was shown.
    pub definition: Digest,
    /// The asking grants, and their hashes.
    pub grants: Vec<(GrantId, Digest)>,
}
