//! The state as of a record taken apart into what a restart reads, and put together again (DESIGN 9).

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use policy::{Config, Pins};
use proto::{ApprovalId, CallId, Digest, Effects, Label, Scope, Timestamp};

use crate::engine::Engine;
use crate::event::Snapshot;
use crate::limits::SETTLED_LISTED;
use crate::part::{Definition, Part};
use crate::record::{By, CallKey, Record, RecordId, SessionKey};
use crate::replay::replayed;
use crate::state::{
    Approval, Cover, Question, Session, SettledApproval, Standing, State, Stored, Vote,
};
use crate::timers::Timer;

impl Engine {
    /// The state that these leave, without what its own time has ended. Under the same configuration a
    /// restart from it finds what a restart from all of them finds.
    pub fn condense(
        config: Arc<Config>,
        parts: impl IntoIterator<Item = Part>,
        records: impl IntoIterator<Item = Record>,
    ) -> Vec<Part> {
        Self::replayed(config, parts, records).parts()
    }

    /// Records that a snapshot counts from now on, with the rules that do: a record that begins here can
    /// be understood without those before.
    pub(crate) fn note_snapshot(&mut self, snapshot: Snapshot) {
        let Snapshot {
            of,
            hash,
            begins,
            before,
        } = snapshot;
        self.record(Record::Snapshot {
            at: self.now,
            of,
            hash,
            begins,
            before,
            ruleset: self.config.digest.clone(),
            text: Some(self.config.text.clone()),
            grants: self.runtime_grants.clone(),
            uses: self.uses.clone().into_iter().collect(),
        });
    }

    fn parts(&self) -> Vec<Part> {
        let mut parts = vec![Part::AsOf {
            record: RecordId(self.last_record),
            at: self.now,
        }];
        parts.extend(self.accounts.iter().map(|(role, account)| Part::Role {
            role: role.clone(),
            label: account.label,
            opening: account.opening,
            raises: account.raises.clone(),
        }));
        for (key, session) in &self.sessions {
            parts.push(self.session_part(key, session));
        }
        for (key, session) in &self.sessions {
            self.approval_parts(key, session, &mut parts);
        }
        self.answer_parts(&mut parts);
        let listed = |settled: &&SettledApproval| self.now.since(settled.at) <= SETTLED_LISTED;
        let settled = self.settled.iter().filter(listed);
        parts.extend(settled.map(|entry| Part::Settled {
            at: entry.at,
            asked: entry.asked.clone(),
            settled: entry.settled.clone(),
        }));
        parts.extend(self.pins.iter().map(|((runner, _), spec)| Part::Pinned {
            runner: runner.clone(),
            spec: spec.clone(),
        }));
        parts.extend(self.uses.iter().map(|(grant, count)| Part::Uses {
            grant: grant.clone(),
            count: *count,
        }));
        let granted = self.runtime_grants.iter();
        parts.extend(granted.map(|(grant, toml)| Part::Granted {
            grant: grant.clone(),
            toml: toml.clone(),
        }));
        parts
    }

    fn session_part(&self, key: &SessionKey, session: &Session) -> Part {
        let refusals = session.refusals.iter();
        Part::Session {
            session: key.clone(),
            owner: session.owner,
            label: session.label,
            went_into: session.went_into.clone(),
            closed: session.closed,
            watermark: session.watermark,
            highest: session.highest,
            last_used: session.last_used,
            raises: session.raises.clone(),
            refusals: refusals
                .filter(|(_, until)| **until > self.now)
                .map(|(fingerprint, until)| (fingerprint.clone(), *until))
                .collect(),
        }
    }

    /// What of a session's approvals and calls holds, kept answers aside.
    fn approval_parts(&self, key: &SessionKey, session: &Session, parts: &mut Vec<Part>) {
        let holds = |expires: Timestamp| expires > self.now;
        for (approval, held) in session.standing.iter().filter(|(_, s)| holds(s.expires)) {
            parts.push(standing_part(key, approval, held));
        }
        for (call, cover) in &session.covers {
            // A spent one covers its call's rerun, and says who is told of its end.
            if holds(cover.expires) || (cover.spent && session.calls.contains_key(call)) {
                parts.push(cover_part(key, *call, cover));
            }
        }
        for (id, call) in &session.calls {
            match &call.state {
                State::Interrupted => parts.push(Part::Interrupted {
                    at: call.since,
                    call: call_key(key, *id),
                    tool: call.tool.clone(),
                    fingerprint: call.fingerprint.clone(),
                    effects: call.effects,
                }),
                State::Asked(approval) => {
                    if let Some(approval) = self.approvals.get(approval) {
                        parts.push(asked_part(approval, call.effects, call.interrupted));
                    }
                }
                State::New | State::Claimed { .. } | State::Dispatched(_) | State::Answered(_) => {}
            }
        }
    }

    fn answer_parts(&self, parts: &mut Vec<Part>) {
        let mut told = BTreeSet::new();
        for key in self.accounts.values().flat_map(|account| &account.stored) {
            if let Some(call) = self.call(key)
                && let State::Answered(Stored { msg, label, after }) = &call.state
                && let Some(record) = after
                && told.insert(key)
            {
                parts.push(Part::Answered {
                    record: *record,
                    at: call.since,
                    call: key.clone(),
                    tool: call.tool.clone(),
                    fingerprint: call.fingerprint.clone(),
                    // Canonical JSON of ours is UTF-8.
                    msg: String::from_utf8_lossy(msg).into_owned(),
                    label: *label,
                });
            }
        }
    }

    /// Takes a part of the state in.
    pub(crate) fn take_part(&mut self, part: Part) {
        match part {
            Part::AsOf { record, at } => {
                self.last_record = record.0;
                self.at(at);
            }
            Part::Role {
                role,
                label,
                opening,
                raises,
            } => {
                let account = self.account(&role);
                account.label = label;
                account.opening = opening;
                account.raises = raises;
            }
            session @ Part::Session { .. } => self.take_session(session),
            standing @ Part::Standing { .. } => self.take_standing_part(standing),
            cover @ Part::Cover { .. } => self.take_cover(cover),
            Part::Interrupted {
                at,
                call,
                tool,
                fingerprint,
                effects,
            } => {
                let mut held = replayed(tool, fingerprint, effects, at);
                held.state = State::Interrupted;
                self.replay_call(&call, held);
                self.evict_later(&call, at);
            }
            Part::Asked {
                record,
                request,
                fingerprint,
                definition,
                effects,
                interrupted,
                asked,
                votes,
                refused,
            } => {
                let question = definition.question(fingerprint, request.label);
                let id = request.approval.clone();
                self.replay_asked(request, question, effects, interrupted, asked, record);
                if let Some(approval) = self.approvals.get_mut(&id) {
                    approval.votes = votes.into_iter().map(vote).collect();
                    approval.refused = refused.map(vote);
                }
            }
            Part::Answered {
                record,
                at,
                call,
                tool,
                fingerprint,
                msg,
                label,
            } => {
                self.replay_call(&call, replayed(tool, fingerprint, Effects::Once, at));
                self.keep(&call, Bytes::from(msg), label, Some(record));
                self.evict_later(&call, at);
                self.bound_stored(&call.session.role);
            }
            Part::Evicted { call } => {
                if let Some(session) = self.sessions.get_mut(&call.session) {
                    session.watermark = session.watermark.max(Some(call.call));
                }
            }
            Part::Settled { at, asked, settled } => self.settled.push_back(SettledApproval {
                at,
                asked,
                settled,
                after: None,
            }),
            Part::Pinned { runner, spec } => {
                self.pins.insert((runner, spec.name.clone()), spec);
            }
            Part::Uses { grant, count } => {
                self.uses.insert(grant, count);
            }
            Part::Granted { grant, toml } => self.runtime_grants.push((grant, toml)),
        }
    }

    fn take_session(&mut self, part: Part) {
        let Part::Session {
            session: key,
            owner,
            label,
            went_into,
            closed,
            watermark,
            highest,
            last_used,
            raises,
            refusals,
        } = part
        else {
            return;
        };
        self.apply_opened(&key, owner);
        if let Some(session) = self.sessions.get_mut(&key) {
            session.label = label;
            session.went_into = went_into;
            session.watermark = watermark;
            session.highest = highest;
            session.last_used = last_used;
            session.raises = raises;
            session.refusals = refusals.into_iter().collect();
        }
        if closed {
            self.mark_closed(&key);
        }
    }

    fn take_standing_part(&mut self, part: Part) {
        let Part::Standing {
            session,
            approval,
            tool,
            definition,
            pins,
            label,
            uses_left,
            expires,
            by,
            asked,
        } = part
        else {
            return;
        };
        let Definition {
            runner,
            definition,
            grants,
        } = definition;
        let standing = Standing {
            tool,
            runner,
            definition,
            grants,
            pins: Pins(pins.into_iter().collect()),
            label,
            uses_left,
            expires,
            by,
            asked,
        };
        self.take_standing(&session, &approval, standing);
    }

    fn take_cover(&mut self, part: Part) {
        let Part::Cover {
            call,
            approval,
            fingerprint,
            definition,
            label,
            asked,
            expires,
            spent,
        } = part
        else {
            return;
        };
        let cover = Cover {
            approval,
            question: definition.question(fingerprint, label),
            asked,
            expires,
            spent,
        };
        self.add_cover(&call, cover);
    }

    /// An answer, or its place, is kept for `answer_ttl` from `at` on.
    pub(crate) fn evict_later(&mut self, key: &CallKey, at: Timestamp) {
        let at = at.plus(self.config.settings.answer_ttl);
        self.timers.set(Timer::Answer(key.clone()), at);
    }
}

impl Definition {
    fn of(question: &Question) -> Self {
        Self {
            runner: question.runner.clone(),
            definition: question.definition.clone(),
            grants: question.grants.clone(),
        }
    }

    fn question(self, fingerprint: Digest, label: Label) -> Question {
        Question {
            fingerprint,
            runner: self.runner,
            definition: self.definition,
            grants: self.grants,
            label,
        }
    }
}

fn call_key(session: &SessionKey, call: CallId) -> CallKey {
    CallKey {
        session: session.clone(),
        call,
    }
}

fn standing_part(key: &SessionKey, approval: &ApprovalId, held: &Standing) -> Part {
    Part::Standing {
        session: key.clone(),
        approval: approval.clone(),
        tool: held.tool.clone(),
        definition: Definition {
            runner: held.runner.clone(),
            definition: held.definition.clone(),
            grants: held.grants.clone(),
        },
        pins: held.pins.0.clone().into_iter().collect(),
        label: held.label,
        uses_left: held.uses_left,
        expires: held.expires,
        by: held.by.clone(),
        asked: held.asked.clone(),
    }
}

fn cover_part(key: &SessionKey, call: CallId, cover: &Cover) -> Part {
    Part::Cover {
        call: call_key(key, call),
        approval: cover.approval.clone(),
        fingerprint: cover.question.fingerprint.clone(),
        definition: Definition::of(&cover.question),
        label: cover.question.label,
        asked: cover.asked.clone(),
        expires: cover.expires,
        spent: cover.spent,
    }
}

fn asked_part(approval: &Approval, effects: Effects, interrupted: bool) -> Part {
    let words = |vote: &Vote| (vote.by.clone(), vote.scope, vote.comment.clone());
    Part::Asked {
        record: approval.after.unwrap_or(RecordId(0)),
        request: approval.request.clone(),
        fingerprint: approval.question.fingerprint.clone(),
        definition: Definition::of(&approval.question),
        effects,
        interrupted,
        asked: approval.asked.clone(),
        votes: approval.votes.iter().map(words).collect(),
        refused: approval.refused.as_ref().map(words),
    }
}

fn vote((by, scope, comment): (By, Scope, String)) -> Vote {
    Vote { by, scope, comment }
}
