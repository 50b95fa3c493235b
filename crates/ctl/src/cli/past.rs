//! What is typed to look at past decisions.

use std::path::PathBuf;

use clap::Args;
use client::proto::{RoleName, SessionId, Timestamp, ToolName};
use store::record::SessionKey;

use super::{StoreArgs, units};

/// Which past decisions are meant.
#[derive(Debug, Default, Clone, Args)]
pub struct PastArgs {
    /// Only calls of this role
    #[arg(long)]
    pub role: Option<RoleName>,
    /// Only calls in this session
    #[arg(long)]
    pub session: Option<SessionId>,
    /// Only calls of this tool
    #[arg(long)]
    pub tool: Option<ToolName>,
    /// Only what was decided since: an age such as 2h, or a date such as 2026-05-01 or 2026-05-01T12:00:00Z
    #[arg(long, value_name = "AGE|DATE", value_parser = units::since)]
    pub since: Option<Timestamp>,
    /// Only what was decided before: an age or a date, as for --since
    #[arg(long, value_name = "AGE|DATE", value_parser = units::since)]
    pub until: Option<Timestamp>,
}

impl PastArgs {
    /// Whether a decision about a call of this session and tool at this time is one of them.
    pub fn is_meant(&self, session: &SessionKey, tool: &ToolName, at: Timestamp) -> bool {
        self.role.as_ref().is_none_or(|it| *it == session.role)
            && self
                .session
                .as_ref()
                .is_none_or(|it| *it == session.session)
            && self.tool.as_ref().is_none_or(|it| it == tool)
            && self.since.is_none_or(|since| at >= since)
            && self.until.is_none_or(|until| at < until)
    }
}

/// `replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// The configuration to judge under [default: the rules of each decision's time, as a check of the record itself:
    /// then none changes]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Which decisions.
    #[command(flatten)]
    pub past: PastArgs,
    /// Where the store is.
    #[command(flatten)]
    pub store: StoreArgs,
}
