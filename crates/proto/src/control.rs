//! What an operator asks and gets: one `op` each.

use serde::{Deserialize, Serialize};

use crate::approval::Raise;
use crate::label::{DataClass, Label};
use crate::names::{ApprovalId, Digest, GrantId, RoleName, SessionId, ToolName};
use crate::numbers::{CallId, Timestamp};
use crate::session::RoleKind;

/// An operator's request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum Control {
    /// How is the broker?
    Status {},
    /// Load the configuration anew, whole or not at all.
    Reload {},
    /// Take no new calls, end when those in flight have ended.
    Drain {},
    /// The sessions of a role.
    Sessions {
        /// An agent role.
        role: RoleName,
    },
    /// One session: its label and what raised it.
    Session {
        /// An agent role.
        role: RoleName,
        /// Its session.
        session: SessionId,
    },
    /// As an agent's `join_session`, for any session.
    JoinSession {
        /// An agent role.
        role: RoleName,
        /// Whose label is carried.
        from: SessionId,
        /// Where it is carried.
        into: SessionId,
        /// Whether `from` ends with this.
        close: bool,
    },
    /// End a session.
    CloseSession {
        /// An agent role.
        role: RoleName,
        /// Its session.
        session: SessionId,
    },
    /// Lower a session's class.
    Declassify {
        /// An agent role.
        role: RoleName,
        /// A session, or `*`: the role's own label.
        session: String,
        /// The class that it has from now on.
        class: DataClass,
        /// Why; recorded.
        reason: String,
    },
    /// Trust a session again.
    Endorse {
        /// An agent role.
        role: RoleName,
        /// A session, or `*`: the role's own label.
        session: String,
        /// Why; recorded.
        reason: String,
    },
    /// Every grant, and what is left of it.
    Grants {},
    /// Add an allow or a deny at run time.
    Grant {
        /// The grant as TOML: the lines below `[[grant]]`.
        grant: String,
        /// Why; recorded.
        reason: String,
    },
    /// Take a grant away that was added at run time.
    Revoke {
        /// Which grant.
        grant: GrantId,
        /// Why; recorded.
        reason: String,
    },
    /// Approve before it is asked.
    Preapprove {
        /// An agent role.
        role: RoleName,
        /// Its session.
        session: SessionId,
        /// The tool.
        tool: ToolName,
        /// The grants that would ask.
        grants: Vec<GrantId>,
        /// Arguments whose values at the grants' pointers are meant.
        arguments: String,
        /// The highest label that it covers.
        label: Label,
        /// For how many calls.
        uses: u64,
        /// For how long, in milliseconds.
        ttl: u64,
        /// Why; recorded.
        reason: String,
    },
    /// Every tool, and its definition's state.
    Tools {},
    /// Accept a held definition.
    AcceptTool {
        /// The runner role.
        runner: RoleName,
        /// The tool.
        tool: ToolName,
        /// The definition that was read.
        definition: Digest,
        /// Why; recorded.
        reason: String,
    },
    /// Why was a call decided as it was?
    Explain {
        /// An agent role.
        role: RoleName,
        /// Its session.
        session: SessionId,
        /// The call there.
        call: CallId,
    },
    /// How would a call be decided now? Nothing is asked and nothing is spent.
    ExplainRequest {
        /// An agent role.
        role: RoleName,
        /// A session of its, or a name that none has.
        session: SessionId,
        /// The tool.
        tool: ToolName,
        /// The arguments.
        arguments: String,
    },
    /// Which smallest grant would have let a call through?
    Suggest {
        /// An agent role.
        role: RoleName,
        /// Its session.
        session: SessionId,
        /// The call there.
        call: CallId,
    },
    /// What happens from now on, until the connection ends.
    Tail {},
}

/// The answer to a [`Control`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum ControlReply {
    /// How the broker is.
    Status {
        /// Its version.
        version: String,
        /// When it started.
        started: Timestamp,
        /// Its time now.
        now: Timestamp,
        /// SHA-256 of the configuration's text.
        ruleset: Digest,
        /// Whether it takes no new calls.
        draining: bool,
        /// How many records are durable.
        records: u64,
        /// The hash over all of them: kept elsewhere, it shows later whether any was cut off.
        head: Digest,
        /// What a reviewer should know, such as roles that are not separated.
        warnings: Vec<String>,
        /// Every role.
        roles: Vec<RoleStatus>,
    },
    /// The configuration was loaded.
    Reloaded {
        /// SHA-256 of its text.
        ruleset: Digest,
        /// What changed, in words, a line each.
        changes: Vec<String>,
    },
    /// No new calls are taken.
    Draining {
        /// When those in flight are given up.
        deadline: Timestamp,
    },
    /// The sessions of a role; a long list comes as several envelopes.
    Sessions {
        /// In the order of their names.
        sessions: Vec<SessionStatus>,
    },
    /// One session.
    Session {
        /// What it is.
        session: SessionStatus,
        /// The calls that raised its label, oldest first.
        raised_by: Vec<Raise>,
        /// Its standing approvals.
        standing: Vec<StandingStatus>,
    },
    /// The label after a join.
    Joined {
        /// The label that `into` has now.
        label: Label,
    },
    /// Every grant; a long list comes as several envelopes.
    Grants {
        /// In file order, those of run time last.
        grants: Vec<GrantStatus>,
    },
    /// A standing approval was made.
    Preapproved {
        /// Its name.
        approval: ApprovalId,
        /// When it lapses.
        expires: Timestamp,
    },
    /// Every tool; a long list comes as several envelopes.
    Tools {
        /// In the order of their runner role and name.
        tools: Vec<ToolStatus>,
    },
    /// A decision; a long trace comes as several envelopes with the same head.
    Explained {
        /// What was decided.
        judgement: Judgement,
        /// Every grant of the ruleset and what became of it, in file order, those of run time last.
        trace: Vec<TraceStatus>,
    },
    /// A grant that would let a call through, or why none would.
    Suggested {
        /// The lines below `[[grant]]`; empty where no grant helps.
        grant: String,
        /// What it does, or what would help instead, in words, a line each.
        notes: Vec<String>,
    },
    /// Something happened; more follow.
    Event {
        /// What.
        event: EventStatus,
    },
    /// It was done.
    Done {},
}

/// A decision about a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Judgement {
    /// The tool.
    pub tool: ToolName,
    /// When it was decided.
    pub at: Timestamp,
    /// The label that decided.
    pub label: Label,
    /// SHA-256 of the configuration's text that counted.
    pub ruleset: Digest,
    /// What was decided.
    pub decided: Decided,
    /// A denial's reason; else empty.
    pub reason: String,
    /// The grant that decided; empty where none did.
    pub grant: String,
    /// The approval that was asked for, or that let it through; else empty.
    pub approval: String,
    /// The decision in a sentence.
    pub words: String,
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Decided {
    /// It may run.
    Permit,
    /// Somebody must be asked.
    Ask,
    /// It may not run.
    Deny,
}

impl Decided {
    /// The decision as the wire and the log write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Decided::Permit => "permit",
            Decided::Ask => "ask",
            Decided::Deny => "deny",
        }
    }
}

/// What became of one grant in a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TraceStatus {
    /// Which grant.
    pub grant: GrantId,
    /// Whether it had a say.
    pub standing: Standing,
    /// What it said, or why it fell.
    pub what: String,
}

/// Whether a grant had a say in a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It is for other roles, sessions or tools.
    Elsewhere,
    /// It is for such calls, and says nothing of this one.
    Falls,
    /// It has a say.
    Counts,
}

/// Something that happened: the fields of a log line. Those that do not apply are empty or 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct EventStatus {
    /// When.
    pub at: Timestamp,
    /// What, a stable word.
    pub event: String,
    /// The role that it is about.
    pub role: String,
    /// The session.
    pub session: String,
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// `permit`, `ask` or `deny`.
    pub decision: String,
    /// A deny reason or a failure code, or a fixed text.
    pub reason: String,
    /// The grant that decided.
    pub grant: String,
    /// The approval.
    pub approval: String,
    /// Since the request came, in microseconds.
    pub elapsed_us: u64,
    /// So many events before this one were left out: the reader was too slow.
    pub missed: u64,
}

/// A role, and what it uses of its quotas.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RoleStatus {
    /// Its name.
    pub role: RoleName,
    /// What it is.
    pub kind: RoleKind,
    /// Open connections.
    pub connections: u64,
    /// Calls in flight.
    pub in_flight: u64,
    /// Sessions that are not closed.
    pub sessions: u64,
    /// Pending approvals of its calls.
    pub approvals: u64,
    /// Bytes that wait for or from it.
    pub waiting_bytes: u64,
    /// Bytes of kept answers.
    pub stored_bytes: u64,
    /// Replies under ids that were not open, since the start: dropped.
    pub dropped_replies: u64,
}

/// A session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SessionStatus {
    /// Its name.
    pub session: SessionId,
    /// The uid that it belongs to.
    pub owner: u32,
    /// The label that decides.
    pub label: Label,
    /// Whether it was closed, or shrunk because it was idle for `session_ttl`.
    pub closed: bool,
    /// The session that it went into; empty where it went into none.
    pub went_into: String,
    /// Calls in flight.
    pub in_flight: u64,
    /// The highest call id that was evicted.
    pub watermark: u64,
    /// When it was last used.
    pub last_used: Timestamp,
}

/// A standing approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StandingStatus {
    /// Its name.
    pub approval: ApprovalId,
    /// The tool.
    pub tool: ToolName,
    /// The grants whose asking it covers.
    pub grants: Vec<GrantId>,
    /// The highest label that it covers.
    pub label: Label,
    /// Calls that are left.
    pub uses_left: u64,
    /// When it lapses.
    pub expires: Timestamp,
    /// The role that gave it.
    pub by: RoleName,
}

/// A grant, and what is left of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GrantStatus {
    /// Its name.
    pub grant: GrantId,
    /// Its effect.
    pub effect: String,
    /// Its own reason.
    pub why: String,
    /// Whether an operator added it at run time.
    pub runtime: bool,
    /// Uses spent.
    pub uses: u64,
    /// Uses in all; 0: unbounded.
    pub max_uses: u64,
    /// When it lapses; 0: never.
    pub expires: Timestamp,
}

/// A tool, and its definition's state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ToolStatus {
    /// The runner role.
    pub runner: RoleName,
    /// Its name.
    pub tool: ToolName,
    /// Where its definition stands.
    pub state: ToolState,
    /// The definition that is meant: the pinned one, or the held one.
    pub definition: Digest,
    /// What it says it is.
    pub description: String,
    /// Its JSON Schema, as text.
    pub input_schema: String,
    /// How many connections serve it.
    pub served_by: u64,
}

/// Where a tool's definition stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ToolState {
    /// The configuration states it.
    Declared,
    /// Accepted, by an operator or at first sight.
    Pinned,
    /// Waits for an operator.
    Held,
}
