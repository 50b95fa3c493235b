//! Why a call failed: the closed list of codes that stand before the colon of `failed.message`.

use std::fmt;

use crate::wire::ToolResponse;

/// The code of a failure. `failed.message` is `code: text` (DESIGN 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailureCode {
    /// No runner serves the tool, and none came within `runner_wait`.
    NoRunner,
    /// A quota is used up; the text names it.
    Busy,
    /// The runner was silent for `call_timeout`, or took longer than `call_limit`.
    TimedOut,
    /// Somebody cancelled the call.
    Cancelled,
    /// The call may have run; it is never run again by itself.
    UnknownOutcome,
    /// The call or its answer does not fit a frame, or its arguments are too long to be asked about.
    TooLarge,
    /// What the runner itself said went wrong.
    RunnerFailed,
    /// The broker takes no new calls.
    ShuttingDown,
}

impl FailureCode {
    /// Every code.
    pub const ALL: [FailureCode; 8] = [
        FailureCode::NoRunner,
        FailureCode::Busy,
        FailureCode::TimedOut,
        FailureCode::Cancelled,
        FailureCode::UnknownOutcome,
        FailureCode::TooLarge,
        FailureCode::RunnerFailed,
        FailureCode::ShuttingDown,
    ];

    /// The code as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            FailureCode::NoRunner => "no_runner",
            FailureCode::Busy => "busy",
            FailureCode::TimedOut => "timed_out",
            FailureCode::Cancelled => "cancelled",
            FailureCode::UnknownOutcome => "unknown_outcome",
            FailureCode::TooLarge => "too_large",
            FailureCode::RunnerFailed => "runner_failed",
            FailureCode::ShuttingDown => "shutting_down",
        }
    }

    /// The answer with this code and `text`.
    pub fn response(self, text: &str) -> ToolResponse {
        ToolResponse::Failed {
            message: format!("{}: {text}", self.as_str()),
        }
    }

    /// The code that a `failed.message` begins with.
    pub fn of_message(message: &str) -> Option<FailureCode> {
        let (code, _) = message.split_once(": ")?;
        FailureCode::ALL
            .into_iter()
            .find(|known| known.as_str() == code)
    }
}

impl fmt::Display for FailureCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
