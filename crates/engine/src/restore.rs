//! The state that a restart finds: what was interrupted is settled, and every question asked as it is now.

use std::sync::Arc;

use policy::Config;
use proto::{Effects, FailureCode, Outcome, Timestamp};

use crate::effect::Effects as Effected;
use crate::engine::{Engine, seed};
use crate::limits::SETTLED_LISTED;
use crate::part::Part;
use crate::record::{CallKey, PutBack, Record};
use crate::state::State;
use crate::timers::Timer;

impl Engine {
    /// An engine as the durable records left it: the snapshot's parts, and the records after it, or all
    /// of them, in order. The next record's number follows theirs. `put_back`: they are a copy, and what
    /// came after it is not known. Effects are those of that, and of what lapsed or was interrupted
    /// meanwhile.
    ///
    /// # Errors
    /// In words: a grant of run time does not fit the configuration. Without it a deny would be
    /// lost; whoever starts the broker has to change the configuration.
    pub fn restore(
        config: Arc<Config>,
        now: Timestamp,
        parts: impl IntoIterator<Item = Part>,
        records: impl IntoIterator<Item = Record>,
        put_back: Option<PutBack>,
        effects: &mut Effected,
    ) -> Result<Self, String> {
        let mut engine = Self::replayed(config, parts, records);
        engine.started = now;
        engine.nonce = seed(now);
        engine.at(now);
        engine.enter(now, effects);
        if let Some(put_back) = put_back {
            engine.put_back(put_back);
        }
        let resumed = engine.resume();
        if resumed.is_ok() {
            engine.settle_work();
        }
        engine.leave(effects);
        resumed.map(|()| engine)
    }

    /// After the last record: grants of run time count again, interrupted calls that run at most
    /// once are unknown, and every question is asked as it is now.
    fn resume(&mut self) -> Result<(), String> {
        for (grant, toml) in self.runtime_grants.clone() {
            let (ruleset, _) = self
                .ruleset
                .with_grant(&toml)
                .map_err(|why| format!("grant {grant}, added at run time, does not fit: {why}"))?;
            self.replace_ruleset(ruleset);
        }
        self.rules_changed = self.record(Record::Configured {
            at: self.now,
            ruleset: self.config.digest.clone(),
            text: Some(self.config.text.clone()),
            by: None,
        });
        self.forget_lapsed();
        // What was only read is not in the records: an open session is idle from now on.
        let (now, ttl) = (self.now, self.config.settings.session_ttl);
        for (key, session) in self.sessions.iter_mut().filter(|(_, s)| !s.closed) {
            session.last_used = now;
            self.timers.set(Timer::Session(key.clone()), now.plus(ttl));
        }
        let interrupted: Vec<(CallKey, Effects)> = self
            .sessions
            .iter()
            .flat_map(|(session, held)| {
                held.calls
                    .iter()
                    .filter(|(_, call)| matches!(call.state, State::Interrupted))
                    .map(|(id, call)| {
                        (
                            CallKey {
                                session: session.clone(),
                                call: *id,
                            },
                            call.effects,
                        )
                    })
            })
            .collect();
        for (key, effects) in interrupted {
            if effects == Effects::Once {
                self.give_up_interrupted(&key);
            }
        }
        let asked: Vec<_> = self.approvals.keys().cloned().collect();
        for approval in asked {
            self.resume_asked(&approval);
        }
        // A closed session keeps nothing for a call that is not in flight any more.
        let closed = self.sessions.iter().filter(|(_, s)| s.closed);
        for key in closed.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            self.shrink(&key);
        }
        self.recheck.extend(self.accounts.keys().cloned());
        Ok(())
    }

    /// Lets go of what its time has ended and no timer ends.
    fn forget_lapsed(&mut self) {
        let now = self.now;
        for session in self.sessions.values_mut() {
            session.refusals.retain(|_, until| *until > now);
        }
        self.settled
            .retain(|settled| now.since(settled.at) <= SETTLED_LISTED);
        for role in self.accounts.keys().cloned().collect::<Vec<_>>() {
            self.compact_stored(&role);
        }
    }

    /// Ends a call that was interrupted and must not run again.
    pub(crate) fn give_up_interrupted(&mut self, key: &CallKey) {
        if let Some(session) = self.sessions.get_mut(&key.session) {
            session.in_flight += 1;
            if let Some(call) = session.calls.get_mut(&key.call) {
                call.effects = Effects::Once;
                call.state = State::New;
            }
        }
        self.account(&key.session.role).usage.in_flight += 1;
        let text = "the broker stopped while the runner had it";
        self.fail(key, FailureCode::UnknownOutcome, text, true);
    }

    /// A pending approval goes on with what is left of its time, if it is still the question; or
    /// with the end that its last answer leads to, where only the answer was read back.
    fn resume_asked(&mut self, id: &proto::ApprovalId) {
        let Some(approval) = self.approvals.get(id) else {
            return;
        };
        let key = approval.call.clone();
        if let Some(no) = approval.refused.clone() {
            self.settle_question(&key, Outcome::Refused, no.by.role.as_str(), &no.comment);
            return self.deny_asked(&key, proto::DenyReason::ApprovalRefused, false);
        }
        if approval.request.expires <= self.now {
            return self.approval_expired(id);
        }
        let Some(call) = self.call(&key) else { return };
        let judged = self.judge(&key, &call.tool, &call.arguments, &call.fingerprint);
        if let crate::judge::Judged::Ask { ask, question, .. } = judged
            && let Some(asked) = self.asked_roles(&ask, &question)
            && let Some(approval) = self.approvals.get_mut(id)
        {
            approval.asked = asked;
            if approval.question == question
                && let Some(last) = approval.votes.last().cloned()
                && self.count_vote(id, last.clone())
            {
                let by = last.by.role.as_str();
                self.settle_question(&key, Outcome::Approved, by, &last.comment);
                self.advance(&key);
            }
        }
    }
}
