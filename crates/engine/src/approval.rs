//! Approvals: asked, answered, settled; and what they cover afterwards (DESIGN 6).

use policy::{Ask, EffectiveTool};
use proto::{
    Answer, ApprovalId, ApprovalReply, ApprovalRequest, ApprovalSettled, AskingGrant, DenyReason,
    FailureCode, Message, Outcome, RoleKind, RoleName, Scope, ToolResponse,
};

use proto::frame::escaped_len;

use crate::digest;
use crate::effect::Level;
use crate::engine::Engine;
use crate::event::ConnId;
use crate::limits::{MAX_ASKED_ARGUMENTS, MAX_COMMENT, MAX_REFUSALS, MAX_SETTLED, SETTLED_LISTED};
use crate::record::{CallKey, Record, RecordId, SessionKey};
use crate::state::{Approval, Cover, Question, SettledApproval, Standing, State, Vote};
use crate::timers::Timer;

impl Engine {
    /// Asks about a call; or leaves the question that is asked already, if it is the same.
    pub(crate) fn ask(
        &mut self,
        key: &CallKey,
        tool: &EffectiveTool,
        ask: Ask,
        question: Question,
    ) {
        let asked = match self.asked_roles(&ask, &question) {
            Some(asked) => asked,
            None => {
                self.settle_question(key, Outcome::Superseded, "", "");
                return self.unanswerable(key);
            }
        };
        if let Some(held) = self.asked_about(key)
            && self
                .approvals
                .get(&held)
                .is_some_and(|a| a.question == question && a.asked == asked)
        {
            return;
        }
        self.settle_question(key, Outcome::Superseded, "", "");
        self.take_back(key);
        let usage = self.usage(&key.session.role);
        if usage.approvals >= self.quota(&key.session.role).approvals {
            return self.fail(key, FailureCode::Busy, "approvals", false);
        }
        let Some(request) = self.approval_request(key, tool, &ask, &question) else {
            return;
        };
        let msg = Message::ApprovalRequest(request.clone());
        let msg = proto::encode_message(&msg);
        let frame = crate::conn::frame_len(&msg);
        if request.arguments.len() > MAX_ASKED_ARGUMENTS || frame > self.config.settings.max_frame {
            return self.fail(
                key,
                FailureCode::TooLarge,
                "the arguments are too long to be asked about",
                false,
            );
        }
        let after = self.record(Record::Asked {
            request: request.clone(),
            fingerprint: question.fingerprint.clone(),
            runner: question.runner.clone(),
            definition: question.definition.clone(),
            effects: tool.effects,
            grants: question
                .grants
                .iter()
                .map(|(_, hash)| hash.clone())
                .collect(),
            asked: asked.clone(),
        });
        let after = after.max(self.label_record(&key.session));
        self.log_call(Level::Info, "approval_asked", key, &tool.name, |log| {
            log.decision = Some("ask");
            log.grant = ask.grants.first().map(|grant| grant.id.clone());
            log.approval = Some(request.approval.clone());
        });
        let id = request.approval.clone();
        let approval = Approval {
            request,
            msg,
            call: key.clone(),
            question,
            asked,
            votes: Vec::new(),
            refused: None,
            after,
        };
        self.pend(approval);
        self.announce(&id, None);
        self.tell_pending(key, None);
    }

    /// Takes a pending approval in.
    pub(crate) fn pend(&mut self, approval: Approval) {
        let id = approval.request.approval.clone();
        if let Some(call) = self.call_mut(&approval.call) {
            call.state = State::Asked(id.clone());
        }
        self.account(&approval.call.session.role).usage.approvals += 1;
        self.timers
            .set(Timer::Approval(id.clone()), approval.request.expires);
        self.approvals.insert(id, approval);
    }

    fn approval_request(
        &mut self,
        key: &CallKey,
        tool: &EffectiveTool,
        ask: &Ask,
        question: &Question,
    ) -> Option<ApprovalRequest> {
        let approval = self.fresh_approval()?;
        let call = self.call(key)?;
        let raised_by = match self.scope(&key.session.role) {
            proto::LabelScope::Session => self.sessions.get(&key.session)?.raises.clone(),
            proto::LabelScope::Role | proto::LabelScope::None => self
                .accounts
                .get(&key.session.role)
                .map(|a| a.raises.clone())
                .unwrap_or_default(),
        };
        let ttl = ask
            .grants
            .iter()
            .map(|grant| grant.approval_ttl)
            .min()
            .unwrap_or(0);
        let standing = standing_bounds(ask).is_some();
        Some(ApprovalRequest {
            approval,
            role: key.session.role.clone(),
            session: key.session.session.clone(),
            call: key.call,
            tool: tool.name.clone(),
            arguments: call.arguments.clone(),
            label: question.label,
            raised_by,
            grants: ask.grants.iter().map(asking).collect(),
            scopes: if standing {
                vec![Scope::Once, Scope::Session]
            } else {
                vec![Scope::Once]
            },
            quorum: ask
                .grants
                .iter()
                .map(|grant| grant.quorum)
                .max()
                .unwrap_or(1),
            digest: digest::approved(
                &question.runner,
                &question.definition,
                tool.name.as_str(),
                &call.arguments,
                question.label,
            ),
            created: self.now,
            expires: self.now.plus(ttl),
        })
    }

    /// The approver roles that are asked: named by the grants, and cleared for the label. `None`
    /// where a grant is left without any.
    pub(crate) fn asked_roles(&self, ask: &Ask, question: &Question) -> Option<Vec<RoleName>> {
        let cleared = |role: &&RoleName| {
            self.config.roles.get(*role).is_some_and(|role| {
                role.kind == RoleKind::Approver && question.label.class <= role.max_class
            })
        };
        let mut asked: Vec<RoleName> = Vec::new();
        for grant in &ask.grants {
            let mut named = grant.approvers.iter().filter(cleared).cloned().peekable();
            named.peek()?;
            asked.extend(named);
        }
        asked.sort();
        asked.dedup();
        Some(asked)
    }

    /// Nobody is left to ask.
    fn unanswerable(&mut self, key: &CallKey) {
        self.take_back(key);
        self.deny(key, DenyReason::ApprovalExpired, None);
    }

    pub(crate) fn asked_about(&self, key: &CallKey) -> Option<ApprovalId> {
        match &self.call(key)?.state {
            State::Asked(approval) => Some(approval.clone()),
            State::New
            | State::Claimed { .. }
            | State::Dispatched(_)
            | State::Answered(_)
            | State::Interrupted => None,
        }
    }

    /// Pushes a pending approval to the approvers that are asked; or to one that just came.
    pub(crate) fn announce(&mut self, id: &ApprovalId, to: Option<ConnId>) {
        let Some(approval) = self.approvals.get(id) else {
            return;
        };
        let (msg, after) = (approval.msg.clone(), approval.after);
        for conn in self.approver_conns(&approval.asked) {
            if to.is_none_or(|to| to == conn) {
                self.send(conn, after, 0, true, msg.clone());
            }
        }
    }

    /// Connections of these approver roles that said hello.
    fn approver_conns(&self, roles: &[RoleName]) -> Vec<ConnId> {
        self.conns
            .iter()
            .filter(|(_, conn)| {
                conn.kind == RoleKind::Approver
                    && conn.features.is_some()
                    && roles.contains(&conn.peer.role)
            })
            .map(|(id, _)| *id)
            .collect()
    }

    /// Tells those who wait for a call that a person is asked; or one of them.
    pub(crate) fn tell_pending(&mut self, key: &CallKey, only: Option<u64>) {
        let Some(id) = self.asked_about(key) else {
            return;
        };
        let Some(approval) = self.approvals.get(&id) else {
            return;
        };
        let msg = proto::encode_message(&Message::ToolResponse(ToolResponse::PendingApproval {
            approval: id.to_string(),
            expires: approval.request.expires,
        }));
        let after = approval.after;
        let Some(call) = self.call(key) else { return };
        let newest = call.waiters.len().saturating_sub(1);
        let told: Vec<(ConnId, u64)> = call
            .waiters
            .iter()
            .enumerate()
            .filter(|(at, waiter)| only.is_none_or(|id| *at == newest && waiter.id == id))
            .map(|(_, waiter)| (waiter.conn, waiter.id))
            .collect();
        for (conn, request) in told {
            self.send(conn, after, request, false, msg.clone());
        }
    }

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
                self.deny_refused(&key);
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

    /// What an approval covers from now on: its call, and more where a standing one was given.
    fn granted(&mut self, approval: &Approval, ask: Option<Ask>) {
        self.add_cover(
            &approval.call,
            Cover {
                approval: approval.request.approval.clone(),
                question: approval.question.clone(),
                expires: approval.request.expires,
                spent: false,
            },
        );
        let session_wide = !approval.votes.is_empty()
            && approval
                .votes
                .iter()
                .all(|vote| vote.scope == Scope::Session);
        let Some((ask, by)) = ask.zip(approval.votes.last().map(|vote| vote.by.clone())) else {
            return;
        };
        let Some((ttl, uses)) = standing_bounds(&ask).filter(|_| session_wide) else {
            return;
        };
        let Some(pins) = ask.pins(&approval.request.arguments) else {
            return;
        };
        // The call that was asked about is the first of its uses.
        let uses_left = uses.saturating_sub(1);
        let role = &approval.call.session.role;
        if uses_left == 0 || self.usage(role).approvals >= self.quota(role).approvals {
            return;
        }
        let standing = Standing {
            tool: approval.request.tool.clone(),
            runner: approval.question.runner.clone(),
            definition: approval.question.definition.clone(),
            grants: approval.question.grants.clone(),
            pins,
            label: approval.question.label,
            uses_left,
            expires: self.now.plus(ttl),
            by,
        };
        self.add_standing(
            &approval.call.session,
            &approval.request.approval,
            standing,
            "",
        );
    }

    /// Records a standing approval and lets it count.
    pub(crate) fn add_standing(
        &mut self,
        session: &SessionKey,
        id: &ApprovalId,
        standing: Standing,
        reason: &str,
    ) -> Option<RecordId> {
        let record = self.record(Record::Standing {
            at: self.now,
            approval: id.clone(),
            session: session.clone(),
            tool: standing.tool.clone(),
            runner: standing.runner.clone(),
            definition: standing.definition.clone(),
            grants: standing.grants.clone(),
            pins: standing.pins.0.clone().into_iter().collect(),
            label: standing.label,
            uses: standing.uses_left,
            expires: standing.expires,
            by: standing.by.clone(),
            reason: reason.to_owned(),
        });
        self.take_standing(session, id, standing);
        record
    }

    pub(crate) fn take_standing(&mut self, key: &SessionKey, id: &ApprovalId, standing: Standing) {
        let expires = standing.expires;
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        if session.standing.insert(id.clone(), standing).is_none() {
            self.account(&key.role).usage.approvals += 1;
        }
        self.recheck.insert(key.role.clone());
        self.timers
            .set(Timer::Standing(key.clone(), id.clone()), expires);
    }

    pub(crate) fn drop_standing(&mut self, key: &SessionKey, id: &ApprovalId) {
        self.timers
            .cancel(&Timer::Standing(key.clone(), id.clone()));
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        if session.standing.remove(id).is_some() {
            self.account(&key.role).usage.approvals -= 1;
        }
    }

    /// Takes a granted approval of one call in. It counts as the role's until it is spent.
    pub(crate) fn add_cover(&mut self, key: &CallKey, cover: Cover) {
        self.drop_cover(key);
        if !cover.spent {
            self.account(&key.session.role).usage.approvals += 1;
        }
        let timer = Timer::Cover(key.clone());
        self.timers.set(timer, cover.expires);
        if let Some(session) = self.sessions.get_mut(&key.session) {
            session.covers.insert(key.call, cover);
        }
    }

    /// Spends a call's own approval, and gives its name; `None` where it is spent already.
    pub(crate) fn spend_cover(&mut self, key: &CallKey) -> Option<ApprovalId> {
        let session = self.sessions.get_mut(&key.session)?;
        let cover = session.covers.get_mut(&key.call)?;
        if std::mem::replace(&mut cover.spent, true) {
            return None;
        }
        let approval = cover.approval.clone();
        self.account(&key.session.role).usage.approvals -= 1;
        Some(approval)
    }

    pub(crate) fn drop_cover(&mut self, key: &CallKey) {
        self.timers.cancel(&Timer::Cover(key.clone()));
        let Some(session) = self.sessions.get_mut(&key.session) else {
            return;
        };
        if session
            .covers
            .remove(&key.call)
            .is_some_and(|cover| !cover.spent)
        {
            self.account(&key.session.role).usage.approvals -= 1;
        }
    }

    /// A granted approval lapses. One that is spent covers its call's rerun as long as it runs.
    pub(crate) fn cover_due(&mut self, key: &CallKey) {
        let runs = matches!(
            self.call(key).map(|call| &call.state),
            Some(State::Dispatched(_) | State::Claimed { .. })
        );
        let spent = self
            .sessions
            .get(&key.session)
            .and_then(|session| session.covers.get(&key.call))
            .is_some_and(|cover| cover.spent);
        if !(runs && spent) {
            self.drop_cover(key);
        }
    }

    pub(crate) fn remember_refusal(&mut self, key: &SessionKey, question: &Question) {
        let (now, until) = (self.now, self.now.plus(self.config.settings.refusal_ttl));
        self.recheck.insert(key.role.clone());
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        session.refusals.retain(|_, until| *until > now);
        session.refusals.insert(question.fingerprint.clone(), until);
        if session.refusals.len() > MAX_REFUSALS
            && let Some(oldest) = session
                .refusals
                .iter()
                .min_by_key(|(_, until)| **until)
                .map(|(f, _)| f.clone())
        {
            session.refusals.remove(&oldest);
        }
    }

    pub(crate) fn deny_refused(&mut self, key: &CallKey) {
        let denied = ToolResponse::Denied {
            reason: DenyReason::ApprovalRefused,
        };
        self.finish(key, &denied, proto::Label::BOTTOM, true);
    }

    pub(crate) fn approval_expired(&mut self, id: &ApprovalId) {
        let Some(key) = self.approvals.get(id).map(|approval| approval.call.clone()) else {
            return;
        };
        self.settle(id, Outcome::Expired, "", "", None);
        let denied = ToolResponse::Denied {
            reason: DenyReason::ApprovalExpired,
        };
        self.finish(&key, &denied, proto::Label::BOTTOM, true);
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

    pub(crate) fn list_approvals(&mut self, conn: ConnId, id: u64, also_settled: bool) {
        let Some(role) = self.conns.get(&conn).map(|c| c.peer.role.clone()) else {
            return;
        };
        let mut pending: Vec<_> = self
            .approvals
            .values()
            .filter(|approval| approval.asked.contains(&role))
            .map(|approval| (approval.request.clone(), approval.after))
            .collect();
        pending.sort_by_key(|(request, _)| request.created);
        for (request, after) in pending {
            let one = proto::Approvals {
                pending: vec![request],
                settled: Vec::new(),
            };
            let msg = proto::encode_message(&Message::Approvals(one));
            self.send(conn, after, id, false, msg);
        }
        let now = self.now;
        let listed: Vec<_> = self
            .settled
            .iter()
            .filter(|s| {
                also_settled && s.asked.contains(&role) && now.since(s.at) <= SETTLED_LISTED
            })
            .map(|s| (s.settled.clone(), s.after))
            .collect();
        for (settled, after) in listed {
            let one = proto::Approvals {
                pending: Vec::new(),
                settled: vec![settled],
            };
            let msg = proto::encode_message(&Message::Approvals(one));
            self.send(conn, after, id, false, msg);
        }
        let none = proto::Approvals {
            pending: Vec::new(),
            settled: Vec::new(),
        };
        self.reply(conn, id, &Message::Approvals(none));
    }

    /// A label rose or rules changed: every question of the role's is asked as it is now.
    pub(crate) fn judge_asked_again(&mut self, role: &RoleName) {
        let asked: Vec<CallKey> = self
            .approvals
            .values()
            .filter(|approval| approval.call.session.role == *role)
            .map(|approval| approval.call.clone())
            .collect();
        for key in asked {
            self.advance(&key);
        }
    }
}

fn asking(grant: &policy::AskingGrant) -> AskingGrant {
    AskingGrant {
        grant: grant.id.clone(),
        why: grant.why.clone(),
        pointers: grant.pointers.clone(),
    }
}

/// For how long and how many calls a standing approval of these grants may be: the least that
/// each states. `None` where one states none.
pub(crate) fn standing_bounds(ask: &Ask) -> Option<(u64, u64)> {
    let mut bounds = (u64::MAX, u64::MAX);
    for grant in &ask.grants {
        bounds.0 = bounds.0.min(grant.standing_ttl?);
        bounds.1 = bounds.1.min(grant.standing_uses?);
    }
    Some(bounds)
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
