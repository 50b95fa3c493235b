//! Approvals asked: who is asked what about a call, and who is told that it waits (DESIGN 6).

use policy::{Ask, EffectiveTool, Verdict};
use proto::{
    ApprovalId, ApprovalRequest, Approvals, AskingGrant, DenyReason, FailureCode, Message, Outcome,
    RoleKind, RoleName, Scope, ToolResponse,
};

use crate::cover::standing_bounds;
use crate::digest;
use crate::effect::Level;
use crate::engine::Engine;
use crate::event::ConnId;
use crate::limits::{MAX_ASKED_ARGUMENTS, SETTLED_LISTED};
use crate::record::{CallKey, Record, RecordId};
use crate::state::{Approval, Question, State};
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
            basis: Some(self.basis(&key.session, &tool.name, None, true)),
        });
        let after = after.max(self.label_record(&key.session));
        self.log_call(Level::Info, "approval_asked", key, &tool.name, |log| {
            log.decision = Some("ask");
            log.grant = ask.grants.first().map(|grant| grant.id.clone());
            log.approval = Some(request.approval.clone());
        });
        let id = request.approval.clone();
        let approval = Some(id.clone());
        self.remember_call(key, Verdict::Ask { approval });
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
        self.deny_asked(key, DenyReason::ApprovalExpired, true);
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
    pub(crate) fn approver_conns(&self, roles: &[RoleName]) -> Vec<ConnId> {
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
            let one = Approvals {
                pending: vec![request],
                ..NONE
            };
            self.send_piece(conn, after, id, one);
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
            let one = Approvals {
                settled: vec![settled],
                ..NONE
            };
            self.send_piece(conn, after, id, one);
        }
        if also_settled {
            for (call, after) in self.upshots_for(&role) {
                let one = Approvals {
                    calls: vec![call],
                    ..NONE
                };
                self.send_piece(conn, after, id, one);
            }
        }
        self.reply(conn, id, &Message::Approvals(NONE));
    }

    fn send_piece(&mut self, conn: ConnId, after: Option<RecordId>, id: u64, piece: Approvals) {
        let msg = proto::encode_message(&Message::Approvals(piece));
        self.send(conn, after, id, false, msg);
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

const NONE: Approvals = Approvals {
    pending: Vec::new(),
    settled: Vec::new(),
    calls: Vec::new(),
};

fn asking(grant: &policy::AskingGrant) -> AskingGrant {
    AskingGrant {
        grant: grant.id.clone(),
        why: grant.why.clone(),
        pointers: grant.pointers.clone(),
    }
}
