//! The envelope, and the kinds that the seed fixed: `tool_request`, `tool_response`, `error`.
//!
//! Fields are written in the order in which they stand here; the fixtures hold it.

use serde::{Deserialize, Serialize};

use crate::approval::{
    ApprovalReply, ApprovalRequest, ApprovalSettled, Approvals, CallSettled, ListApprovals,
};
use crate::control::{Control, ControlReply};
use crate::label::DataClass;
use crate::names::{ApprovalId, SessionId, ToolName};
use crate::numbers::{CallId, Timestamp};
use crate::session::{Cancel, Hello, JoinSession, Joined, SessionJoined, Welcome};
use crate::tool::{ListTools, Offer, Offered, Progress, Tools, ToolsChanged};

/// The only version there is.
pub const PROTOCOL_VERSION: u32 = 1;

/// One frame's content: `{"v":1,"id":7,"final":true,"msg":{"kind":…,"body":{…}}}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    /// [`PROTOCOL_VERSION`].
    pub v: u32,
    /// The request's number on its connection; 0 for what the broker pushes unasked.
    pub id: u64,
    /// False while more is to come under this id.
    pub r#final: bool,
    /// What is said.
    pub msg: Message,
}

/// What is said, by kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    tag = "kind",
    content = "body",
    rename_all = "snake_case",
    deny_unknown_fields
)]
pub enum Message {
    /// Agent to broker, broker to runner: run this tool.
    ToolRequest(ToolRequest),
    /// The answer, or a step towards it.
    ToolResponse(ToolResponse),
    /// The request could not be taken at all.
    Error(WireError),
    /// The first word of a peer that speaks more than the seed's kinds.
    Hello(Hello),
    /// The broker's answer to a hello.
    Welcome(Welcome),
    /// End a call.
    Cancel(Cancel),
    /// How far a call is.
    Progress(Progress),
    /// A runner's tools.
    Offer(Offer),
    /// What became of an offer.
    Offered(Offered),
    /// Which tools may a session call?
    ListTools(ListTools),
    /// These.
    Tools(Tools),
    /// The answer to `list_tools` may have changed.
    ToolsChanged(ToolsChanged),
    /// Another connection of the role joined two sessions.
    SessionJoined(SessionJoined),
    /// Carry one session's label into another.
    JoinSession(JoinSession),
    /// The label after a join.
    Joined(Joined),
    /// Please decide on a call.
    ApprovalRequest(ApprovalRequest),
    /// A person's answer.
    ApprovalReply(ApprovalReply),
    /// What became of an approval.
    ApprovalSettled(ApprovalSettled),
    /// What became of a call that was approved.
    CallSettled(CallSettled),
    /// Which approvals are there?
    ListApprovals(ListApprovals),
    /// These.
    Approvals(Approvals),
    /// An operator's request.
    Control(Control),
    /// Its answer.
    ControlReply(ControlReply),
}

/// The request could not be taken at all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WireError {
    /// Which rule was broken.
    pub code: ErrorCode,
    /// The field's path and the rule; never a value.
    pub detail: String,
}

/// Which rule was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// Not a frame, or not JSON in it; the connection is closed.
    BadFrame,
    /// `v` is not [`PROTOCOL_VERSION`].
    BadVersion,
    /// JSON, but not an envelope that this role may send now.
    BadMessage,
    /// A limit of the broker's own; `busy: <quota>`.
    Internal,
}

/// Run this tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ToolRequest {
    /// The conversation that asks.
    pub session: SessionId,
    /// The request's number in it.
    pub call: CallId,
    /// A [`ToolName`].
    #[serde(deserialize_with = "tool_name")]
    #[cfg_attr(feature = "schema", schemars(with = "ToolName"))]
    pub tool: String,
    /// The model's JSON object, carried as text; not parsed here.
    pub arguments: String,
}

/// The answer to a [`ToolRequest`], or a step towards it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "status", rename_all = "snake_case", deny_unknown_fields)]
pub enum ToolResponse {
    /// A person is asked; `final` is false.
    PendingApproval {
        /// An [`ApprovalId`].
        #[serde(deserialize_with = "approval_id")]
        #[cfg_attr(feature = "schema", schemars(with = "ApprovalId"))]
        approval: String,
        /// When the question lapses.
        expires: Timestamp,
    },
    /// What the tool gave; with `final` false, a part of it.
    Result {
        /// Text, or the lines of an MCP answer.
        content: String,
        /// How confidential it is.
        class: DataClass,
        /// Whether a stranger could have written it.
        untrusted: bool,
        /// Whether it was cut to fit a frame.
        truncated: bool,
    },
    /// It did not run, or did not end well: `code: text`, see [`crate::FailureCode`].
    Failed {
        /// `code: text`.
        message: String,
    },
    /// It may not run.
    Denied {
        /// Why not.
        reason: DenyReason,
    },
}

/// Why a call may not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DenyReason {
    /// No grant permits it.
    NoGrant,
    /// The grant that would permit it has expired.
    GrantExpired,
    /// The session has seen too much.
    TaintTooHigh,
    /// A grant with the effect deny applies.
    DeniedByGrant,
    /// A person said no.
    ApprovalRefused,
    /// Nobody answered in time, or nobody could be asked.
    ApprovalExpired,
}

impl DenyReason {
    /// Every reason.
    pub const ALL: [DenyReason; 6] = [
        DenyReason::NoGrant,
        DenyReason::GrantExpired,
        DenyReason::TaintTooHigh,
        DenyReason::DeniedByGrant,
        DenyReason::ApprovalRefused,
        DenyReason::ApprovalExpired,
    ];

    /// The reason as the wire writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            DenyReason::NoGrant => "no_grant",
            DenyReason::GrantExpired => "grant_expired",
            DenyReason::TaintTooHigh => "taint_too_high",
            DenyReason::DeniedByGrant => "denied_by_grant",
            DenyReason::ApprovalRefused => "approval_refused",
            DenyReason::ApprovalExpired => "approval_expired",
        }
    }
}

impl Envelope {
    /// The only or last envelope under `id`.
    pub fn last(id: u64, msg: Message) -> Self {
        Self {
            v: PROTOCOL_VERSION,
            id,
            r#final: true,
            msg,
        }
    }

    /// An envelope under `id` that more will follow.
    pub fn more(id: u64, msg: Message) -> Self {
        Self {
            v: PROTOCOL_VERSION,
            id,
            r#final: false,
            msg,
        }
    }
}

impl Message {
    /// The kind as the wire writes it.
    pub fn kind(&self) -> &'static str {
        match self {
            Message::ToolRequest(_) => "tool_request",
            Message::ToolResponse(_) => "tool_response",
            Message::Error(_) => "error",
            Message::Hello(_) => "hello",
            Message::Welcome(_) => "welcome",
            Message::Cancel(_) => "cancel",
            Message::Progress(_) => "progress",
            Message::Offer(_) => "offer",
            Message::Offered(_) => "offered",
            Message::ListTools(_) => "list_tools",
            Message::Tools(_) => "tools",
            Message::ToolsChanged(_) => "tools_changed",
            Message::SessionJoined(_) => "session_joined",
            Message::JoinSession(_) => "join_session",
            Message::Joined(_) => "joined",
            Message::ApprovalRequest(_) => "approval_request",
            Message::ApprovalReply(_) => "approval_reply",
            Message::ApprovalSettled(_) => "approval_settled",
            Message::CallSettled(_) => "call_settled",
            Message::ListApprovals(_) => "list_approvals",
            Message::Approvals(_) => "approvals",
            Message::Control(_) => "control",
            Message::ControlReply(_) => "control_reply",
        }
    }

    /// Whether this answers a request: such kinds travel under the request's id.
    pub fn is_reply(&self) -> bool {
        is_reply_kind(self.kind())
    }
}

/// Whether `kind` answers a request. False for request kinds and for unknown ones.
pub fn is_reply_kind(kind: &str) -> bool {
    matches!(
        kind,
        "tool_response"
            | "error"
            | "welcome"
            | "progress"
            | "offered"
            | "tools"
            | "tools_changed"
            | "session_joined"
            | "joined"
            | "approval_request"
            | "approval_settled"
            | "call_settled"
            | "approvals"
            | "control_reply"
    )
}

fn tool_name<'de, D: serde::Deserializer<'de>>(d: D) -> Result<String, D::Error> {
    ToolName::deserialize(d).map(String::from)
}

fn approval_id<'de, D: serde::Deserializer<'de>>(d: D) -> Result<String, D::Error> {
    ApprovalId::deserialize(d).map(String::from)
}
