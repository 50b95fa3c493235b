//! Deny reasons and failure codes in words, and what to type next.

use client::proto::LabelScope;
use client::{DenyReason, FailureCode};

/// Which call it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked<'a> {
    /// The agent role.
    pub role: &'a str,
    /// Its session.
    pub session: &'a str,
    /// The call's number.
    pub call: u64,
    /// The tool.
    pub tool: &'a str,
    /// Whose label decides.
    pub label_scope: LabelScope,
}

/// What a reason means.
pub fn denied(reason: DenyReason) -> &'static str {
    match reason {
        DenyReason::NoGrant => {
            "no grant lets this role call this tool with these arguments in this session, or its uses are spent"
        }
        DenyReason::GrantExpired => "the grant that would let it has expired",
        DenyReason::TaintTooHigh => {
            "this session has seen confidential or untrusted data that must not go there"
        }
        DenyReason::DeniedByGrant => "a grant with the effect deny forbids it",
        DenyReason::ApprovalRefused => "a person was asked and said no",
        DenyReason::ApprovalExpired => "nobody answered in time, or nobody could be asked",
    }
}

/// What to type after a denial.
pub fn after_denied(reason: DenyReason, asked: &Asked<'_>) -> String {
    let Asked {
        role,
        session,
        call,
        tool,
        label_scope,
    } = asked;
    match reason {
        DenyReason::NoGrant => format!(
            "as operator, `rolebroker explain {role} {session} {call}` shows each grant and why it fell, and \
             `rolebroker suggest {role} {session} {call}` the smallest one that would permit it"
        ),
        DenyReason::GrantExpired => format!(
            "as operator, `rolebroker explain {role} {session} {call}` shows which; renew it in the configuration, and \
             `rolebroker reload`"
        ),
        DenyReason::TaintTooHigh => {
            let (other, label) = match label_scope {
                LabelScope::Role => ("", "'*'"),
                LabelScope::Session | LabelScope::None => {
                    ("go on in a new session with --session NAME; or, ", *session)
                }
            };
            format!(
                "{other}as operator, `rolebroker session {role} {session}` shows what raised it, and `rolebroker \
                 declassify {role} {label} CLASS --reason WHY` or `rolebroker endorse {role} {label} --reason WHY` \
                 lowers it"
            )
        }
        DenyReason::DeniedByGrant => format!(
            "as operator, `rolebroker explain {role} {session} {call}` shows which; nothing overrides a deny"
        ),
        DenyReason::ApprovalRefused => {
            "as approver, `rolebroker approvals --settled` shows who and why; the same call \
             is answered no for a while (`refusal_ttl`)"
                .to_owned()
        }
        DenyReason::ApprovalExpired => format!(
            "see that an approver is there whose `max_class` covers this session, and call {tool} again: without --call \
             it gets a new number"
        ),
    }
}

/// What a code means.
pub fn failed(code: FailureCode) -> &'static str {
    match code {
        FailureCode::NoRunner => "no runner that serves this tool is connected; it did not run",
        FailureCode::Busy => "a quota is used up; it did not run",
        FailureCode::TimedOut => "the runner took too long",
        FailureCode::Cancelled => "somebody cancelled the call",
        FailureCode::UnknownOutcome => {
            "it may have run, and nobody knows; it is never run again by itself"
        }
        FailureCode::TooLarge => "it does not fit",
        FailureCode::RunnerFailed => "the tool itself failed",
        FailureCode::ShuttingDown => "the broker takes no new calls",
    }
}

/// What to type after a failure.
pub fn after_failed(code: FailureCode, asked: &Asked<'_>) -> String {
    let tool = asked.tool;
    match code {
        FailureCode::NoRunner => format!(
            "start the runner that serves {tool} (such as rolebroker-runner) and call again; as operator, `rolebroker \
             tools` shows what is served"
        ),
        FailureCode::Busy => {
            "call again later; as operator, `rolebroker status` shows what each role uses"
                .to_owned()
        }
        FailureCode::TimedOut => {
            "see whether the runner hangs; a tool may report progress to take longer".to_owned()
        }
        FailureCode::Cancelled => "call again: without --call it gets a new number".to_owned(),
        FailureCode::UnknownOutcome => {
            "look whether it happened before you call again; without --call it gets a new number"
                .to_owned()
        }
        FailureCode::TooLarge => "ask for less".to_owned(),
        FailureCode::RunnerFailed => {
            "see what it said, mend the arguments, and call again".to_owned()
        }
        FailureCode::ShuttingDown => {
            "call again when it is back; `rolebroker status` says so".to_owned()
        }
    }
}
