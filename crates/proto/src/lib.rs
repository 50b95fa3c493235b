//! The wire of rolebroker: what roles and the broker say to each other, how it is framed, and how
//! strictly it is read. No I/O and no clock. `docs/protocol.md` says the same at the byte level.

// A new variant of an enum must be looked at everywhere.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod approval;
pub mod control;
pub mod decode;
mod detail;
pub mod failure;
pub mod frame;
mod grammar;
pub mod json;
pub mod label;
pub mod names;
pub mod numbers;
pub mod scan;
pub mod session;
pub mod tool;
pub mod wire;

pub use approval::{
    Answer, ApprovalReply, ApprovalRequest, ApprovalSettled, Approvals, AskingGrant, CallEnd,
    CallSettled, ListApprovals, Outcome, Raise, Scope,
};
pub use control::{Control, ControlReply};
pub use decode::{
    DecodeError, Decoded, decode, decode_shared, encode, encode_message, encode_with,
};
pub use failure::FailureCode;
pub use label::{DataClass, Label};
pub use names::{ApprovalId, Digest, GrantId, NameError, RoleName, SessionId, ToolName};
pub use numbers::{CallId, Timestamp};
pub use session::{
    Cancel, Feature, Hello, JoinSession, Joined, LabelScope, RoleKind, SessionJoined, Welcome,
};
pub use tool::{
    Access, Content, Effects, ListTools, ListedTool, NotTaken, Offer, Offered, Progress, ToolSpec,
    Tools, ToolsChanged,
};
pub use wire::{
    DenyReason, Envelope, ErrorCode, Message, PROTOCOL_VERSION, ToolRequest, ToolResponse,
    WireError,
};
