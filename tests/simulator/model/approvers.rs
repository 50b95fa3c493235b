//! What approvers and operators are shown and told (invariants 5 and 8).

use engine::{ConnId, RecordId, SessionKey};
use proto::{
    ApprovalReply, ApprovalRequest, ApprovalSettled, CallSettled, Control, ControlReply, Decoded,
    Envelope, Message, Outcome,
};

use crate::model::Model;
use crate::model::labels::Proof;

impl Model {
    pub(crate) fn approver_answers(&mut self, conn: ConnId, decoded: &Decoded) {
        let state = &self.conns[&conn];
        let (role, uid) = (state.role.clone(), state.uid);
        if let Message::ApprovalReply(reply) = &decoded.envelope.msg {
            self.vote(&role, uid, reply);
        }
    }

    /// Invariant 8: only who was asked, and may know, is shown it; and only what was recorded.
    pub(crate) fn approver_is_shown(
        &mut self,
        conn: ConnId,
        request: &ApprovalRequest,
        after: Option<RecordId>,
        pushed: bool,
    ) {
        let state = self
            .conns
            .get_mut(&conn)
            .expect("a send to an open connection");
        let most = self.config.roles[&state.role].max_class;
        assert!(
            request.label.class <= most,
            "invariant 8: {} may know {most}, and is shown {}",
            state.role,
            request.label
        );
        let Some(approval) = self.approvals.get(&request.approval) else {
            panic!(
                "invariant 8: {} is shown, but was never recorded",
                request.approval
            );
        };
        let asked = approval
            .grants
            .iter()
            .any(|grant| grant.approvers.contains(&state.role));
        assert!(
            asked,
            "invariant 8: {} is not asked by any grant",
            state.role
        );
        assert_eq!(
            approval.request, *request,
            "an approver is shown what was recorded"
        );
        // It may be over by now, if it waited behind a full outbox; then its end follows.
        // A record of before the last restart is durable in any case.
        let named = after.is_some_and(|after| approval.record <= after);
        assert!(
            named || self.coverage.crashes > 0 || !pushed,
            "invariant 4: shown before durable"
        );
        self.coverage.approvals_shown += 1;
        let shown = state.shown.entry(request.approval.clone()).or_default();
        shown.pushed += u32::from(pushed);
        assert!(
            shown.pushed <= 1,
            "invariant 8: {} is pushed twice",
            request.approval
        );
    }

    /// A push about an end: to those who were shown it, once.
    pub(crate) fn approver_is_told(&mut self, conn: ConnId, settled: &ApprovalSettled) {
        assert!(
            settled.outcome != Outcome::Counted,
            "a count is an answer, not a push"
        );
        self.outcome_is_true(settled);
        let state = self
            .conns
            .get_mut(&conn)
            .expect("a send to an open connection");
        let Some(shown) = state.shown.get_mut(&settled.approval) else {
            panic!(
                "invariant 8: {conn:?} hears of {}, which it was not shown",
                settled.approval
            );
        };
        shown.settled_pushes += 1;
        shown.settled = true;
        assert!(
            shown.settled_pushes == 1,
            "invariant 8: {} ends twice",
            settled.approval
        );
    }

    /// An approved call's end: of a call that was approved, to a role that was asked.
    pub(crate) fn approver_hears_of_the_call(&mut self, conn: ConnId, ended: &CallSettled) {
        let Some(approval) = self.approvals.get(&ended.approval) else {
            panic!("invariant 8: {} ended, and was never asked", ended.approval);
        };
        let (key, request) = (&approval.key, &approval.request);
        let own = key.session.session == ended.session && key.call == ended.call;
        // A standing one covers more calls, and moves on a join.
        let covers_more = self.standings.contains_key(&ended.approval);
        assert!(
            key.session.role == ended.role && request.tool == ended.tool && (own || covers_more),
            "invariant 8: {} is not about that call",
            ended.approval
        );
        assert!(
            approval.granted(),
            "invariant 2: {} ended a call and was not granted",
            ended.approval
        );
        assert!(
            self.conns.contains_key(&conn),
            "a send to an open connection"
        );
        self.coverage.calls_settled += 1;
    }

    /// The answer to an approver's own word.
    pub(crate) fn approver_hears(
        &mut self,
        conn: ConnId,
        reply: &ApprovalReply,
        envelope: &Envelope,
    ) {
        let Message::ApprovalSettled(settled) = &envelope.msg else {
            panic!("an approval reply is answered with {}", envelope.msg.kind());
        };
        assert_eq!(
            settled.approval, reply.approval,
            "another approval's outcome"
        );
        self.outcome_is_true(settled);
        if settled.outcome == Outcome::Counted {
            return;
        }
        let state = self
            .conns
            .get_mut(&conn)
            .expect("a send to an open connection");
        if let Some(shown) = state.shown.get_mut(&settled.approval) {
            shown.settled = true;
        }
    }

    fn outcome_is_true(&self, settled: &ApprovalSettled) {
        let Some(approval) = self.approvals.get(&settled.approval) else {
            return;
        };
        if settled.outcome == Outcome::Approved {
            assert!(
                approval.granted(),
                "invariant 2: {} was not granted",
                settled.approval
            );
        }
        if let Some((_, outcome)) = approval.settled
            && settled.outcome != Outcome::Counted
        {
            assert_eq!(
                settled.outcome, outcome,
                "{} has two outcomes",
                settled.approval
            );
        }
    }

    /// What an operator is told about labels is not lower than what was given out.
    pub(crate) fn operator_hears(&mut self, control: &Control, envelope: &Envelope, ticket: u64) {
        let Message::ControlReply(reply) = &envelope.msg else {
            panic!("a control is answered with {}", envelope.msg.kind());
        };
        if let ControlReply::Status { records, .. } = reply {
            assert_eq!(
                *records, self.stored,
                "a status tells what is durable, no more and no less"
            );
        }
        if let (
            Control::Session { role, session },
            ControlReply::Session {
                session: status, ..
            },
        ) = (control, reply)
        {
            let key = SessionKey {
                role: role.clone(),
                session: session.clone(),
            };
            let scope = self.scope(role);
            let (low, high) = (self.labels.low(&key, scope), self.labels.high(&key, scope));
            assert!(
                low.is_within(status.label) && status.label.is_within(high),
                "invariant 5: {key:?} is said to have {}, from {low} to {high}",
                status.label
            );
        }
        if let (
            Control::JoinSession {
                role,
                from,
                into,
                close,
            },
            ControlReply::Joined { label },
        ) = (control, reply)
        {
            let key = |session: &proto::SessionId| SessionKey {
                role: role.clone(),
                session: session.clone(),
            };
            let (from, into) = (key(from), key(into));
            self.labels
                .joined(&from, &into, *close, Proof::Sent(ticket));
            let low = self.labels.low_own(&into);
            assert!(
                low.is_within(*label),
                "invariant 5: joined {label}, at least {low}"
            );
        }
        if let ControlReply::Reloaded { .. } = reply {
            self.coverage.reloads += 1;
        }
    }
}
