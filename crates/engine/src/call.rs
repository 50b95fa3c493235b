//! A call's life up to its dispatch: taken, judged, asked about, claimed (DESIGN 7).

use bytes::Bytes;
use policy::{Deny, Verdict};
use proto::{
    Cancel, DenyReason, Digest, Effects, FailureCode, Label, Message, SessionId, Timestamp,
    ToolName, ToolRequest, ToolResponse,
};

use crate::conn::frame_len;
use crate::digest;
use crate::effect::Level;
use crate::engine::Engine;
use crate::event::ConnId;
use crate::judge::Judged;
use crate::limits::{CALL_OVERHEAD, MAX_OPEN_REQUESTS, MAX_WAITERS};
use crate::record::{CallKey, Record, SessionKey};
use crate::session::NoSession;
use crate::state::{Call, State, Waiter};
use crate::timers::Timer;

/// A request of an agent's, as it came.
pub(crate) struct Asked {
    pub(crate) conn: ConnId,
    pub(crate) id: u64,
    pub(crate) key: CallKey,
    pub(crate) tool: ToolName,
    pub(crate) arguments: String,
    pub(crate) fingerprint: Digest,
    pub(crate) msg: Bytes,
}

impl Engine {
    pub(crate) fn tool_request(&mut self, conn: ConnId, id: u64, request: ToolRequest, msg: Bytes) {
        let Some(key) = self.call_key(conn, &request.session, request.call) else {
            return;
        };
        let Ok(tool) = ToolName::new(&request.tool) else {
            return;
        };
        let fingerprint = digest::fingerprint(&request.tool, &request.arguments);
        let arguments = request.arguments;
        let asked = Asked {
            conn,
            id,
            key,
            tool,
            arguments,
            fingerprint,
            msg,
        };
        if !self.owns(conn, id, &asked.key.session) {
            return;
        }
        match self.call(&asked.key) {
            Some(call) if call.fingerprint != asked.fingerprint => {
                self.bad_message(
                    conn,
                    id,
                    "msg.body.call: was asked with other content before",
                );
            }
            Some(Call {
                state: State::Interrupted,
                tool,
                ..
            }) if self
                .effective_tool(tool.as_str())
                .is_some_and(|tool| tool.effects == Effects::Once) =>
            {
                self.give_up_interrupted(&asked.key);
                // Where even that answer found no room, its number is evicted.
                match self.call(&asked.key) {
                    Some(_) => {
                        self.repeat_answer(
                            conn,
                            id,
                            &asked.key,
                            &asked.tool,
                            Some(&asked.arguments),
                        );
                    }
                    None => self.new_call(asked),
                }
            }
            Some(Call {
                state: State::Interrupted,
                ..
            })
            | None => self.new_call(asked),
            Some(Call {
                state: State::Answered(_),
                ..
            }) => {
                self.repeat_answer(conn, id, &asked.key, &asked.tool, Some(&asked.arguments));
            }
            Some(Call {
                state: State::New | State::Asked(_) | State::Claimed { .. } | State::Dispatched(_),
                ..
            }) => self.join_waiters(conn, id, &asked.key),
        }
    }

    fn call_key(&self, conn: ConnId, session: &SessionId, call: proto::CallId) -> Option<CallKey> {
        let role = self.conns.get(&conn)?.peer.role.clone();
        Some(CallKey {
            session: SessionKey {
                role,
                session: session.clone(),
            },
            call,
        })
    }

    /// Whether a session is the peer's or nobody's; tells the peer where it is not.
    pub(crate) fn owns(&mut self, conn: ConnId, id: u64, key: &SessionKey) -> bool {
        let uid = self.conns.get(&conn).map(|c| c.peer.uid);
        let owns = self
            .sessions
            .get(key)
            .is_none_or(|session| Some(session.owner) == uid);
        if !owns {
            self.bad_message(conn, id, "msg.body.session: belongs to another uid");
        }
        owns
    }

    fn new_call(&mut self, asked: Asked) {
        let Asked { conn, id, key, .. } = &asked;
        let (conn, id) = (*conn, *id);
        if self.draining.is_some() {
            let code = FailureCode::ShuttingDown;
            return self.refuse(
                &asked,
                code.response("the broker takes no new calls; ask again later"),
            );
        }
        if self.is_evicted(key) {
            let code = FailureCode::UnknownOutcome;
            let text = match self.is_restored(&key.session) {
                true => {
                    "the state is an older copy: what ran in this session is not known; use another"
                }
                false => "its answer is no longer kept; a new call needs a higher number",
            };
            return self.refuse(&asked, code.response(text));
        }
        if let Judged::Deny(deny) =
            self.judge(key, &asked.tool, &asked.arguments, &asked.fingerprint)
            && deny.reason != DenyReason::ApprovalRefused
        {
            self.denied(
                key,
                &asked.tool,
                &asked.fingerprint,
                Some(&asked.arguments),
                &deny,
                true,
            );
            return self.refuse(
                &asked,
                ToolResponse::Denied {
                    reason: deny.reason,
                },
            );
        }
        if let Err(quota) = self.admit(&asked) {
            return self.refuse(&asked, FailureCode::Busy.response(quota));
        }
        let uid = self.conns.get(&conn).map_or(u32::MAX, |c| c.peer.uid);
        match self.open_session(&key.session, uid) {
            Ok(()) => {}
            // `owns` was asked before.
            Err(NoSession::Foreign) => return,
            Err(NoSession::Busy(quota)) => {
                return self.refuse(&asked, FailureCode::Busy.response(quota));
            }
        }
        let key = asked.key.clone();
        self.insert_call(asked);
        self.add_waiter(conn, id, &key, true);
        self.advance(&key);
    }

    /// Whether the role's quotas have room for one more call; which one has not.
    fn admit(&mut self, asked: &Asked) -> Result<(), &'static str> {
        let role = &asked.key.session.role;
        let (quota, usage) = (self.quota(role), self.usage(role));
        let charge = charge(&asked.msg, &asked.arguments);
        if usage.in_flight >= quota.in_flight {
            Err("in_flight")
        } else if usage.waiting_bytes.saturating_add(charge) > quota.waiting_bytes {
            Err("waiting_bytes")
        } else if self
            .conns
            .get(&asked.conn)
            .is_some_and(|c| c.requests.len() >= MAX_OPEN_REQUESTS)
        {
            Err("open_requests")
        } else {
            Ok(())
        }
    }

    fn insert_call(&mut self, asked: Asked) {
        let Asked {
            key,
            tool,
            arguments,
            fingerprint,
            msg,
            ..
        } = asked;
        let charge = charge(&msg, &arguments);
        self.timers.cancel(&Timer::Answer(key.clone()));
        let usage = &mut self.account(&key.session.role).usage;
        usage.in_flight += 1;
        usage.waiting_bytes += charge;
        let since = self.now;
        if let Some(session) = self.sessions.get_mut(&key.session) {
            let interrupted = session.calls.contains_key(&key.call);
            session.in_flight += 1;
            session.highest = session.highest.max(Some(key.call));
            session.calls.insert(
                key.call,
                Call {
                    tool,
                    fingerprint,
                    effects: Effects::Once,
                    since,
                    arguments,
                    request: msg,
                    charge,
                    interrupted,
                    judged: 0,
                    attempts: 0,
                    waiters: Vec::new(),
                    state: State::New,
                },
            );
        }
    }

    /// Lets a request wait for a call. `first`: it may get parts.
    fn add_waiter(&mut self, conn: ConnId, id: u64, key: &CallKey, first: bool) {
        let Some(peer) = self.conns.get_mut(&conn) else {
            return;
        };
        peer.requests.insert(id, key.clone());
        let waiter = Waiter {
            conn,
            id,
            parts: (first && peer.has(proto::Feature::Parts)).then_some(0),
            progress: peer.has(proto::Feature::Progress),
            lags: false,
        };
        if let Some(call) = self.call_mut(key) {
            call.waiters.push(waiter);
        }
    }

    /// A repeat of a call that is not answered yet: its state is told again.
    fn join_waiters(&mut self, conn: ConnId, id: u64, key: &CallKey) {
        let Some(call) = self.call(key) else { return };
        let open = self.conns.get(&conn).map_or(0, |c| c.requests.len());
        if call.waiters.len() >= MAX_WAITERS || open >= MAX_OPEN_REQUESTS {
            let failed = FailureCode::Busy.response("waiters");
            self.reply(conn, id, &Message::ToolResponse(failed));
            return;
        }
        self.add_waiter(conn, id, key, false);
        self.tell_pending(key, Some(id));
    }

    /// Answers a request without keeping anything.
    fn refuse(&mut self, asked: &Asked, response: ToolResponse) {
        let after = self.label_record(&asked.key.session);
        if let ToolResponse::Failed { message } = &response {
            let code = FailureCode::of_message(message).map(FailureCode::as_str);
            self.log_call(Level::Info, "refused", &asked.key, &asked.tool, |log| {
                log.reason = code
            });
        }
        self.reply_after(
            asked.conn,
            after,
            asked.id,
            &Message::ToolResponse(response),
        );
    }

    /// Judges a call that was not dispatched, and takes the next step.
    pub(crate) fn advance(&mut self, key: &CallKey) {
        let Some(call) = self.call(key) else { return };
        match self.judge(key, &call.tool, &call.arguments, &call.fingerprint) {
            Judged::Deny(deny) => {
                self.settle_question(key, proto::Outcome::Superseded, "", "");
                self.deny(key, &deny, true);
            }
            Judged::Ask {
                tool,
                ask,
                question,
            } => {
                self.judged(key, &tool);
                self.ask(key, &tool, ask, question);
            }
            Judged::Permit { tool, .. } => {
                self.settle_question(key, proto::Outcome::Superseded, "", "");
                self.judged(key, &tool);
                self.claim(key, tool.runner);
            }
        }
    }

    /// Notes what a call was judged as.
    pub(crate) fn judged(&mut self, key: &CallKey, tool: &policy::EffectiveTool) {
        let generation = self.generation;
        if let Some(call) = self.call_mut(key) {
            call.effects = tool.effects;
            call.judged = generation;
        }
    }

    /// Lets a permitted call wait for a runner; the work after this event dispatches it.
    fn claim(&mut self, key: &CallKey, runner: proto::RoleName) {
        let (now, wait) = (self.now, self.config.settings.runner_wait);
        let Some(call) = self.call_mut(key) else {
            return;
        };
        let (tool, frame) = (call.tool.clone(), frame_len(&call.request));
        if let State::Claimed { runner: held, .. } = &mut call.state {
            *held = runner.clone();
        } else {
            call.state = State::Claimed {
                runner: runner.clone(),
                since: now,
            };
            self.running += 1;
            self.timers.set(Timer::Call(key.clone()), now.plus(wait));
        }
        self.turns
            .entry(runner.clone())
            .or_default()
            .push(key, tool, frame);
        self.route(runner);
    }

    /// Takes a call back to where it is judged from: out of its runner role's turns, or away from
    /// its runner.
    pub(crate) fn take_back(&mut self, key: &CallKey) {
        let Some(call) = self.call_mut(key) else {
            return;
        };
        match std::mem::replace(&mut call.state, State::New) {
            State::Claimed { runner, .. } => {
                if let Some(turns) = self.turns.get_mut(&runner) {
                    turns.remove(key);
                }
            }
            State::Dispatched(flight) => {
                let bytes = flight.content.len() as u64;
                self.account(&key.session.role).usage.stored_bytes -= bytes;
                if let Some(conn) = self.conns.get_mut(&flight.conn) {
                    conn.flights.remove(&flight.wire);
                }
                self.route(flight.tool.runner);
            }
            other @ (State::New | State::Asked(_) | State::Answered(_) | State::Interrupted) => {
                call.state = other;
                return;
            }
        }
        self.running -= 1;
        self.timers.cancel(&Timer::Call(key.clone()));
    }

    /// Records, remembers and logs a denial: `judged` now, or by what a person said, or nobody in time.
    /// Without `arguments`: they are gone, and nothing can be explained.
    pub(crate) fn denied(
        &mut self,
        key: &CallKey,
        tool: &ToolName,
        fingerprint: &Digest,
        arguments: Option<&str>,
        deny: &Deny,
        judged: bool,
    ) {
        if let Some(arguments) = arguments {
            self.remember(key, tool, arguments, Verdict::deny(deny));
        }
        let asks = is_of_asking(deny.reason);
        self.record(Record::Denied {
            at: self.now,
            call: key.clone(),
            tool: tool.clone(),
            fingerprint: fingerprint.clone(),
            reason: deny.reason,
            grant: deny.grant.clone(),
            basis: judged.then(|| self.basis(&key.session, tool, arguments, asks)),
        });
        self.log_call(Level::Info, "denied", key, tool, |log| {
            log.decision = Some("deny");
            log.reason = Some(deny.reason.as_str());
            log.grant = deny.grant.clone();
        });
    }

    /// Ends a call as denied.
    pub(crate) fn deny(&mut self, key: &CallKey, deny: &Deny, judged: bool) {
        let Some(call) = self.call_mut(key) else {
            return;
        };
        let (tool, fingerprint) = (call.tool.clone(), call.fingerprint.clone());
        let arguments = std::mem::take(&mut call.arguments);
        self.denied(key, &tool, &fingerprint, Some(&arguments), deny, judged);
        let reason = deny.reason;
        // What a person said, or nobody in time, is told to every repeat.
        let kept = is_of_asking(reason);
        self.finish(key, &ToolResponse::Denied { reason }, Label::BOTTOM, kept);
    }

    /// Ends a call as the asking about it has ended, or cannot be begun.
    pub(crate) fn deny_asked(&mut self, key: &CallKey, reason: DenyReason, judged: bool) {
        let deny = Deny {
            reason,
            grant: None,
        };
        self.deny(key, &deny, judged);
    }

    /// A claimed call has waited, or a dispatched one was silent, for long enough.
    pub(crate) fn call_due(&mut self, key: &CallKey) {
        let settings = &self.config.settings;
        let (wait, limit) = (settings.runner_wait, settings.call_limit);
        match self.call(key) {
            Some(Call {
                state: State::Claimed { runner, since },
                attempts,
                tool,
                ..
            }) => {
                let (deadline, attempts): (Timestamp, _) = (since.plus(limit), *attempts);
                let served = self.is_served(runner, tool);
                if served && self.now < deadline {
                    self.timers
                        .set(Timer::Call(key.clone()), self.now.plus(wait).min(deadline));
                } else if attempts > 0 {
                    self.give_up_lost(key);
                } else if served {
                    self.fail(key, FailureCode::Busy, "concurrency", false);
                } else {
                    let text = "no runner serves this tool; is its runner started?";
                    self.fail(key, FailureCode::NoRunner, text, false);
                }
            }
            Some(Call {
                state: State::Dispatched(_),
                ..
            }) => self.flight_due(key),
            Some(Call {
                state: State::New | State::Asked(_) | State::Answered(_) | State::Interrupted,
                ..
            })
            | None => {}
        }
    }

    /// Ends a call as failed.
    pub(crate) fn fail(&mut self, key: &CallKey, code: FailureCode, text: &str, kept: bool) {
        self.finish(key, &code.response(text), Label::BOTTOM, kept);
    }

    pub(crate) fn cancel(&mut self, conn: ConnId, id: u64, cancel: &Cancel) {
        let Some(key) = self.call_key(conn, &cancel.session, cancel.call) else {
            return;
        };
        if !self.owns(conn, id, &key.session) {
            return;
        }
        match self.call(&key) {
            None
            | Some(Call {
                state: State::Interrupted,
                ..
            }) => {
                self.bad_message(conn, id, "msg.body.call: there is no such call");
            }
            Some(Call {
                state: State::Answered(_),
                tool,
                judged,
                ..
            }) => {
                // Its arguments are gone. If the ruleset is the one that let it run, no deny
                // applies; else one that looks at them counts as applying.
                let tool = tool.clone();
                if *judged == self.generation {
                    self.tell_again(conn, id, &key, &tool);
                } else {
                    self.repeat_answer(conn, id, &key, &tool, None);
                }
            }
            Some(Call {
                state: State::Dispatched(_),
                ..
            }) => {
                self.join_waiters(conn, id, &key);
                self.cancel_flight(&key);
            }
            Some(Call {
                state: State::New | State::Asked(_) | State::Claimed { .. },
                attempts,
                ..
            }) => {
                let lost = *attempts > 0;
                self.join_waiters(conn, id, &key);
                let by = key.session.role.to_string();
                self.settle_question(&key, proto::Outcome::Cancelled, &by, "");
                if lost {
                    self.give_up_lost(&key);
                } else {
                    self.fail(
                        &key,
                        FailureCode::Cancelled,
                        "before it was sent to a runner",
                        true,
                    );
                }
            }
        }
    }

    pub(crate) fn log_call(
        &mut self,
        level: Level,
        event: &'static str,
        key: &CallKey,
        tool: &ToolName,
        fill: impl FnOnce(&mut crate::effect::Log),
    ) {
        self.log(level, event, |log| {
            log.role = Some(key.session.role.clone());
            log.session = Some(key.session.session.clone());
            log.call = Some(key.call);
            log.tool = Some(tool.clone());
            fill(log);
        });
    }
}

/// Whether a denial says how the asking of a person ended.
fn is_of_asking(reason: DenyReason) -> bool {
    matches!(
        reason,
        DenyReason::ApprovalRefused | DenyReason::ApprovalExpired
    )
}

fn charge(msg: &Bytes, arguments: &str) -> u64 {
    (msg.len() + arguments.len()) as u64 + CALL_OVERHEAD
}
