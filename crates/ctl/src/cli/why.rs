//! What an operator types to see why.

use std::path::PathBuf;

use clap::Args;
use client::proto::{RoleName, SessionId, Timestamp, ToolName};

use super::{PastArgs, StoreArgs, units};

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
    #[arg(value_name = "SESSION", required_unless_present = "past")]
    pub one_session: Option<SessionId>,
    /// The call's number in the session
    #[arg(required_unless_present = "past")]
    pub call: Option<u64>,
    /// Which set of calls.
    #[command(flatten)]
    pub seen: SeenArgs,
    /// From where.
    #[command(flatten)]
    pub from: RecordArgs,
}

/// What `suggest --past` is for.
#[derive(Debug, Default, Clone, Args)]
pub struct SeenArgs {
    /// For all the role's calls that the record has, or those that the options below leave; reads the store
    #[arg(long, conflicts_with_all = ONE_CALL)]
    pub past: bool,
    /// Only calls in this session, also where it is untrusted; may be given several times
    #[arg(long = "session", value_name = "SESSION", requires = "past", conflicts_with_all = ONE_CALL)]
    pub sessions: Vec<SessionId>,
    /// Only calls of this tool
    #[arg(long, requires = "past", conflicts_with_all = ONE_CALL)]
    pub tool: Option<ToolName>,
    /// Only what was decided since: an age such as 2h, or a date such as 2026-05-01 or 2026-05-01T12:00:00Z
    #[arg(long, value_name = "AGE|DATE", value_parser = units::since, requires = "past", conflicts_with_all = ONE_CALL)]
    pub since: Option<Timestamp>,
    /// Only what was decided before: an age or a date, as for --since
    #[arg(long, value_name = "AGE|DATE", value_parser = units::since, requires = "past", conflicts_with_all = ONE_CALL)]
    pub until: Option<Timestamp>,
    /// The configuration to write them for [default: the rules that count at the record's end]
    #[arg(long, value_name = "FILE", requires = "past", conflicts_with_all = ONE_CALL)]
    pub config: Option<PathBuf>,
    /// Write them for any session of the role, and not for those seen alone; named untrusted ones stay as they are
    #[arg(long, requires = "past", conflicts_with_all = ONE_CALL)]
    pub any_session: bool,
}

impl SeenArgs {
    /// The decisions of a role that are meant, its sessions aside.
    pub fn past(&self, role: &RoleName) -> PastArgs {
        PastArgs {
            role: Some(role.clone()),
            session: None,
            tool: self.tool.clone(),
            since: self.since,
            until: self.until,
        }
    }
}

/// What names one call. A `requires` does not count where these stand, so they are excluded one by one.
const ONE_CALL: [&str; 3] = ["one_session", "call", "record"];

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
