//! What a tool says it is, who offers it, who may call it, and how far a call is.

use serde::{Deserialize, Serialize};

use crate::label::DataClass;
use crate::names::{SessionId, ToolName};

/// What running a tool twice does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Effects {
    /// Nothing: it only reads.
    Read,
    /// The same as running it once.
    Idempotent,
    /// Something else: it runs at most once.
    Once,
}

/// The form of a tool's results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Text; may be cut to fit a frame.
    Text,
    /// JSON lines: MCP notifications, then the result; never cut.
    Mcp,
}

/// A tool, as a runner offers it. Name, description and input schema are its definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ToolSpec {
    /// Its name.
    pub name: ToolName,
    /// What a model reads about it.
    pub description: String,
    /// A JSON Schema, as text.
    pub input_schema: String,
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

/// All the tools of a runner's connection; replaces its last offer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Offer {
    /// The whole list.
    pub tools: Vec<ToolSpec>,
}

/// What became of an [`Offer`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Offered {
    /// Served from now on.
    pub accepted: Vec<ToolName>,
    /// Waiting for an operator's `accept_tool`.
    pub held: Vec<NotTaken>,
    /// Not served.
    pub refused: Vec<NotTaken>,
}

/// A tool that is not served, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NotTaken {
    /// Which tool.
    pub name: ToolName,
    /// Why it is not served.
    pub reason: String,
}

/// Which tools may this session call now, arguments aside?
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ListTools {
    /// The conversation that asks.
    pub session: SessionId,
}

/// The answer to [`ListTools`]; a long one comes as several envelopes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Tools {
    /// In the order of their names.
    pub tools: Vec<ListedTool>,
}

/// A tool that a session may call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ListedTool {
    /// What it is; only pinned text.
    pub spec: ToolSpec,
    /// Whether a person is asked first.
    pub access: Access,
}

/// What a session gets when it calls a tool, arguments aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// A person is asked first.
    Ask,
    /// It runs.
    Allow,
}

/// The answer to `list_tools` may have changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ToolsChanged {}

/// How far a call is; under the call's id, `final` false.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// Units done so far; must grow.
    pub done: u64,
    /// Units in all; 0: unknown.
    pub total: u64,
    /// A word for a person; at most 1,024 bytes are forwarded.
    pub note: String,
}
