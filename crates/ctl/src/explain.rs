//! Deny reasons and failure codes in words, and what to type next.

use client::{DenyReason, FailureCode};

/// What a reason means, and what can be done.
pub fn denied(reason: DenyReason) -> (&'static str, &'static str) {
    match reason {
        DenyReason::NoGrant => (
            "no grant lets this role call this tool with these arguments in this session, or its uses are spent",
            "add a [[grant]] to the configuration and run `rolebroker reload`, if it should",
        ),
        DenyReason::GrantExpired => (
            "the grant that would let it has expired",
            "an operator can renew it in the configuration",
        ),
        DenyReason::TaintTooHigh => (
            "this session has seen confidential or untrusted data that must not go there",
            "go on in a new session, or have an operator run `rolebroker declassify` or `endorse` on this one",
        ),
        DenyReason::DeniedByGrant => (
            "a grant with the effect deny forbids it",
            "see the grants in the configuration; nothing overrides a deny",
        ),
        DenyReason::ApprovalRefused => (
            "a person was asked and said no",
            "talk to them; the same call is answered no for a while (`refusal_ttl`)",
        ),
        DenyReason::ApprovalExpired => (
            "nobody answered in time, or nobody could be asked",
            "see that an approver is there whose `max_class` covers this session, and ask under a new number",
        ),
    }
}

/// What a code means, and what can be done.
pub fn failed(code: FailureCode) -> (&'static str, &'static str) {
    match code {
        FailureCode::NoRunner => (
            "no runner that serves this tool is connected; it did not run",
            "start the runner (such as rolebroker-runner) and try again",
        ),
        FailureCode::Busy => ("a quota is used up; it did not run", "try again later"),
        FailureCode::TimedOut => (
            "the runner took too long",
            "see whether the runner hangs; a tool may report progress to take longer",
        ),
        FailureCode::Cancelled => ("somebody cancelled the call", "ask under a new number"),
        FailureCode::UnknownOutcome => (
            "it may have run, and nobody knows; it is never run again by itself",
            "look whether it happened before you ask under a new number",
        ),
        FailureCode::TooLarge => ("it does not fit", "ask for less"),
        FailureCode::RunnerFailed => ("the tool itself failed", "see what it said"),
        FailureCode::ShuttingDown => ("the broker takes no new calls", "try again when it is back"),
    }
}
