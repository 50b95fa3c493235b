//! Records read back, in order, to the state that they left.

use std::sync::Arc;

use bytes::Bytes;
use policy::{Config, Pins};
use proto::{
    ApprovalRequest, Digest, Effects, GrantId, Label, Message, Outcome, RoleName, Timestamp,
    ToolName, ToolRequest,
};

use crate::engine::Engine;
use crate::part::Part;
use crate::record::{CallKey, Record, RecordId, SessionKey};
use crate::state::{Approval, Call, Cover, Question, SettledApproval, Standing, State, Vote};
use crate::timers::Timer;

impl Engine {
    /// The state as these leave it, with nothing settled that was interrupted.
    pub(crate) fn replayed(
        config: Arc<Config>,
        parts: impl IntoIterator<Item = Part>,
        records: impl IntoIterator<Item = Record>,
    ) -> Self {
        // What a record starts lasts from its own time on.
        let mut engine = Self::new(config, Timestamp::default());
        engine.replaying = true;
        for part in parts {
            engine.take_part(part);
        }
        for record in records {
            engine.last_record += 1;
            engine.replay(record);
        }
        engine.replaying = false;
        engine
    }

    pub(crate) fn replay(&mut self, record: Record) {
        let id = Some(RecordId(self.last_record));
        match record {
            Record::Opened { at, session, owner } => {
                self.at(at);
                self.apply_opened(&session, owner);
            }
            Record::Raised {
                at,
                session,
                seen,
                call,
                tool,
                ..
            } => {
                self.at(at);
                self.raise_own(&session, seen, call.zip(tool.as_ref()));
            }
            Record::Denied { at, .. }
            | Record::Late { at, .. }
            | Record::Configured { at, .. }
            | Record::Snapshot { at, .. }
            | Record::Refused { at, .. }
            | Record::Draining { at, .. } => self.at(at),
            Record::Asked {
                request,
                fingerprint,
                runner,
                definition,
                effects,
                grants,
                asked,
                ..
            } => {
                self.at(request.created);
                let names = request.grants.iter().map(|grant| grant.grant.clone());
                let question = Question {
                    fingerprint,
                    runner,
                    definition,
                    grants: names.zip(grants).collect(),
                    label: request.label,
                };
                let interrupted = self
                    .call(&asked_call(&request))
                    .is_some_and(|held| matches!(held.state, State::Interrupted));
                let id = RecordId(self.last_record);
                self.replay_asked(request, question, effects, interrupted, asked, id);
            }
            Record::Voted {
                at,
                approval,
                by,
                answer,
                scope,
                comment,
            } => {
                self.at(at);
                if let Some(approval) = self.approvals.get_mut(&approval) {
                    let vote = Vote { by, scope, comment };
                    match answer {
                        proto::Answer::Approve => {
                            approval.votes.retain(|held| held.by != vote.by);
                            approval.votes.push(vote);
                        }
                        proto::Answer::Refuse => approval.refused = Some(vote),
                    }
                }
            }
            Record::Settled {
                at,
                approval,
                outcome,
                by,
                comment,
            } => {
                self.at(at);
                let settled = proto::ApprovalSettled {
                    approval,
                    outcome,
                    by,
                    comment,
                };
                self.replay_settled(settled);
            }
            standing @ Record::Standing { .. } => self.replay_standing(standing),
            Record::Dispatched {
                at,
                call,
                fingerprint,
                tool,
                effects,
                spend,
                approval,
                ..
            } => {
                self.at(at);
                self.replay_dispatched(&call, fingerprint, tool, effects, &spend, approval);
            }
            Record::Answered {
                at,
                call,
                fingerprint,
                tool,
                msg,
                label,
            } => {
                self.at(at);
                self.replay_answered(&call, fingerprint, tool, msg, label, id);
            }
            Record::Evicted { at, call } => {
                self.at(at);
                self.evict(&call);
                if let Some(session) = self.sessions.get_mut(&call.session) {
                    session.watermark = session.watermark.max(Some(call.call));
                }
            }
            Record::Joined {
                at,
                role,
                from,
                into,
                close,
                ..
            } => {
                self.at(at);
                let key = |session| SessionKey {
                    role: role.clone(),
                    session,
                };
                let (from, into) = (key(from), key(into));
                self.apply_join(&from, &into, close);
                self.shrink(&from);
            }
            Record::Closed { at, session, .. } => {
                self.at(at);
                self.mark_closed(&session);
                self.shrink(&session);
            }
            Record::Lowered {
                at,
                role,
                session,
                label,
                ..
            } => {
                self.at(at);
                self.apply_lowered(&role, &session, label, None);
            }
            Record::Restored { at, roles, .. } => {
                self.at(at);
                self.apply_restored(&roles);
            }
            Record::Granted {
                at, grant, toml, ..
            } => {
                self.at(at);
                self.runtime_grants.push((grant, toml));
            }
            Record::Revoked { at, grant, .. } => {
                self.at(at);
                self.runtime_grants.retain(|(held, _)| *held != grant);
                self.uses.remove(&grant);
            }
            Record::Pinned {
                at, runner, spec, ..
            } => {
                self.at(at);
                self.pins.insert((runner, spec.name.clone()), spec);
            }
        }
    }

    /// Time never falls, over restarts either.
    pub(crate) fn at(&mut self, at: Timestamp) {
        self.now = self.now.max(at);
    }

    pub(crate) fn replay_call(&mut self, key: &CallKey, call: Call) {
        if let Some(session) = self.sessions.get_mut(&key.session) {
            session.highest = session.highest.max(Some(key.call));
            session.calls.insert(key.call, call);
        }
    }

    pub(crate) fn replay_asked(
        &mut self,
        request: ApprovalRequest,
        question: Question,
        effects: Effects,
        interrupted: bool,
        asked: Vec<RoleName>,
        record: RecordId,
    ) {
        let key = asked_call(&request);
        let msg = proto::encode_message(&Message::ToolRequest(ToolRequest {
            session: request.session.clone(),
            call: request.call,
            tool: request.tool.to_string(),
            arguments: request.arguments.clone(),
        }));
        let charge = (msg.len() + request.arguments.len()) as u64;
        let mut call = replayed(
            request.tool.clone(),
            question.fingerprint.clone(),
            effects,
            request.created,
        );
        call.arguments = request.arguments.clone();
        call.request = msg;
        call.charge = charge;
        call.interrupted = interrupted;
        self.timers.cancel(&Timer::Answer(key.clone()));
        self.replay_call(&key, call);
        if let Some(session) = self.sessions.get_mut(&key.session) {
            session.in_flight += 1;
        }
        let usage = &mut self.account(&key.session.role).usage;
        usage.in_flight += 1;
        usage.waiting_bytes += charge;
        let msg = proto::encode_message(&Message::ApprovalRequest(request.clone()));
        self.pend(Approval {
            request,
            msg,
            call: key,
            question,
            asked,
            votes: Vec::new(),
            refused: None,
            after: Some(record),
        });
    }

    fn replay_settled(&mut self, settled: proto::ApprovalSettled) {
        let outcome = settled.outcome;
        let Some(approval) = self.unpend(&settled.approval) else {
            return;
        };
        let key = approval.call.clone();
        self.forget_in_flight(&key);
        let at = self.now;
        self.keep_settled(SettledApproval {
            at,
            asked: approval.asked.clone(),
            settled,
            after: None,
        });
        match outcome {
            Outcome::Approved => self.add_cover(
                &key,
                Cover {
                    approval: approval.request.approval,
                    question: approval.question,
                    asked: approval.asked,
                    expires: approval.request.expires,
                    spent: false,
                },
            ),
            Outcome::Refused => self.remember_refusal(&key.session, &approval.question),
            Outcome::Counted | Outcome::Expired | Outcome::Cancelled | Outcome::Superseded => {}
        }
    }

    /// Takes a call that is asked, or claimed before a restart, out: claims are not recorded.
    fn forget_in_flight(&mut self, key: &CallKey) {
        let Some(session) = self.sessions.get_mut(&key.session) else {
            return;
        };
        let Some(mut call) = session.calls.remove(&key.call) else {
            return;
        };
        let charge = std::mem::take(&mut call.charge);
        if call.interrupted {
            call.arguments = String::new();
            call.request = Bytes::new();
            call.state = State::Interrupted;
            // It is again as its dispatch left it, and kept from now on.
            call.interrupted = false;
            call.since = self.now;
            session.calls.insert(key.call, call);
            let at = self.now.plus(self.config.settings.answer_ttl);
            self.timers.set(Timer::Answer(key.clone()), at);
        }
        if charge > 0 {
            session.in_flight -= 1;
            let usage = &mut self.account(&key.session.role).usage;
            usage.in_flight -= 1;
            usage.waiting_bytes -= charge;
        }
    }

    fn replay_standing(&mut self, record: Record) {
        let Record::Standing {
            at,
            approval,
            session,
            tool,
            runner,
            definition,
            grants,
            pins,
            label,
            uses,
            expires,
            by,
            ..
        } = record
        else {
            return;
        };
        self.at(at);
        let pins = Pins(pins.into_iter().collect());
        let uses_left = uses;
        let given = |s: &&SettledApproval| s.settled.approval == approval;
        let asked = self.settled.iter().rev().find(given);
        let asked = asked.map_or_else(Vec::new, |settled| settled.asked.clone());
        let standing = Standing {
            tool,
            runner,
            definition,
            grants,
            pins,
            label,
            uses_left,
            expires,
            by,
            asked,
        };
        self.take_standing(&session, &approval, standing);
    }

    fn replay_dispatched(
        &mut self,
        key: &CallKey,
        fingerprint: Digest,
        tool: ToolName,
        effects: Effects,
        spend: &[GrantId],
        approval: Option<proto::ApprovalId>,
    ) {
        for grant in spend {
            *self.uses.entry(grant.clone()).or_default() += 1;
        }
        self.forget_in_flight(key);
        // What only reads may run again, as if it had not been asked.
        if effects != Effects::Read {
            let mut call = replayed(tool, fingerprint.clone(), effects, self.now);
            call.state = State::Interrupted;
            self.replay_call(key, call);
            self.evict_later(key, self.now);
        }
        let Some(approval) = approval else { return };
        let Some(session) = self.sessions.get(&key.session) else {
            return;
        };
        // One that had lapsed was not there any more: then a standing one of the same name was spent.
        let holds = |cover: &Cover| !cover.spent && cover.expires > self.now;
        let own = session.covers.get(&key.call);
        if own.is_some_and(|cover| cover.approval == approval && holds(cover)) {
            self.spend_cover(key);
        } else if let Some(held) = session.standing.get(&approval) {
            let question = Question {
                fingerprint,
                runner: held.runner.clone(),
                definition: held.definition.clone(),
                grants: held.grants.clone(),
                label: held.label,
            };
            self.spend_standing(key, &approval, question);
        }
    }

    fn replay_answered(
        &mut self,
        key: &CallKey,
        fingerprint: Digest,
        tool: ToolName,
        msg: String,
        label: Label,
        after: Option<RecordId>,
    ) {
        self.forget_in_flight(key);
        self.replay_call(key, replayed(tool, fingerprint, Effects::Once, self.now));
        self.keep(key, Bytes::from(msg), label, after);
        self.drop_cover(key);
        self.bound_stored(&key.session.role);
        if let Some(session) = self.sessions.get_mut(&key.session) {
            session.last_used = session.last_used.max(self.now);
        }
        self.shrink(&key.session);
    }
}

/// The call that a person is asked about.
fn asked_call(request: &ApprovalRequest) -> CallKey {
    CallKey {
        session: SessionKey {
            role: request.role.clone(),
            session: request.session.clone(),
        },
        call: request.call,
    }
}

/// A call as a record tells of it.
pub(crate) fn replayed(
    tool: ToolName,
    fingerprint: Digest,
    effects: Effects,
    since: Timestamp,
) -> Call {
    Call {
        tool,
        fingerprint,
        effects,
        since,
        arguments: String::new(),
        request: Bytes::new(),
        charge: 0,
        interrupted: false,
        judged: 0,
        attempts: 0,
        waiters: Vec::new(),
        state: State::New,
    }
}
