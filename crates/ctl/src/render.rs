//! Approvals and the broker's state as text for a person. All that others wrote is escaped.

use std::fmt::Write as _;

use client::proto::control::RoleStatus;
use client::proto::{ControlReply, Timestamp};

use crate::printable;

mod approval;
pub(crate) mod audit;
pub mod check;
mod grants;
pub mod replay;
pub mod seen;
mod sessions;
mod tools;
mod why;

pub use approval::{call_settled, end, request, settled};
pub use tools::definition;
pub use why::event;

/// What the broker answered to an operator; `now` in Unix milliseconds.
pub fn reply(reply: &ControlReply, now: u64) -> String {
    match reply {
        ControlReply::Status { .. } => status(reply),
        ControlReply::Reloaded { ruleset, changes } => reloaded(ruleset.as_str(), changes),
        ControlReply::Explained { judgement, trace } => why::explained(judgement, trace),
        ControlReply::Suggested { grant, notes } => why::suggested(grant, notes),
        ControlReply::Event { event: happened } => event(happened),
        ControlReply::Draining { .. } => {
            "draining: no new calls are taken, and it ends when those in flight have\n".to_owned()
        }
        ControlReply::Done {} => "done\n".to_owned(),
        ControlReply::Sessions { sessions } => sessions::all(sessions, now),
        ControlReply::Session {
            session,
            raised_by,
            standing,
        } => sessions::one(session, raised_by, standing, now),
        ControlReply::Joined { label } => format!("joined; the label is now {label}\n"),
        ControlReply::Grants { grants } => grants::all(grants, now),
        ControlReply::Preapproved { approval, expires } => {
            format!("approved as {approval}; {}\n", lapses(*expires, now))
        }
        ControlReply::Tools { tools } => tools::all(tools),
    }
}

fn reloaded(ruleset: &str, changes: &[String]) -> String {
    let mut out = format!("loaded; ruleset {ruleset}\n");
    if changes.is_empty() {
        out.push_str("nothing changed\n");
    }
    for change in changes {
        let _ = writeln!(out, "  {}", printable::text(change));
    }
    out
}

fn status(reply: &ControlReply) -> String {
    let mut out = String::new();
    let ControlReply::Status {
        version,
        started,
        now,
        ruleset,
        draining,
        records,
        head,
        warnings,
        roles,
    } = reply
    else {
        return out;
    };
    let state = if *draining {
        "draining: takes no new calls"
    } else {
        "serving"
    };
    let _ = writeln!(
        out,
        "rolebrokerd {}, {state}, up {}",
        printable::text(version),
        span(now.since(*started))
    );
    let _ = writeln!(out, "ruleset {ruleset}");
    let _ = writeln!(out, "record  {records} records, head {head}");
    for warning in warnings {
        let _ = writeln!(out, "warning: {}", printable::text(warning));
    }
    let _ = writeln!(
        out,
        "{:<18} {:<9} {:>5} {:>9} {:>8} {:>9} {:>9} {:>9}",
        "role", "kind", "conns", "in flight", "sessions", "approvals", "waiting", "stored"
    );
    for role in roles {
        let _ = writeln!(out, "{}", role_line(role));
    }
    for role in roles.iter().filter(|role| role.dropped_replies > 0) {
        let (name, count) = (role.role.as_str(), role.dropped_replies);
        let _ = writeln!(
            out,
            "{name}: {count} replies were dropped, under ids that were not open"
        );
    }
    out
}

fn role_line(role: &RoleStatus) -> String {
    format!(
        "{:<18} {:<9} {:>5} {:>9} {:>8} {:>9} {:>9} {:>9}",
        role.role.as_str(),
        role.kind.as_str(),
        role.connections,
        role.in_flight,
        role.sessions,
        role.approvals,
        bytes(role.waiting_bytes),
        bytes(role.stored_bytes)
    )
}

/// Until when something is good, from `now` in Unix milliseconds.
pub fn lapses(expires: Timestamp, now: u64) -> String {
    match expires.millis().checked_sub(now) {
        Some(left) => format!("lapses in {}", span(left)),
        None => "has lapsed".to_owned(),
    }
}

/// A span of milliseconds in its two largest units.
fn span(millis: u64) -> String {
    let seconds = millis / 1000;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    if days > 0 {
        format!("{days}d {hours}h")
    } else if hours > 0 {
        format!("{hours}h {minutes}m")
    } else if minutes > 0 {
        format!("{minutes}m {}s", seconds % 60)
    } else {
        format!("{seconds}s")
    }
}

fn bytes(count: u64) -> String {
    match count {
        0..1024 => format!("{count} B"),
        1024..1_048_576 => format!("{} KiB", count >> 10),
        _ => format!("{} MiB", count >> 20),
    }
}
