//! Hello, cancel and join: what is said about a connection, a call or a session as a whole.

use serde::{Deserialize, Serialize};

use crate::label::Label;
use crate::names::{RoleName, SessionId};
use crate::numbers::CallId;

/// The first word of a peer that speaks more than the seed's three kinds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// The peer's name and version; at most 1,024 bytes.
    pub software: String,
    /// What it understands, of [`Feature`]; unknown ones are ignored.
    pub features: Vec<String>,
}

/// The broker's answer to a [`Hello`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Welcome {
    /// The role whose socket this is.
    pub role: RoleName,
    /// What that role is.
    pub role_kind: RoleKind,
    /// Whose label decides; `none` for other kinds than agents.
    pub label_scope: LabelScope,
    /// The largest frame, in bytes without its length.
    pub max_frame: u64,
    /// How many calls may be in flight.
    pub max_in_flight: u64,
    /// What of the hello's features is switched on.
    pub features: Vec<Feature>,
}

/// What a peer may understand beyond the plain kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Feature {
    /// Results in parts.
    Parts,
    /// `progress`.
    Progress,
    /// `tools_changed`.
    Tools,
}

impl Feature {
    /// The feature of that name, if there is one.
    pub fn of_name(name: &str) -> Option<Feature> {
        match name {
            "parts" => Some(Feature::Parts),
            "progress" => Some(Feature::Progress),
            "tools" => Some(Feature::Tools),
            _ => None,
        }
    }
}

/// What a role is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RoleKind {
    /// Talks to a model and asks for tool calls.
    Agent,
    /// Executes tools.
    Runner,
    /// Brings calls before a person.
    Approver,
    /// Inspects and steers the broker.
    Operator,
}

impl RoleKind {
    /// The kind as the wire and the configuration write it.
    pub fn as_str(self) -> &'static str {
        match self {
            RoleKind::Agent => "agent",
            RoleKind::Runner => "runner",
            RoleKind::Approver => "approver",
            RoleKind::Operator => "operator",
        }
    }
}

/// Whose label decides on an agent role's calls (DESIGN 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LabelScope {
    /// The session's own.
    Session,
    /// One label for all sessions of the role.
    Role,
    /// Not an agent.
    None,
}

/// End a call. From an agent, a request; to a runner, under the id of the request that it ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    /// The call's session.
    pub session: SessionId,
    /// Its number there.
    pub call: CallId,
}

/// Join the label of `from` into `into`: a compaction (`close`), a fork, a sub-agent's return.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct JoinSession {
    /// Whose label is carried.
    pub from: SessionId,
    /// Where it is carried; made if it does not exist.
    pub into: SessionId,
    /// Whether `from` ends with this.
    pub close: bool,
}

/// The label of `into` after a join.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Joined {
    /// The label that `into` has now.
    pub label: Label,
}

/// Pushed to the role's other connections after a join.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SessionJoined {
    /// Whose label was carried.
    pub from: SessionId,
    /// Where to.
    pub into: SessionId,
    /// Whether `from` ended with it.
    pub close: bool,
    /// The label that `into` has now.
    pub label: Label,
}
