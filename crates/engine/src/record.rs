//! What is made durable: enough to restore the state that matters, and to say later who did what.
//! Records are the audit trail's rows too, so they are written as canonical JSON.

use proto::{
    Answer, ApprovalId, ApprovalRequest, CallId, Content, DataClass, DenyReason, Digest, Effects,
    GrantId, Label, Outcome, RoleName, Scope, SessionId, Timestamp, ToolName, ToolSpec,
};
use serde::{Deserialize, Serialize};

/// A record's number: they grow by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RecordId(pub u64);

/// A session, over all roles.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionKey {
    /// The agent role.
    pub role: RoleName,
    /// The session in it.
    pub session: SessionId,
}

/// A call, over all roles.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallKey {
    /// Its session.
    pub session: SessionKey,
    /// Its number there.
    pub call: CallId,
}

/// Who did it: a role's peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct By {
    /// The role.
    pub role: RoleName,
    /// The uid.
    pub uid: u32,
}

/// Who put a copy of the state in its place, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PutBack {
    /// The uid.
    pub uid: u32,
    /// Why.
    pub reason: String,
}

/// What a decision was made of, beside the call's name and the rules of its time: enough to judge it
/// again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Basis {
    /// Whether the rules ask a person: an approval let it through, or nobody could be asked.
    pub asks: bool,
    /// The label that decided.
    pub label: Label,
    /// What the tool's accepted definition said of it, where there was one.
    pub offer: Option<OfferedTool>,
    /// Uses spent by then, of the grants for this call that count them.
    pub uses: Vec<(GrantId, u64)>,
    /// The arguments, where they are kept: not under `audit_arguments_ttl` 0, nor over
    /// `limits::MAX_RECORDED_ARGUMENTS`, nor in an [`Record::Asked`], whose request has them.
    pub arguments: Option<String>,
}

/// What a runner said of a tool that it offered, the definition aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfferedTool {
    /// The least class of its results.
    pub class: DataClass,
    /// Whether its results could have been written by a stranger.
    pub untrusted: bool,
    /// What running it twice does.
    pub effects: Effects,
    /// Whether it can carry data out of the machine.
    pub egress: bool,
    /// The form of its results.
    pub content: Content,
}

impl OfferedTool {
    /// What a pinned definition says.
    pub fn of(spec: &ToolSpec) -> Self {
        Self {
            class: spec.class,
            untrusted: spec.untrusted,
            effects: spec.effects,
            egress: spec.egress,
            content: spec.content,
        }
    }

    /// As `policy::ToolFloor::effective` takes it; the definition is not in it.
    pub fn spec(&self, name: ToolName) -> ToolSpec {
        ToolSpec {
            name,
            description: String::new(),
            input_schema: String::new(),
            class: self.class,
            untrusted: self.untrusted,
            effects: self.effects,
            egress: self.egress,
            content: self.content,
        }
    }
}

/// What is made durable. `Engine::restore` reads exactly these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case", deny_unknown_fields)]
pub enum Record {
    /// A session was first used.
    Opened {
        /// When.
        at: Timestamp,
        /// Which session.
        session: SessionKey,
        /// Whose it is.
        owner: u32,
    },
    /// A session's own label rose.
    Raised {
        /// When.
        at: Timestamp,
        /// Which session.
        session: SessionKey,
        /// Its own label from now on.
        label: Label,
        /// What was joined into it, and into the role's.
        seen: Label,
        /// The call that raised it, where one did.
        call: Option<CallId>,
        /// That call's tool.
        tool: Option<ToolName>,
    },
    /// A call was refused by the ruleset.
    Denied {
        /// When.
        at: Timestamp,
        /// Which call.
        call: CallKey,
        /// Its tool.
        tool: ToolName,
        /// What was asked.
        fingerprint: Digest,
        /// Why.
        reason: DenyReason,
        /// The grant that says so, where one does.
        grant: Option<GrantId>,
        /// What the decision was made of; not where a person who was asked ended it, or nobody did in
        /// time, nor in records of layout 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        basis: Option<Box<Basis>>,
    },
    /// A person is asked about a call.
    Asked {
        /// What the approvers are shown.
        request: ApprovalRequest,
        /// What was asked.
        fingerprint: Digest,
        /// The runner role that would serve it.
        runner: RoleName,
        /// The definition that is shown.
        definition: Digest,
        /// What running it twice does.
        effects: Effects,
        /// Hashes of the asking grants, in the order of `request.grants`.
        grants: Vec<Digest>,
        /// The approver roles that are asked.
        asked: Vec<RoleName>,
        /// What the decision was made of; records of layout 1 do not have it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        basis: Option<Box<Basis>>,
    },
    /// An approver's answer that counts.
    Voted {
        /// When.
        at: Timestamp,
        /// On what.
        approval: ApprovalId,
        /// Who.
        by: By,
        /// Yes or no.
        answer: Answer,
        /// For how much.
        scope: Scope,
        /// What was said with it.
        comment: String,
    },
    /// An approval ended, spent ones aside.
    Settled {
        /// When.
        at: Timestamp,
        /// Which.
        approval: ApprovalId,
        /// How.
        outcome: Outcome,
        /// Who did it; empty where nobody did.
        by: String,
        /// What was said with it.
        comment: String,
    },
    /// A standing approval was given.
    Standing {
        /// When.
        at: Timestamp,
        /// Its name.
        approval: ApprovalId,
        /// Where it holds.
        session: SessionKey,
        /// For which tool.
        tool: ToolName,
        /// Served by which runner role.
        runner: RoleName,
        /// Under which definition.
        definition: Digest,
        /// For the asking of exactly these grants.
        grants: Vec<(GrantId, Digest)>,
        /// With these values: a canonical JSON object, pointer to value or null where absent.
        pins: Vec<(String, Option<String>)>,
        /// At a label no higher than this.
        label: Label,
        /// For so many calls.
        uses: u64,
        /// Until then.
        expires: Timestamp,
        /// Who gave it.
        by: By,
        /// Why, where an operator gave it beforehand.
        reason: String,
    },
    /// A call goes to a runner; what it spends is spent with this.
    Dispatched {
        /// When.
        at: Timestamp,
        /// Which call.
        call: CallKey,
        /// What was asked.
        fingerprint: Digest,
        /// Its tool.
        tool: ToolName,
        /// What running it twice does.
        effects: Effects,
        /// The grant that permits.
        grant: GrantId,
        /// Grants of which a use is spent.
        spend: Vec<GrantId>,
        /// The approval, once or standing, that is spent.
        approval: Option<ApprovalId>,
        /// What the decision was made of; records of layout 1 do not have it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        basis: Option<Box<Basis>>,
    },
    /// A call has its answer: kept, and told to every repeat.
    Answered {
        /// When.
        at: Timestamp,
        /// Which call.
        call: CallKey,
        /// What was asked.
        fingerprint: Digest,
        /// Its tool.
        tool: ToolName,
        /// The canonical bytes of the answer's `msg`.
        msg: String,
        /// The label that its content has.
        label: Label,
    },
    /// A runner answered a call whose outcome had been given as unknown; the answer is not released.
    Late {
        /// When.
        at: Timestamp,
        /// Which call.
        call: CallKey,
        /// `result`, `failed`.
        status: String,
    },
    /// An answer is kept no longer: the call id and all below count as `unknown_outcome`.
    Evicted {
        /// When.
        at: Timestamp,
        /// Which call.
        call: CallKey,
    },
    /// One session's label was joined into another.
    Joined {
        /// When.
        at: Timestamp,
        /// The role of both.
        role: RoleName,
        /// Whose label.
        from: SessionId,
        /// Where it went.
        into: SessionId,
        /// Whether `from` ended with it.
        close: bool,
        /// Who did it.
        by: By,
    },
    /// A session ended: it shrinks to its name, owner, label and watermark.
    Closed {
        /// When.
        at: Timestamp,
        /// Which.
        session: SessionKey,
        /// Who did it; absent where it was idle for too long, or was closed before and its last call ended.
        by: Option<By>,
    },
    /// An operator lowered a label: the only way down.
    Lowered {
        /// When.
        at: Timestamp,
        /// Whose role.
        role: RoleName,
        /// A session, or `*`: the role's own label.
        session: String,
        /// The label from now on.
        label: Label,
        /// Who did it.
        by: By,
        /// Why.
        reason: String,
    },
    /// An operator added a grant.
    Granted {
        /// When.
        at: Timestamp,
        /// Which.
        grant: GrantId,
        /// What it says.
        toml: String,
        /// Who did it.
        by: By,
        /// Why.
        reason: String,
    },
    /// An operator took a grant away that was added at run time.
    Revoked {
        /// When.
        at: Timestamp,
        /// Which.
        grant: GrantId,
        /// Who did it.
        by: By,
        /// Why.
        reason: String,
    },
    /// A tool's definition was accepted.
    Pinned {
        /// When.
        at: Timestamp,
        /// The runner role.
        runner: RoleName,
        /// What it says it is.
        spec: ToolSpec,
        /// Who accepted it; absent at first sight.
        by: Option<By>,
        /// Why.
        reason: String,
    },
    /// The configuration was loaded.
    Configured {
        /// When.
        at: Timestamp,
        /// SHA-256 of its text.
        ruleset: Digest,
        /// Its text; records of layout 1 do not have it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// Who asked, where an operator did.
        by: Option<By>,
    },
    /// The state as of an earlier record is kept beside the record, and takes its place. What is older
    /// than `begins` is given up.
    Snapshot {
        /// When.
        at: Timestamp,
        /// The last record that is in it.
        of: RecordId,
        /// SHA-256 over its parts.
        hash: Digest,
        /// The first record that is kept.
        begins: RecordId,
        /// The chain's hash before that one.
        before: Digest,
        /// SHA-256 of the configuration's text that counts.
        ruleset: Digest,
        /// Its text.
        text: Option<String>,
        /// The grants of run time that count.
        grants: Vec<(GrantId, String)>,
        /// Uses spent by then, by grant.
        uses: Vec<(GrantId, u64)>,
    },
    /// Requests of a role were over its rate, and answered `busy`: counted, not told one by one.
    Refused {
        /// When the count was closed.
        at: Timestamp,
        /// Whose requests.
        role: RoleName,
        /// When the first of them came.
        since: Timestamp,
        /// How many there were.
        count: u64,
    },
    /// What the records before this one tell is a copy that was put back: whatever came after it is not
    /// known. Every session counts as having seen all, is closed and takes no call id again.
    Restored {
        /// When.
        at: Timestamp,
        /// Who did it.
        uid: u32,
        /// Why.
        reason: String,
        /// The roles whose sessions, those to come too, count as having seen all.
        roles: Vec<RoleName>,
    },
    /// A drain began.
    Draining {
        /// When.
        at: Timestamp,
        /// Who asked, where an operator did.
        by: Option<By>,
    },
}

impl Record {
    /// When it happened.
    pub fn at(&self) -> Timestamp {
        match self {
            Record::Asked { request, .. } => request.created,
            Record::Opened { at, .. }
            | Record::Raised { at, .. }
            | Record::Denied { at, .. }
            | Record::Voted { at, .. }
            | Record::Settled { at, .. }
            | Record::Standing { at, .. }
            | Record::Dispatched { at, .. }
            | Record::Answered { at, .. }
            | Record::Late { at, .. }
            | Record::Evicted { at, .. }
            | Record::Joined { at, .. }
            | Record::Closed { at, .. }
            | Record::Lowered { at, .. }
            | Record::Granted { at, .. }
            | Record::Revoked { at, .. }
            | Record::Pinned { at, .. }
            | Record::Configured { at, .. }
            | Record::Snapshot { at, .. }
            | Record::Refused { at, .. }
            | Record::Restored { at, .. }
            | Record::Draining { at, .. } => *at,
        }
    }
}
