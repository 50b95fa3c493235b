//! `rolebroker call`.

use crate::out;
use std::io::{IsTerminal as _, Write as _};
use std::time::{SystemTime, UNIX_EPOCH};

use client::{Client, DenyReason, FailureCode, Label, Outcome, Update};
use serde::Serialize;

use crate::cli::{CallArgs, Place};
use crate::exit::{self, Exit};
use crate::{arguments, explain, printable, render};

const SOFTWARE: &str = concat!("rolebroker ", env!("CARGO_PKG_VERSION"));

/// What `--json` prints; a stable shape.
#[derive(Debug, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
enum Printed<'a> {
    Result {
        session: &'a str,
        call: u64,
        content: &'a str,
        class: &'a str,
        untrusted: bool,
        truncated: bool,
    },
    Denied {
        session: &'a str,
        call: u64,
        reason: &'a str,
        means: &'a str,
        next: &'a str,
    },
    Failed {
        session: &'a str,
        call: u64,
        code: &'a str,
        text: &'a str,
        means: &'a str,
        next: &'a str,
    },
}

/// Calls a tool and prints how it ended.
///
/// # Errors
/// When the arguments are wrong, or the broker cannot be asked.
pub async fn run(place: &Place, args: CallArgs) -> anyhow::Result<Exit> {
    let arguments = arguments::parse(&args.arguments)?;
    let number = args.call.unwrap_or_else(now);
    let client = Client::connect_as(place.socket("agent"), SOFTWARE).await?;
    let mut call = client
        .call(&args.session, number, &args.tool, arguments)
        .await?;
    let watched = std::io::stderr().is_terminal();
    let mut text = String::new();
    let mut joined = Label::BOTTOM;
    loop {
        match call.next().await? {
            Some(Update::Part { content, label }) => {
                text.push_str(&content);
                joined = joined.join(label);
            }
            Some(Update::Final(outcome)) => {
                let outcome = match outcome {
                    Outcome::Result {
                        content,
                        label,
                        truncated,
                    } => Outcome::Result {
                        content: text + &content,
                        label: joined.join(label),
                        truncated,
                    },
                    ended @ (Outcome::Failed { .. } | Outcome::Denied(_)) => ended,
                };
                let session = args.session.as_str();
                return Ok(if place.json {
                    out::json(&json(session, number, &outcome));
                    code(&outcome)
                } else {
                    print(&outcome)?
                });
            }
            Some(step) => {
                if watched {
                    eprintln!("{}", step_line(&step));
                }
            }
            None => anyhow::bail!("the call ended without an outcome"),
        }
    }
}

fn step_line(step: &Update) -> String {
    match step {
        Update::Pending { approval, expires } => format!(
            "waiting for a person: approval {approval}, {}; answer with `rolebroker approve {approval}`",
            render::lapses(*expires, now())
        ),
        Update::Progress { done, total, note } => {
            let of = if *total == 0 {
                String::new()
            } else {
                format!("/{total}")
            };
            format!("{done}{of} {}", printable::text(note))
        }
        Update::Part { .. } | Update::Final(_) => String::new(),
    }
}

/// The outcome as one JSON object, always of the same shape.
pub fn json(session: &str, call: u64, outcome: &Outcome) -> String {
    let printed = match outcome {
        Outcome::Result {
            content,
            label,
            truncated,
        } => Printed::Result {
            session,
            call,
            content,
            class: label.class.as_str(),
            untrusted: label.untrusted,
            truncated: *truncated,
        },
        Outcome::Denied(reason) => {
            let (means, next) = explain::denied(*reason);
            let reason = reason.as_str();
            Printed::Denied {
                session,
                call,
                reason,
                means,
                next,
            }
        }
        Outcome::Failed { code, text } => {
            let (means, next) = explain::failed(*code);
            let code = code.as_str();
            Printed::Failed {
                session,
                call,
                code,
                text,
                means,
                next,
            }
        }
    };
    // Strings, numbers and booleans can always be written.
    serde_json::to_string(&printed).unwrap_or_default()
}

fn print(outcome: &Outcome) -> std::io::Result<Exit> {
    match outcome {
        Outcome::Result {
            content,
            label,
            truncated,
        } => {
            let mut out = std::io::stdout();
            if out.is_terminal() {
                out.write_all(printable::lines(content).as_bytes())?;
                if !content.ends_with('\n') {
                    out.write_all(b"\n")?;
                }
                let cut = if *truncated {
                    ", cut to fit a frame"
                } else {
                    ""
                };
                eprintln!("({label}{cut})");
            } else {
                out.write_all(content.as_bytes())?;
            }
            out.flush()?;
        }
        Outcome::Denied(reason) => eprintln!("{}", denied_text(*reason)),
        Outcome::Failed { code, text } => eprintln!("{}", failed_text(*code, text)),
    }
    Ok(code(outcome))
}

/// A denial for a person: the reason, what it means, what to do.
pub fn denied_text(reason: DenyReason) -> String {
    let (means, next) = explain::denied(reason);
    format!("denied: {} - {means}\n  next: {next}", reason.as_str())
}

/// A failure for a person: the code, what was said, what it means, what to do.
pub fn failed_text(code: FailureCode, text: &str) -> String {
    let (means, next) = explain::failed(code);
    format!(
        "failed: {code} - {means}\n  it said: {}\n  next: {next}",
        printable::text(text)
    )
}

fn code(outcome: &Outcome) -> Exit {
    match outcome {
        Outcome::Result { .. } => exit::DONE,
        Outcome::Denied(_) => exit::DENIED,
        Outcome::Failed { .. } => exit::FAILED,
    }
}

/// Unix milliseconds.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
