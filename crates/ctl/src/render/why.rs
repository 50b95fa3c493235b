//! Decisions, suggested grants and events as text for a person.

use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};

use client::proto::Timestamp;
use client::proto::control::{EventStatus, Judgement, Standing, TraceStatus};

use crate::printable;

/// A decision, and each grant of the ruleset with what became of it.
pub(super) fn explained(judgement: &Judgement, trace: &[TraceStatus]) -> String {
    let mut out = String::new();
    // Writing into a String does not fail.
    let _ = writeln!(out, "{}", printable::text(&judgement.words));
    let _ = writeln!(out, "  tool     {}", judgement.tool);
    let _ = writeln!(out, "  label    {}", judgement.label);
    let _ = writeln!(out, "  decided  {}", at(judgement.at));
    let _ = writeln!(out, "  ruleset  {}", judgement.ruleset);
    for (standing, title) in [
        (Standing::Counts, "these had a say:"),
        (Standing::Falls, "these are for such calls, and fell:"),
    ] {
        grants(&mut out, title, trace, standing);
    }
    let elsewhere = trace
        .iter()
        .filter(|line| line.standing == Standing::Elsewhere);
    let elsewhere: Vec<&str> = elsewhere.map(|line| line.grant.as_str()).collect();
    if !elsewhere.is_empty() {
        let _ = writeln!(
            out,
            "for other roles, sessions or tools: {}",
            elsewhere.join(", ")
        );
    }
    out
}

fn grants(out: &mut String, title: &str, trace: &[TraceStatus], standing: Standing) {
    let mut lines = trace
        .iter()
        .filter(|line| line.standing == standing)
        .peekable();
    if lines.peek().is_some() {
        let _ = writeln!(out, "{title}");
    }
    for line in lines {
        let what = printable::text(&line.what);
        let _ = writeln!(out, "  {}: {what}", line.grant);
    }
}

/// A grant as it can be pasted, the notes as comments above it.
pub(super) fn suggested(grant: &str, notes: &[String]) -> String {
    let mut out = String::new();
    for note in notes {
        let _ = writeln!(out, "# {}", printable::text(note));
    }
    for line in grant.lines() {
        // It is to be pasted, so what is plain stays as it is: an escape would change its meaning.
        let plain = line
            .bytes()
            .all(|byte| byte == b' ' || byte.is_ascii_graphic());
        let line = if plain {
            line.to_owned()
        } else {
            printable::text(line)
        };
        let _ = writeln!(out, "{line}");
    }
    out
}

/// One event on a line: when, what, about whom, and what was said of it.
pub fn event(event: &EventStatus) -> String {
    let mut out = String::new();
    if event.missed > 0 {
        let _ = writeln!(out, "({} events were missed)", event.missed);
    }
    let _ = write!(
        out,
        "{}  {:<17}",
        at(event.at),
        printable::text(&event.event)
    );
    let call = match event.call.0 {
        0 => String::new(),
        call => call.to_string(),
    };
    let elapsed = match event.elapsed_us {
        0 => String::new(),
        micros => format!("{}ms", micros / 1000),
    };
    let fields = [
        ("role", &event.role),
        ("session", &event.session),
        ("call", &call),
        ("tool", &event.tool),
        ("decision", &event.decision),
        ("reason", &event.reason),
        ("grant", &event.grant),
        ("approval", &event.approval),
        ("after", &elapsed),
    ];
    for (name, value) in fields {
        if !value.is_empty() {
            let _ = write!(out, " {name}={}", printable::text(value));
        }
    }
    out.push('\n');
    out
}

/// The last moment that a date can be written of: 9999-12-31T23:59:59Z.
const LAST_DATE: u64 = 253_402_300_799_000;

/// What is past the year 9999 as its last second.
pub(super) fn at(time: Timestamp) -> String {
    let since = Duration::from_millis(time.millis().min(LAST_DATE));
    humantime::format_rfc3339_seconds(UNIX_EPOCH + since).to_string()
}
