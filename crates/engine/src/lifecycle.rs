//! Reloads and drains.

use std::sync::Arc;

use policy::{Config, Ruleset};
use proto::{ControlReply, FailureCode, Message};

use crate::effect::{Effect, Level};
use crate::engine::Engine;
use crate::event::{ConnId, RequestId};
use crate::record::{By, CallKey, Record, RecordId};
use crate::state::State;
use crate::timers::Timer;

impl Engine {
    /// Whether a configuration would be taken: the grants of run time must fit it.
    ///
    /// # Errors
    /// In words, which one does not.
    pub fn would_take(&self, config: &Config) -> Result<(), String> {
        self.with_runtime_grants(config).map(|_| ())
    }

    fn with_runtime_grants(&self, config: &Config) -> Result<Ruleset, String> {
        let mut ruleset = config.ruleset.clone();
        for (grant, toml) in &self.runtime_grants {
            (ruleset, _) = ruleset.with_grant(toml).map_err(|why| {
                format!("grant {grant}, added at run time, does not fit it: {why}")
            })?;
        }
        Ok(ruleset)
    }

    /// Takes a new configuration, whole or not at all.
    pub(crate) fn configured(&mut self, config: Arc<Config>, request: Option<RequestId>) {
        let ruleset = match self.with_runtime_grants(&config) {
            Ok(ruleset) => ruleset,
            Err(why) => return self.config_refused(request, &why),
        };
        let by = request.and_then(|request| self.reloads.remove(&request));
        let digest = config.digest.clone();
        let changes = config.changes_from(&self.config);
        self.config = config;
        self.replace_ruleset(ruleset);
        self.rules_changed = self.record(Record::Configured {
            at: self.now,
            ruleset: digest.clone(),
            text: Some(self.config.text.clone()),
            by,
        });
        self.log(Level::Info, "reloaded", |_| {});
        let after = self.rules_changed;
        self.answer_request(
            request,
            Ok(ControlReply::Reloaded {
                ruleset: digest,
                changes,
            }),
            after,
        );
        self.close_misfits();
        self.requeue_claimed();
        self.rules_moved();
    }

    pub(crate) fn config_refused(&mut self, request: Option<RequestId>, why: &str) {
        if let Some(request) = request {
            self.reloads.remove(&request);
        }
        self.log(Level::Warn, "reload_refused", |_| {});
        self.answer_request(
            request,
            Err(format!("the old configuration stays: {why}")),
            None,
        );
    }

    /// Closes the connections whose role is gone or is another kind now.
    fn close_misfits(&mut self) {
        let misfits: Vec<ConnId> = self
            .conns
            .iter()
            .filter(|(_, conn)| {
                self.config
                    .roles
                    .get(&conn.peer.role)
                    .is_none_or(|role| role.kind != conn.kind)
            })
            .map(|(id, _)| *id)
            .collect();
        for id in misfits {
            self.close(id);
        }
    }

    /// Claimed calls are judged anew: their tool may have gone to another runner role.
    fn requeue_claimed(&mut self) {
        for key in self.calls_in(|state| matches!(state, State::Claimed { .. })) {
            let rerun = self.call(&key).is_some_and(|call| call.attempts > 0);
            if !rerun {
                self.take_back(&key);
                self.advance(&key);
            }
        }
    }

    fn calls_in(&self, state: impl Fn(&State) -> bool) -> Vec<CallKey> {
        let in_flight = self
            .sessions
            .iter()
            .filter(|(_, session)| session.in_flight > 0);
        in_flight
            .flat_map(|(key, session)| {
                let calls = session.calls.iter().filter(|(_, call)| state(&call.state));
                calls.map(|(call, _)| CallKey {
                    session: key.clone(),
                    call: *call,
                })
            })
            .collect()
    }

    pub(crate) fn begin_drain(&mut self, by: Option<By>) -> (ControlReply, Option<RecordId>) {
        if let Some(deadline) = self.draining {
            return (ControlReply::Draining { deadline }, None);
        }
        let deadline = self.now.plus(self.config.settings.drain_timeout);
        self.record_all_refused();
        let record = self.record(Record::Draining { at: self.now, by });
        self.draining = Some(deadline);
        self.timers.set(Timer::Drain, deadline);
        self.log(Level::Info, "draining", |_| {});
        (ControlReply::Draining { deadline }, record)
    }

    /// No call runs any more, or the deadline is there.
    pub(crate) fn end_drain(&mut self) {
        if self.drained {
            return;
        }
        for key in self.calls_in(|state| matches!(state, State::Dispatched(_))) {
            if self
                .call(&key)
                .is_some_and(|call| call.effects == proto::Effects::Once)
            {
                let text = "the broker stopped before the runner answered";
                self.fail(&key, FailureCode::UnknownOutcome, text, true);
            }
        }
        let told = FailureCode::ShuttingDown.response("the broker stopped; ask again later");
        let msg = proto::encode_message(&Message::ToolResponse(told));
        for key in self.calls_in(|_| true) {
            let Some(call) = self.call_mut(&key) else {
                continue;
            };
            let unanswered = !matches!(call.state, State::Answered(_) | State::Interrupted);
            let waiters = if unanswered {
                std::mem::take(&mut call.waiters)
            } else {
                Vec::new()
            };
            for waiter in waiters {
                self.forget_request(waiter.conn, waiter.id);
                self.send(waiter.conn, None, waiter.id, true, msg.clone());
            }
        }
        self.record_all_refused();
        self.log(Level::Info, "drained", |_| {});
        self.out.push(Effect::Drained);
        self.drained = true;
    }
}
