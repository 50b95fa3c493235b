//! How a call is put before a person, and the answer brought back.

use serde::{Deserialize, Serialize};

use crate::label::Label;
use crate::names::{ApprovalId, Digest, GrantId, RoleName, SessionId, ToolName};
use crate::numbers::{CallId, Timestamp};

/// Please decide on this call. Pushed under id 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ApprovalRequest {
    /// Names this approval.
    pub approval: ApprovalId,
    /// The agent role that asks.
    pub role: RoleName,
    /// Its session.
    pub session: SessionId,
    /// The call there.
    pub call: CallId,
    /// The tool.
    pub tool: ToolName,
    /// The whole arguments, as they would be sent.
    pub arguments: String,
    /// What the session has seen.
    pub label: Label,
    /// The calls that raised the label, oldest first.
    pub raised_by: Vec<Raise>,
    /// The grants that ask.
    pub grants: Vec<AskingGrant>,
    /// What an answer may cover.
    pub scopes: Vec<Scope>,
    /// How many people (distinct uids) must approve: the most that one grant wants.
    pub quorum: u32,
    /// SHA-256 over runner role, definition, tool, arguments and label: what is approved.
    pub digest: Digest,
    /// When it was asked.
    pub created: Timestamp,
    /// When it lapses.
    pub expires: Timestamp,
}

/// A call that raised a session's label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Raise {
    /// The call's number in its session.
    pub call: CallId,
    /// Its tool.
    pub tool: ToolName,
    /// The label after it.
    pub label: Label,
}

/// A grant that asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AskingGrant {
    /// Which grant.
    pub grant: GrantId,
    /// Its own reason.
    pub why: String,
    /// The JSON Pointers whose values a standing approval would pin; `""` is all of the arguments.
    pub pointers: Vec<String>,
}

/// What an approval covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// This call.
    Once,
    /// A standing approval in this session, in the bounds that its grants state.
    Session,
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ApprovalReply {
    /// Which approval.
    pub approval: ApprovalId,
    /// The digest of what the person saw.
    pub digest: Digest,
    /// Yes or no.
    pub answer: Answer,
    /// What a yes covers.
    pub scope: Scope,
    /// A word of the person's; at most 1,024 bytes.
    pub comment: String,
}

/// Yes or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It may run.
    Approve,
    /// It may not; one is enough.
    Refuse,
}

/// What became of an approval. Answers an [`ApprovalReply`], and is pushed under id 0 to every
/// approver that was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ApprovalSettled {
    /// Which approval.
    pub approval: ApprovalId,
    /// What became of it.
    pub outcome: Outcome,
    /// The role that settled it; empty where nobody did.
    pub by: String,
    /// What was said with it.
    pub comment: String,
}

/// What became of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The answer counts; more people must approve.
    Counted,
    /// Approved.
    Approved,
    /// Refused.
    Refused,
    /// Nobody answered in time.
    Expired,
    /// The call was cancelled.
    Cancelled,
    /// The question is no longer the one that was asked; a new one may have been.
    Superseded,
}

/// Which approvals are there for this approver?
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ListApprovals {
    /// Also those that were settled in the last hour.
    pub settled: bool,
}

/// The answer to [`ListApprovals`]; a long one comes as several envelopes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Approvals {
    /// Those that wait, oldest first.
    pub pending: Vec<ApprovalRequest>,
    /// Those of the last hour, oldest first.
    pub settled: Vec<ApprovalSettled>,
    /// What became of the calls that were approved in the last hour and have ended, oldest first.
    pub calls: Vec<CallSettled>,
}

/// What became of a call that was approved. Pushed under id 0 to every approver that was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CallSettled {
    /// Which approval.
    pub approval: ApprovalId,
    /// The agent role that asked.
    pub role: RoleName,
    /// Its session.
    pub session: SessionId,
    /// The call there.
    pub call: CallId,
    /// The tool.
    pub tool: ToolName,
    /// How it ended.
    pub end: CallEnd,
    /// The failure's code or the denial's reason; empty for a result.
    pub detail: String,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CallEnd {
    /// With a result.
    Result,
    /// With a failure.
    Failed,
    /// It was denied after all.
    Denied,
}
