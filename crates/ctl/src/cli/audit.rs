//! What an auditor types.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use client::proto::{Digest, RoleName, SessionId, Timestamp, ToolName};

use super::units;

/// `audit`.
///
/// Reads the store itself, also while the daemon runs or cannot: whoever may read its folder may audit. Each record
/// is checked against the chain before it is shown.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct AuditArgs {
    /// What else to do with the record
    #[command(subcommand)]
    pub what: Option<AuditCommand>,
    /// Where the store is.
    #[command(flatten)]
    pub store: StoreArgs,
    /// Only what is about this role
    #[arg(long)]
    pub role: Option<RoleName>,
    /// Only what is about this session
    #[arg(long)]
    pub session: Option<SessionId>,
    /// Only what is about this tool
    #[arg(long)]
    pub tool: Option<ToolName>,
    /// Only decisions that were this
    #[arg(long, value_enum)]
    pub decision: Option<DecisionArg>,
    /// Only what happened since: an age such as 2h, or a date such as 2026-05-01 or 2026-05-01T12:00:00Z
    #[arg(long, value_name = "AGE|DATE", value_parser = units::since)]
    pub since: Option<Timestamp>,
    /// Only the last N of them
    #[arg(short = 'n', long, value_name = "N")]
    pub lines: Option<usize>,
    /// Go on with what is recorded from now on, until interrupted
    #[arg(short, long)]
    pub follow: bool,
}

/// Where the store is.
#[derive(Debug, Args)]
pub struct StoreArgs {
    /// The daemon's state_dir [default: /var/lib/rolebroker, or below $XDG_STATE_HOME for an ordinary user]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
}

/// What else to do with the record.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Check the whole chain, and tell its head: keep that elsewhere
    Verify(VerifyArgs),
    /// Write each record as a line of JSON, as it stands in the chain
    Export(StoreArgs),
}

/// `audit verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Where the store is.
    #[command(flatten)]
    pub store: StoreArgs,
    /// A head that was told before, and kept elsewhere: it must be in the chain
    #[arg(long, value_name = "HASH")]
    pub head: Option<Digest>,
}

/// `backup`.
///
/// One file, readable by its owner alone, as the store is at this moment; the daemon goes on meanwhile. To put it
/// back: stop the daemon, remove rolebroker.db and what is named after it in the state_dir, put the copy there as
/// rolebroker.db with the daemon's user as its owner, start. Labels are then what they were at the copy: close the
/// sessions that have seen more since.
#[derive(Debug, Args)]
pub struct BackupArgs {
    /// Where the store is.
    #[command(flatten)]
    pub store: StoreArgs,
    /// The file to make; it must not exist
    pub file: PathBuf,
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DecisionArg {
    /// A runner got it
    Permit,
    /// A person was asked
    Ask,
    /// It was not let through
    Deny,
}
