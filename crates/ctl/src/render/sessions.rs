//! Sessions as text for a person.

use std::fmt::Write as _;

use client::proto::Raise;
use client::proto::control::{SessionStatus, StandingStatus};

use super::{lapses, span};
use crate::printable;

/// A line for each session; `now` in Unix milliseconds.
pub(super) fn all(sessions: &[SessionStatus], now: u64) -> String {
    if sessions.is_empty() {
        return "no sessions; `rolebroker status` shows the roles that there are\n".to_owned();
    }
    let mut out = format!(
        "{:<28} {:<24} {:>6} {:>9}  {}\n",
        "session", "label", "uid", "in flight", "last used"
    );
    for session in sessions {
        // Writing into a String does not fail.
        let _ = write!(
            out,
            "{:<28} {:<24} {:>6} {:>9}  {}",
            session.session.as_str(),
            session.label.to_string(),
            session.owner,
            session.in_flight,
            used(session, now)
        );
        if let Some(end) = end(session) {
            let _ = write!(out, "; {end}");
        }
        out.push('\n');
    }
    out
}

/// One session: its label, what raised it, and what is approved in it already.
pub(super) fn one(
    session: &SessionStatus,
    raised_by: &[Raise],
    standing: &[StandingStatus],
    now: u64,
) -> String {
    let mut out = format!("{}  {}\n", session.session, session.label);
    for raise in raised_by {
        let _ = writeln!(
            out,
            "  raised by  call {} of {}: {}",
            raise.call, raise.tool, raise.label
        );
    }
    let _ = writeln!(out, "  owner      uid {}", session.owner);
    let _ = writeln!(
        out,
        "  used       {}; calls in flight: {}",
        used(session, now),
        session.in_flight
    );
    if let Some(end) = end(session) {
        let _ = writeln!(out, "  ended      {end}");
    }
    for approval in standing {
        let _ = writeln!(out, "  {}", standing_line(approval, now));
    }
    out
}

/// How a session ended, if it did.
fn end(session: &SessionStatus) -> Option<String> {
    if !session.went_into.is_empty() {
        Some(format!("went into {}", printable::text(&session.went_into)))
    } else {
        session.closed.then(|| "closed".to_owned())
    }
}

fn standing_line(standing: &StandingStatus, now: u64) -> String {
    let grants: Vec<&str> = standing.grants.iter().map(|grant| grant.as_str()).collect();
    format!(
        "standing   {}: {} where {} asks, up to {}; calls left: {}; {}; given by {}",
        standing.approval,
        standing.tool,
        grants.join(", "),
        standing.label,
        standing.uses_left,
        lapses(standing.expires, now),
        standing.by
    )
}

fn used(session: &SessionStatus, now: u64) -> String {
    format!(
        "{} ago",
        span(now.saturating_sub(session.last_used.millis()))
    )
}
