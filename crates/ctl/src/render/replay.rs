//! What a replay found, for a person and for a program.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::why::at;
use crate::past::Gone;
use crate::printable;
use crate::replay::{Alike, Answer, Change, Report};

/// Characters of an example's arguments that are shown.
const MAX_ARGUMENTS: usize = 400;

/// For a person: what is wrong, what changes, and how many were judged.
pub fn all(report: &Report) -> String {
    let mut out = String::new();
    for (change, alike) in Report::sorted(&report.faults) {
        let what = "is recorded, and the rules of its time say";
        group(&mut out, change, alike, what);
    }
    for (change, alike) in Report::sorted(&report.changes) {
        group(&mut out, change, alike, "would be");
    }
    // Writing into a String does not fail.
    let (judged, changed) = (report.judged, report.changed());
    let _ = writeln!(out, "judged     {judged}");
    let _ = writeln!(out, "unchanged  {}", judged - changed);
    let _ = writeln!(out, "changed    {changed}");
    for (gone, count) in &report.gone {
        let _ = writeln!(out, "not judged {count}: {}", gone.words());
    }
    for (why, count) in &report.misfits {
        let why = printable::message(why);
        let _ = writeln!(
            out,
            "not judged {count}: rolebrokerd would have refused this configuration then: {}; revoke the grant, or mend \
             the file",
            why.trim_end()
        );
    }
    let faults: u64 = report.faults.values().map(|alike| alike.count).sum();
    if faults > 0 {
        let _ = writeln!(
            out,
            "{faults} recorded decisions are not what the rules of their time say: `rolebroker audit verify --head HASH` \
             tells whether the record was written anew; if not, this is a fault of rolebroker: report it"
        );
    }
    out
}

pub(super) fn group(out: &mut String, change: &Change, alike: &Alike, what: &str) {
    let call = &alike.call;
    let lines = [
        format!(
            "{} times: {} {what} {}",
            alike.count,
            answer(&change.from),
            answer(&change.to)
        ),
        format!("  role     {}", change.role),
        format!("  tool     {}", change.tool),
        format!("  before   {}", grants(&change.from)),
        format!("  after    {}", grants(&change.to)),
        format!(
            "  newest   {}  {}/{}#{}",
            at(alike.at),
            call.session.role,
            call.session.session,
            call.call
        ),
        format!("           {}", arguments(&alike.arguments)),
    ];
    let _ = writeln!(out, "{}\n", lines.join("\n"));
}

fn answer(answer: &Answer) -> String {
    match answer.reason {
        "" => answer.answer.to_owned(),
        reason => format!("{} ({reason})", answer.answer),
    }
}

fn grants(answer: &Answer) -> String {
    match answer.grants.as_slice() {
        [] => "no grant".to_owned(),
        grants => {
            let names: Vec<_> = grants.iter().map(|grant| grant.as_str()).collect();
            names.join(", ")
        }
    }
}

fn arguments(text: &str) -> String {
    let shown = printable::json(text);
    match shown.char_indices().nth(MAX_ARGUMENTS) {
        Some((end, _)) => format!("{}... ({} bytes)", &shown[..end], text.len()),
        None => shown,
    }
}

/// The same for a program, as one object. Times are in milliseconds.
pub fn json(report: &Report) -> Value {
    let status = if !report.faults.is_empty() {
        "faults"
    } else if !report.changes.is_empty() {
        "changed"
    } else {
        "unchanged"
    };
    let gone = report.gone.iter().map(not_judged);
    let misfits = report
        .misfits
        .iter()
        .map(|(why, count)| json!({ "why": "grant", "count": count, "words": why }));
    json!({
        "status": status,
        "judged": report.judged,
        "unchanged": report.judged - report.changed(),
        "changed": report.changed(),
        "not_judged": gone.chain(misfits).collect::<Vec<_>>(),
        "changes": groups(Report::sorted(&report.changes)),
        "faults": groups(Report::sorted(&report.faults)),
    })
}

/// Decisions that could not be judged, for a program.
pub(super) fn not_judged((gone, count): (&Gone, &u64)) -> Value {
    json!({ "why": gone.as_str(), "count": count, "words": gone.words() })
}

pub(super) fn groups(sorted: Vec<(&Change, &Alike)>) -> Vec<Value> {
    let group = |(change, alike): (&Change, &Alike)| {
        json!({
            "count": alike.count,
            "role": change.role,
            "tool": change.tool,
            "from": one(&change.from),
            "to": one(&change.to),
            "newest": {
                "at": alike.at,
                "session": alike.call.session.session,
                "call": alike.call.call,
                "arguments": alike.arguments,
            },
        })
    };
    sorted.into_iter().map(group).collect()
}

fn one(answer: &Answer) -> Value {
    json!({ "answer": answer.answer, "reason": answer.reason, "grants": answer.grants })
}
