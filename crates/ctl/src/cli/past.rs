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
///
/// Judges the recorded decisions again, each by itself: with the label, the time, the arguments and the uses of then,
/// what the runner offered then, and the same grants of run time on top. What one changed decision would change for
/// later ones (a label that rises, a use that is spent, an approval) is not followed. Reads the store itself, also
/// while the daemon runs or cannot.
///
/// Exits with 0 if none changes and with 1 if some do, as diff does; with 66 if what it reads cannot be read, with 78
/// if the configuration would not be taken, and with 70 if a decision is not what the rules of its time say.
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
