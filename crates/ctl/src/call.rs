//! `rolebroker call`.

use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use client::{Call, Client, DenyReason, FailureCode, Label, Outcome, Update};
use serde::Serialize;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::arguments;
use crate::cli::{CallArgs, Place};
use crate::exit::{self, Exit};
use crate::explain::{self, Asked};
use crate::out;
use crate::printable;
use crate::progress::Progress;

const SOFTWARE: &str = concat!("rolebroker ", env!("CARGO_PKG_VERSION"));
/// How often the time that has passed is drawn anew.
const REDRAWN: Duration = Duration::from_secs(1);

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
        next: String,
    },
    Failed {
        session: &'a str,
        call: u64,
        code: &'a str,
        text: &'a str,
        means: &'a str,
        next: String,
    },
}

/// Calls a tool and prints how it ended. An interrupt cancels the call and waits for its answer; a second one does
/// not.
///
/// # Errors
/// When the arguments are wrong, or the broker cannot be asked.
pub async fn run(place: &Place, args: CallArgs) -> anyhow::Result<Exit> {
    let arguments = arguments::parse(&args.arguments)?;
    let number = args.call.unwrap_or_else(now);
    let client = Client::connect_as(place.socket("agent"), SOFTWARE).await?;
    // From here on, so that none is lost between the call and the waiting for it.
    let mut interrupts = signal(SignalKind::interrupt()).context("cannot wait for ^C")?;
    let call = client
        .call(&args.session, number, &args.tool, arguments)
        .await?;
    let session = args.session.as_str();
    let ended = {
        let cancel = || cancel(client.clone(), session.to_owned(), number);
        wait(place, call, &mut interrupts, cancel).await?
    };
    let Some(outcome) = ended else {
        return Ok(exit::INTERRUPTED);
    };
    let welcome = client.welcome();
    let asked = Asked {
        role: welcome.role.as_str(),
        session,
        call: number,
        tool: args.tool.as_str(),
        label_scope: welcome.label_scope,
    };
    if place.json {
        out::json(&json(&asked, &outcome));
    } else {
        match print(&asked, &outcome) {
            // A reader that went away is no fault: the exit code still says how it went.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            printed => printed.context("the result cannot be written")?,
        }
    }
    Ok(code(&outcome))
}

/// Waits for the whole outcome of a call, and shows how far it is. `None` if it was interrupted twice; the first
/// time, it is cancelled.
async fn wait(
    place: &Place,
    mut call: Call,
    interrupts: &mut Signal,
    cancel: impl Fn(),
) -> anyhow::Result<Option<Outcome>> {
    let mut progress = Progress::start(place);
    let mut cancelled = false;
    let mut seconds = tokio::time::interval(REDRAWN);
    let mut parts = Parts::default();
    loop {
        let update = tokio::select! {
            update = call.next() => update?,
            _ = seconds.tick() => {
                progress.draw();
                continue;
            }
            _ = interrupts.recv() => {
                if cancelled {
                    return Ok(None);
                }
                cancelled = true;
                progress.say("cancelling; ^C again leaves at once");
                cancel();
                continue;
            }
        };
        match update {
            Some(Update::Part { content, label }) => parts.add(&content, label),
            Some(Update::Final(outcome)) => return Ok(Some(parts.before(outcome))),
            Some(step @ (Update::Pending { .. } | Update::Progress { .. })) => {
                if !cancelled {
                    progress.step(&step);
                }
            }
            None => anyhow::bail!("the call ended without an outcome"),
        }
    }
}

/// Asks for the call's end. The call itself is told how it ends; what the broker says to this is told there too.
fn cancel(client: Client, session: String, number: u64) {
    tokio::spawn(async move {
        if let Ok(told) = client.cancel(session, number).await {
            let _ = told.finish().await;
        }
    });
}

/// The pieces of an answer so far.
#[derive(Debug)]
struct Parts {
    text: String,
    label: Label,
}

impl Default for Parts {
    fn default() -> Self {
        Parts {
            text: String::new(),
            label: Label::BOTTOM,
        }
    }
}

impl Parts {
    fn add(&mut self, content: &str, label: Label) {
        self.text.push_str(content);
        self.label = self.label.join(label);
    }

    /// The outcome with the pieces that came before it.
    fn before(self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Result {
                content,
                label,
                truncated,
            } => Outcome::Result {
                content: self.text + &content,
                label: self.label.join(label),
                truncated,
            },
            ended @ (Outcome::Failed { .. } | Outcome::Denied(_)) => ended,
        }
    }
}

/// The outcome as one JSON object, always of the same shape.
pub fn json(asked: &Asked<'_>, outcome: &Outcome) -> String {
    let Asked { session, call, .. } = *asked;
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
            let (means, next) = (
                explain::denied(*reason),
                explain::after_denied(*reason, asked),
            );
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
            let (means, next) = (explain::failed(*code), explain::after_failed(*code, asked));
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

fn print(asked: &Asked<'_>, outcome: &Outcome) -> std::io::Result<()> {
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
        Outcome::Denied(reason) => eprintln!("{}", denied_text(*reason, asked)),
        Outcome::Failed { code, text } => eprintln!("{}", failed_text(*code, text, asked)),
    }
    Ok(())
}

/// A denial for a person: the reason, what it means, what to do.
pub fn denied_text(reason: DenyReason, asked: &Asked<'_>) -> String {
    let (means, next) = (
        explain::denied(reason),
        explain::after_denied(reason, asked),
    );
    format!("denied: {} - {means}\n  next: {next}", reason.as_str())
}

/// A failure for a person: the code, what was said, what it means, what to do.
pub fn failed_text(code: FailureCode, text: &str, asked: &Asked<'_>) -> String {
    let (means, next) = (explain::failed(code), explain::after_failed(code, asked));
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
