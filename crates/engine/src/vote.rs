//! Approvals answered: votes counted, questions settled, and everyone told that was asked.

use policy::Ask;
use proto::frame::escaped_len;
use proto::{
    Answer, ApprovalId, ApprovalReply, ApprovalSettled, DenyReason, Message, Outcome, RoleName,
};

use crate::effect::Level;
use crate::engine::Engine;
use crate::event::ConnId;
use crate::limits::{MAX_COMMENT, MAX_SETTLED, SETTLED_LISTED};
use crate::record::{CallKey, Record};
use crate::state::{Approval, SettledApproval, State, Vote};
use crate::timers::Timer;

impl Engine {
    pub(crate) fn vote(&mut self, conn: ConnId, id: u64, reply: ApprovalReply) {
        let Some(by) = self.conns.get(&conn).map(|c| c.by()) else {
            return;
        };
        let Some(approval) = self.approvals.get(&reply.approval) else {
            return self.late_vote(conn, id, &reply, &by.role);
        };
        if !approval.asked.contains(&by.role) {
            return self.bad_message(conn, id, "msg.body.approval: there is no such approval");
        }
        if approval.request.digest != reply.digest {
            return self.bad_message(conn, id, "msg.body.digest: is not that of this approval");
        }
        if !approval.request.scopes.contains(&reply.scope) {
            return self.bad_message(conn, id, "msg.body.scope: was not offered");
        }
        if escaped_len(&reply.comment) > MAX_COMMENT {
            return self.bad_message(conn, id, "msg.body.comment: is longer than 1024 bytes");
        }
        if approval.request.expires <= self.now {
            self.approval_expired(&reply.approval);
            return self.late_vote(conn, id, &reply, &by.role);
        }
        let key = approval.call.clone();
        // Uses and times move without an event: is it still the question that the call has?
        self.advance(&key);
        if !self.approvals.contains_key(&reply.approval) {
            return self.late_vote(conn, id, &reply, &by.role);
        }
        let record = self.record(Record::Voted {
            at: self.now,
            approval: reply.approval.clone(),
            by: by.clone(),
            answer: reply.answer,
            scope: reply.scope,
            comment: reply.comment.clone(),
        });
        match reply.answer {
            Answer::Refuse => {
                self.settle_voted(conn, id, &reply, Outcome::Refused, &by.role);
                self.deny_asked(&key, DenyReason::ApprovalRefused, false);
            }
            Answer::Approve => {
                let vote = Vote {
                    by: by.clone(),
                    scope: reply.scope,
                    comment: reply.comment.clone(),
                };
                if self.count_vote(&reply.approval, vote) {
                    self.settle_voted(conn, id, &reply, Outcome::Approved, &by.role);
                    self.advance(&key);
                } else {
                    let outcome = Outcome::Counted;
                    let settled =
                        settled(&reply.approval, outcome, by.role.as_str(), &reply.comment);
                    self.reply_after(conn, record, id, &Message::ApprovalSettled(settled));
                }
            }
        }
    }

    /// Counts a yes; whether every asking grant has as many as it wants.
    pub(crate) fn count_vote(&mut self, id: &ApprovalId, vote: Vote) -> bool {
        let ask = self
            .approvals
            .get(id)
            .and_then(|a| self.present_ask(&a.call));
        let Some(approval) = self.approvals.get_mut(id) else {
            return false;
        };
        approval.votes.retain(|v| v.by != vote.by);
        approval.votes.push(vote);
        ask.is_some_and(|ask| {
            ask.grants.iter().all(|grant| {
                let mut uids: Vec<u32> = approval
                    .votes
                    .iter()
                    .filter(|v| {
                        grant.approvers.contains(&v.by.role) && approval.asked.contains(&v.by.role)
                    })
                    .map(|v| v.by.uid)
                    .collect();
                uids.sort_unstable();
                uids.dedup();
                uids.len() as u64 >= u64::from(grant.quorum)
            })
        })
    }

    /// What the ruleset asks about a call now.
    fn present_ask(&self, key: &CallKey) -> Option<Ask> {
        let call = self.call(key)?;
        match self.decide(&key.session, &call.tool, &call.arguments)?.1 {
            policy::Decision::Ask(ask) => Some(ask),
            policy::Decision::Permit(_) | policy::Decision::Deny(_) => None,
        }
    }

    /// Settles a question by an answer; the answer's sender is told under its request's id.
    fn settle_voted(
        &mut self,
        conn: ConnId,
        id: u64,
        reply: &ApprovalReply,
        outcome: Outcome,
        by: &RoleName,
    ) {
        let told = Some((conn, id));
        self.settle(&reply.approval, outcome, by.as_str(), &reply.comment, told);
    }

    /// Settles the question that a call waits for, if it waits for one.
    pub(crate) fn settle_question(
        &mut self,
        key: &CallKey,
        outcome: Outcome,
        by: &str,
        comment: &str,
    ) {
        if let Some(id) = self.asked_about(key) {
            self.settle(&id, outcome, by, comment, None);
        }
    }

    fn settle(
        &mut self,
        id: &ApprovalId,
        outcome: Outcome,
        by: &str,
        comment: &str,
        told: Option<(ConnId, u64)>,
    ) {
        let Some(ask) = self.approvals.get(id).map(|a| self.present_ask(&a.call)) else {
            return;
        };
        let after = self.record(Record::Settled {
            at: self.now,
            approval: id.clone(),
            outcome,
            by: by.to_owned(),
            comment: comment.to_owned(),
        });
        let Some(approval) = self.unpend(id) else {
            return;
        };
        let key = approval.call.clone();
        self.log_call(
            Level::Info,
            "approval_settled",
            &key,
            &approval.request.tool,
            |log| {
                log.approval = Some(id.clone());
                log.reason = Some(outcome_word(outcome));
            },
        );
        let settled = settled(id, outcome, by, comment);
        let msg = proto::encode_message(&Message::ApprovalSettled(settled.clone()));
        for conn in self.approver_conns(&approval.asked) {
            match told {
                Some((sender, request)) if sender == conn => {
                    self.send(conn, after, request, true, msg.clone());
                }
                Some(_) | None => self.send(conn, after, 0, true, msg.clone()),
            }
        }
        let entry = SettledApproval {
            at: self.now,
            asked: approval.asked.clone(),
            settled,
            after,
        };
        self.keep_settled(entry);
        match outcome {
            Outcome::Approved => self.granted(&approval, ask),
            Outcome::Refused => self.remember_refusal(&key.session, &approval.question),
            Outcome::Counted | Outcome::Expired | Outcome::Cancelled | Outcome::Superseded => {}
        }
    }

    /// Takes a pending approval out.
    pub(crate) fn unpend(&mut self, id: &ApprovalId) -> Option<Approval> {
        let approval = self.approvals.remove(id)?;
        self.timers.cancel(&Timer::Approval(id.clone()));
        self.account(&approval.call.session.role).usage.approvals -= 1;
        if let Some(call) = self.call_mut(&approval.call) {
            call.state = State::New;
        }
        Some(approval)
    }

    pub(crate) fn keep_settled(&mut self, entry: SettledApproval) {
        self.settled.push_back(entry);
        let now = self.now;
        while self.settled.len() > MAX_SETTLED
            || self
                .settled
                .front()
                .is_some_and(|s| now.since(s.at) > SETTLED_LISTED)
        {
            self.settled.pop_front();
        }
    }

    pub(crate) fn approval_expired(&mut self, id: &ApprovalId) {
        let Some(key) = self.approvals.get(id).map(|approval| approval.call.clone()) else {
            return;
        };
        self.settle(id, Outcome::Expired, "", "", None);
        self.deny_asked(&key, DenyReason::ApprovalExpired, false);
    }

    /// An answer to what is settled already gets what became of it.
    fn late_vote(&mut self, conn: ConnId, id: u64, reply: &ApprovalReply, role: &RoleName) {
        let held = self
            .settled
            .iter()
            .rev()
            .find(|s| s.settled.approval == reply.approval && s.asked.contains(role))
            .map(|s| (s.settled.clone(), s.after));
        match held {
            Some((settled, after)) => {
                self.reply_after(conn, after, id, &Message::ApprovalSettled(settled));
            }
            None => self.bad_message(conn, id, "msg.body.approval: there is no such approval"),
        }
    }
}

fn settled(id: &ApprovalId, outcome: Outcome, by: &str, comment: &str) -> ApprovalSettled {
    ApprovalSettled {
        approval: id.clone(),
        outcome,
        by: by.to_owned(),
        comment: comment.to_owned(),
    }
}

fn outcome_word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Counted => "counted",
        Outcome::Approved => "approved",
        Outcome::Refused => "refused",
        Outcome::Expired => "expired",
        Outcome::Cancelled => "cancelled",
        Outcome::Superseded => "superseded",
    }
}
