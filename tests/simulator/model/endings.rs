//! How a call ends for whoever waits: once, with what is its own, and always the same (invariant 6).

use engine::CallKey;
use proto::{DenyReason, FailureCode, ToolResponse};

use crate::model::Model;
use crate::model::answers::{Kept, Weight, code, weight};
use crate::peers::marker;

/// The one `runner_failed` that is the broker's own word: nothing that a runner wrote.
const LOST: &str = "runner_failed: the runner was lost while it ran";

impl Model {
    /// The final answer to a call, whole.
    pub(crate) fn ends(
        &mut self,
        key: &CallKey,
        fingerprint: Option<u64>,
        response: ToolResponse,
        ticket: u64,
    ) {
        self.count(&response);
        let Some(call) = self.calls.get_mut(key) else {
            panic!("invariant 6: an answer to a call that was never asked: {key:?} {response:?}");
        };
        let dispatched = call.ever_dispatched;
        if code(&response) == Some(FailureCode::RunnerFailed) {
            let (floor, ToolResponse::Failed { message }) = (call.floor, &response) else {
                return;
            };
            let message = message.clone();
            self.check_markers(key, fingerprint, &message);
            if message != LOST {
                self.sees(key, floor, ticket);
            }
        }
        if code(&response) == Some(FailureCode::UnknownOutcome) {
            let forgotten = self.is_forgotten(&key.session, key.call);
            assert!(
                dispatched || forgotten,
                "the outcome of {key:?} is called unknown, but it never ran and was not forgotten"
            );
        }
        self.keeps(key, fingerprint, response, ticket);
    }

    /// Invariant 6: whoever asks the same again hears the same again.
    fn keeps(
        &mut self,
        key: &CallKey,
        fingerprint: Option<u64>,
        response: ToolResponse,
        ticket: u64,
    ) {
        let forgotten = self.is_forgotten(&key.session, key.call);
        let call = self.calls.get_mut(key).expect("looked up by the caller");
        let weight = weight(&response, call.attempts > 0);
        let Some(kept) = &mut call.kept else {
            // What was forgotten is unknown to whoever asks, whatever they ask.
            let unknown = code(&response) == Some(FailureCode::UnknownOutcome);
            if weight == Weight::Kept && !(unknown && forgotten) {
                // A cancel does not say what was asked; there is at least one who did.
                let asked = call.asked.keys().next_back().copied();
                let fingerprint = fingerprint.or(if call.asked.len() == 1 { asked } else { None });
                let Some(fingerprint) = fingerprint else {
                    return;
                };
                let tickets = vec![ticket];
                call.kept = Some(Kept {
                    fingerprint,
                    response,
                    tickets,
                    crashed: false,
                });
            }
            return;
        };
        let same = fingerprint.is_none_or(|fingerprint| fingerprint == kept.fingerprint);
        if same && kept.response == response {
            self.coverage.repeats_served += 1;
            self.coverage.answers_repeated_after_a_crash += u64::from(kept.crashed);
            kept.tickets.push(ticket);
            return;
        }
        let busy = matches!(
            code(&response),
            Some(FailureCode::Busy | FailureCode::ShuttingDown)
        );
        let unknown = code(&response) == Some(FailureCode::UnknownOutcome);
        let denied = response
            == ToolResponse::Denied {
                reason: DenyReason::DeniedByGrant,
            };
        if forgotten && (unknown || weight == Weight::NotKept) {
            call.kept = None;
            return;
        }
        assert!(
            busy || denied,
            "invariant 6: {key:?} was answered {:?} and now {response:?} (same request: {same})",
            kept.response
        );
        if denied {
            self.must_be_denied(key, fingerprint);
        }
    }

    /// Everything a runner wrote carries the mark of its own call, and of no other.
    pub(crate) fn check_markers(&self, key: &CallKey, fingerprint: Option<u64>, text: &str) {
        let call = &self.calls[key];
        let role = key.session.role.as_str();
        let expected: Vec<String> = call
            .asked
            .iter()
            .filter(|(asked, _)| fingerprint.is_none_or(|wanted| wanted == **asked))
            .map(|(_, (tool, arguments))| {
                marker(
                    role,
                    key.session.session.as_str(),
                    key.call.0,
                    tool,
                    arguments,
                )
            })
            .collect();
        for (at, _) in text.match_indices("<<") {
            let rest = &text[at..];
            assert!(
                expected
                    .iter()
                    .any(|mark| rest.starts_with(mark) || mark.starts_with(rest)),
                "invariant 6: {key:?} hears of another call: {:.80}",
                rest
            );
        }
        assert!(
            !text.contains("out of turn"),
            "an answer that nobody asked for reached {key:?}"
        );
    }

    fn count(&mut self, response: &ToolResponse) {
        let coverage = &mut self.coverage;
        match response {
            ToolResponse::PendingApproval { .. } => {}
            ToolResponse::Result {
                truncated, content, ..
            } => {
                coverage.results += 1;
                let long = content.len() > 2000;
                coverage.results_cut += u64::from(*truncated && long);
            }
            ToolResponse::Denied { reason } => match reason {
                DenyReason::NoGrant => coverage.denied_no_grant += 1,
                DenyReason::GrantExpired => coverage.denied_expired_grant += 1,
                DenyReason::TaintTooHigh => coverage.denied_taint += 1,
                DenyReason::DeniedByGrant => coverage.denied_by_grant += 1,
                DenyReason::ApprovalRefused | DenyReason::ApprovalExpired => {}
            },
            ToolResponse::Failed { .. } => match code(response) {
                Some(FailureCode::NoRunner) => coverage.no_runner += 1,
                Some(FailureCode::Busy) => coverage.busy += 1,
                Some(FailureCode::TimedOut) => coverage.timed_out += 1,
                Some(FailureCode::Cancelled) => coverage.cancelled += 1,
                Some(FailureCode::UnknownOutcome) => coverage.unknown_outcomes += 1,
                Some(FailureCode::TooLarge) => coverage.too_large += 1,
                Some(FailureCode::RunnerFailed) => coverage.runner_failures += 1,
                Some(FailureCode::ShuttingDown) => coverage.shutting_down += 1,
                None => {}
            },
        }
    }
}
