//! What an operator types to see why.

use clap::Args;
use client::proto::{RoleName, SessionId, ToolName};

use super::StoreArgs;

/// `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The agent role
    pub role: RoleName,
    /// Its session
    pub session: SessionId,
    /// A tool: explain how a call of it would be decided now
    #[arg(long, conflicts_with_all = ["record", "state_dir"])]
    pub tool: Option<ToolName>,
    /// From where.
    #[command(flatten)]
    pub from: RecordArgs,
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
    /// From where.
    #[command(flatten)]
    pub from: RecordArgs,
}

/// Whether the daemon is asked, or the store is read.
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// Read the decision from the record, not from the daemon; so does --state-dir
    #[arg(long)]
    pub record: bool,
    /// Where the store is.
    #[command(flatten)]
    pub store: StoreArgs,
}

impl RecordArgs {
    /// The store, if it is meant.
    pub fn store(&self) -> Option<&StoreArgs> {
        let meant = self.record || self.store.state_dir.is_some();
        meant.then_some(&self.store)
    }
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
