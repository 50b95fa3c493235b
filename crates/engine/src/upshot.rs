//! What became of a call that was approved: told to those who were asked about it.

use bytes::Bytes;
use proto::{
    ApprovalId, CallEnd, CallSettled, DenyReason, Digest, FailureCode, Message, RoleName,
    Timestamp, ToolName,
};

use crate::engine::Engine;
use crate::limits::{MAX_CALLS_SETTLED, SETTLED_LISTED};
use crate::record::{CallKey, RecordId};

/// An approved call's end, as it is listed for an hour.
#[derive(Debug)]
pub(crate) struct Upshot {
    at: Timestamp,
    asked: Vec<RoleName>,
    settled: CallSettled,
    after: Option<RecordId>,
}

impl Engine {
    /// The approval under which a call ends, and who was asked: not one of the same number that
    /// was given for other content.
    pub(crate) fn told_of_end(
        &self,
        key: &CallKey,
        fingerprint: &Digest,
    ) -> Option<(ApprovalId, Vec<RoleName>)> {
        let cover = self.cover_of(key)?;
        let same = cover.question.fingerprint == *fingerprint && !cover.asked.is_empty();
        same.then(|| (cover.approval.clone(), cover.asked.clone()))
    }

    /// Tells the approvers that were asked how the call ended; never what a runner said.
    pub(crate) fn tell_approvers(
        &mut self,
        approval: ApprovalId,
        asked: Vec<RoleName>,
        key: &CallKey,
        tool: ToolName,
        answer: &Bytes,
        after: Option<RecordId>,
    ) {
        let (end, detail) = end(answer);
        let settled = CallSettled {
            approval,
            role: key.session.role.clone(),
            session: key.session.session.clone(),
            call: key.call,
            tool,
            end,
            detail: detail.to_owned(),
        };
        let msg = proto::encode_message(&Message::CallSettled(settled.clone()));
        for conn in self.approver_conns(&asked) {
            self.send(conn, after, 0, true, msg.clone());
        }
        self.upshots.push_back(Upshot {
            at: self.now,
            asked,
            settled,
            after,
        });
        let now = self.now;
        let old = |upshot: &Upshot| now.since(upshot.at) > SETTLED_LISTED;
        while self.upshots.len() > MAX_CALLS_SETTLED || self.upshots.front().is_some_and(old) {
            self.upshots.pop_front();
        }
    }

    /// The ends of the last hour that an approver role is told of.
    pub(crate) fn upshots_for(&self, role: &RoleName) -> Vec<(CallSettled, Option<RecordId>)> {
        let listed = self.upshots.iter().filter(|upshot| {
            upshot.asked.contains(role) && self.now.since(upshot.at) <= SETTLED_LISTED
        });
        listed
            .map(|upshot| (upshot.settled.clone(), upshot.after))
            .collect()
    }
}

/// How an answer's canonical bytes say that a call ended; the failure's code or the denial's reason.
pub(crate) fn end(answer: &Bytes) -> (CallEnd, &'static str) {
    const HEAD: &[u8] = br#"{"kind":"tool_response","body":{"status":""#;
    let body = answer.strip_prefix(HEAD).unwrap_or_default();
    let word = |rest: &[u8], words: &[&'static str]| {
        let word = words.iter().find(|word| rest.starts_with(word.as_bytes()));
        word.copied().unwrap_or_default()
    };
    if let Some(message) = body.strip_prefix(br#"failed","message":""#) {
        (
            CallEnd::Failed,
            word(message, &FailureCode::ALL.map(FailureCode::as_str)),
        )
    } else if let Some(reason) = body.strip_prefix(br#"denied","reason":""#) {
        (
            CallEnd::Denied,
            word(reason, &DenyReason::ALL.map(DenyReason::as_str)),
        )
    } else {
        (CallEnd::Result, "")
    }
}
