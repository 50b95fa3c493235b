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
/// One file, readable by its owner alone, as the store is at this moment; the daemon goes on meanwhile. `rolebroker
/// restore` puts it back.
#[derive(Debug, Args)]
pub struct BackupArgs {
    /// Where the store is.
    #[command(flatten)]
    pub store: StoreArgs,
    /// The file to make; it must not exist
    pub file: PathBuf,
}

/// `restore`.
///
/// Checks the copy whole, puts it in the store's place, and keeps what was there under other names, which it tells. The
/// daemon must be stopped. Nobody knows what was seen and done after the copy was made, so the next start takes the
/// worst: every session of it is closed and at secret and untrusted, none of its calls runs again, its approvals end, and
/// new sessions begin at secret and untrusted until an operator lowers the role's `*`.
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// Where the store is.
    #[command(flatten)]
    pub store: StoreArgs,
    /// The copy, from `rolebroker backup`; or the store's own rolebroker.db, to go on with what is left of it
    pub file: PathBuf,
    /// Why; it is recorded
    #[arg(long)]
    pub reason: String,
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
