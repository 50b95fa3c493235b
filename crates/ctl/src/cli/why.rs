//! What an operator types to see why.

use clap::Args;
use client::proto::{RoleName, SessionId, ToolName};

/// `explain`.
///
/// A past call by its number; or, with `--tool`, one that was never made, as it would be decided now.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The agent role
    pub role: RoleName,
    /// Its session
    pub session: SessionId,
    /// A tool: explain how a call of it would be decided now
    #[arg(long)]
    pub tool: Option<ToolName>,
    /// The call's number in the session; with --tool its arguments, as `call` takes them
    #[arg(value_name = "CALL|ARGUMENTS")]
    pub rest: Vec<String>,
}

/// `suggest`.
#[derive(Debug, Args)]
pub struct SuggestArgs {
    /// The agent role
    pub role: RoleName,
    /// Its session
    pub session: SessionId,
    /// The call's number in the session
    pub call: u64,
}

/// `tail`.
#[derive(Debug, Args)]
pub struct TailArgs {
    /// Only what is about this role
    #[arg(long)]
    pub role: Option<RoleName>,
    /// Only what is about this session
    #[arg(long)]
    pub session: Option<SessionId>,
}
