//! An approval as text for a person: all that is decided on, and what became of it.

use std::fmt::Write as _;

use client::proto::{ApprovalRequest, ApprovalSettled, CallEnd, CallSettled, Outcome};
use client::{DenyReason, FailureCode, Scope};

use super::lapses;
use crate::layout::{self, count, field};
use crate::{explain, printable};

/// How far in the arguments stand.
const IN: usize = 4;

/// One approval that waits, whole, in lines of at most `width` columns; `now` in Unix milliseconds.
pub fn request(request: &ApprovalRequest, now: u64, width: usize) -> Vec<String> {
    let asks = format!(
        "{}  {} asks for {}",
        request.approval, request.role, request.tool
    );
    let mut lines = layout::behind("", "  ", &asks, width);
    let mut push = |indent, name: &str, shown: &str| {
        lines.extend(field(indent, name, shown, width));
    };
    push(
        2,
        "session",
        &format!("{}, call {}", request.session, request.call),
    );
    push(2, "time", &lapses(request.expires, now));
    push(2, "label", &request.label.to_string());
    for raise in &request.raised_by {
        let raised = format!("call {} of {}: {}", raise.call, raise.tool, raise.label);
        push(4, "since", &raised);
    }
    for grant in &request.grants {
        let why = match grant.why.as_str() {
            "" => "(it states no reason)".to_owned(),
            why => printable::text(why),
        };
        push(2, "asked by", &format!("grant {}: {why}", grant.grant));
    }
    push(2, "people", &people(request.quorum));
    push(2, "scope", "once: this call");
    if request.scopes.contains(&Scope::Session) {
        push(2, "", &session(request));
    }
    push(2, "digest", request.digest.as_str());
    lines.extend(arguments(request, width));
    lines
}

fn people(quorum: u32) -> String {
    match quorum {
        0 | 1 => "one must approve".to_owned(),
        more => format!("{more} must approve"),
    }
}

/// The bounds of a standing approval.
fn session(request: &ApprovalRequest) -> String {
    let mut bounds = format!(
        "session: more calls of {} in {}, up to the label {}",
        request.tool, request.session, request.label
    );
    for grant in &request.grants {
        let pins = grant.pointers.iter().map(|pointer| match pointer.as_str() {
            "" => "all arguments".to_owned(),
            pointer => printable::text(pointer),
        });
        let pins = pins.collect::<Vec<_>>().join(", ");
        // Writing into a String does not fail.
        let _ = write!(
            bounds,
            "; for grant {} with the same {pins}, in the time and number that it states",
            grant.grant
        );
    }
    bounds
}

fn arguments(request: &ApprovalRequest, width: usize) -> Vec<String> {
    let laid = layout::json(&request.arguments, IN, width);
    let size = format!("{} bytes", count(request.arguments.len()));
    let mut lines = field(2, "arguments", &size, width);
    lines.extend(laid.lines);
    let mut warn = |told: &str| lines.extend(layout::behind("  ! ", "    ", told, width));
    if laid.hidden > 0 {
        warn(&format!(
            "characters that are invisible or move others, shown as \\u{{...}}: {}",
            count(laid.hidden)
        ));
    }
    if laid.suspects > 0 {
        warn(&format!(
            "words that can be taken for others, each described above: {}",
            count(laid.suspects)
        ));
    }
    lines
}

/// What became of an approval, on one line.
pub fn settled(settled: &ApprovalSettled) -> String {
    let mut line = format!("{}  {}", settled.approval, outcome(settled.outcome));
    if !settled.by.is_empty() {
        let _ = write!(line, ", by {}", printable::text(&settled.by));
    }
    if !settled.comment.is_empty() {
        let _ = write!(line, ": {}", printable::text(&settled.comment));
    }
    line
}

/// How an approved call ended, on one line.
pub fn call_settled(call: &CallSettled) -> String {
    format!(
        "{}  {} ({} of {} in session {}, call {})",
        call.approval,
        end(call),
        call.tool,
        call.role,
        call.session,
        call.call
    )
}

/// How a call ended, in words.
pub fn end(call: &CallSettled) -> String {
    let detail = printable::text(&call.detail);
    match call.end {
        CallEnd::Result => "the call ran: result".to_owned(),
        CallEnd::Failed => {
            let code = FailureCode::ALL
                .into_iter()
                .find(|it| it.as_str() == call.detail);
            let means = meaning(code.map(explain::failed));
            format!("the call failed: {detail}{means}")
        }
        CallEnd::Denied => {
            let reason = DenyReason::ALL
                .into_iter()
                .find(|it| it.as_str() == call.detail);
            let means = meaning(reason.map(explain::denied));
            format!("the call was denied after all: {detail}{means}")
        }
    }
}

/// What a code means; nothing of one that a newer broker sent.
fn meaning(means: Option<&'static str>) -> String {
    means.map_or_else(String::new, |means| format!(" - {means}"))
}

fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Counted => "counted; more people must approve",
        Outcome::Approved => "approved",
        Outcome::Refused => "refused",
        Outcome::Expired => "expired: nobody answered in time",
        Outcome::Cancelled => "cancelled: the call is gone",
        Outcome::Superseded => {
            "superseded: the question is another one now; see `rolebroker approvals`"
        }
    }
}
