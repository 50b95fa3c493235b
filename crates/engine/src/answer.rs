//! A call's answer: told to everyone who waits, kept, and told again to a repeat.

use bytes::Bytes;
use policy::Decision;
use proto::{CallEnd, DenyReason, Effects, FailureCode, Label, Message, ToolName, ToolResponse};

use crate::effect::Level;
use crate::engine::Engine;
use crate::event::ConnId;
use crate::limits::CALL_OVERHEAD;
use crate::record::{CallKey, Record, RecordId};
use crate::state::{State, Stored, Waiter};
use crate::timers::Timer;
use crate::upshot;

impl Engine {
    /// Ends a call. `kept`: a repeat gets the same bytes; else it may be asked again.
    pub(crate) fn finish(
        &mut self,
        key: &CallKey,
        response: &ToolResponse,
        label: Label,
        kept: bool,
    ) {
        let msg = proto::encode_message(&Message::ToolResponse(response.clone()));
        self.finish_with(key, msg, label, kept);
    }

    pub(crate) fn finish_with(&mut self, key: &CallKey, msg: Bytes, label: Label, kept: bool) {
        self.take_back(key);
        self.log_answer(key, &msg);
        let now = self.now;
        let Some(session) = self.sessions.get_mut(&key.session) else {
            return;
        };
        session.in_flight -= 1;
        session.last_used = now;
        let Some(call) = session.calls.get_mut(&key.call) else {
            return;
        };
        let waiters = std::mem::take(&mut call.waiters);
        let charge = std::mem::take(&mut call.charge);
        call.arguments = String::new();
        call.request = Bytes::new();
        let (effects, fingerprint, tool) =
            (call.effects, call.fingerprint.clone(), call.tool.clone());
        let usage = &mut self.account(&key.session.role).usage;
        usage.in_flight -= 1;
        usage.waiting_bytes -= charge;
        // A `read` call's answer is recorded only where it ends an approval that was not spent.
        let unspent = self.has_unspent_cover(key);
        let told = self.told_of_end(key, &fingerprint);
        let record = (kept && (effects != Effects::Read || unspent))
            .then(|| {
                self.record(Record::Answered {
                    at: now,
                    call: key.clone(),
                    fingerprint,
                    tool: tool.clone(),
                    // Canonical JSON of ours is UTF-8.
                    msg: String::from_utf8_lossy(&msg).into_owned(),
                    label,
                })
            })
            .flatten();
        let after = record.max(self.label_record(&key.session));
        if kept {
            self.keep(key, msg.clone(), label, after);
        } else if let Some(session) = self.sessions.get_mut(&key.session) {
            match session.calls.get_mut(&key.call) {
                // Its number and content stay taken: it was dispatched before a restart.
                Some(call) if call.interrupted => call.state = State::Interrupted,
                Some(_) | None => {
                    session.calls.remove(&key.call);
                }
            }
            if self.call(key).is_some() {
                let at = now.plus(self.config.settings.answer_ttl);
                self.timers.set(Timer::Answer(key.clone()), at);
            }
        }
        for waiter in waiters {
            self.tell(key, &waiter, &msg, after, kept);
        }
        if let Some((approval, asked)) = told {
            self.tell_approvers(approval, asked, key, tool, &msg, after);
        }
        if kept {
            self.drop_cover(key);
            self.bound_stored(&key.session.role);
        }
        let session = self.sessions.get(&key.session);
        let over = session.is_some_and(|session| session.closed && session.in_flight == 0);
        if over && record.is_none() {
            // Else a restart would not know it, and keep what the session lets go of here.
            self.record(Record::Closed {
                at: now,
                session: key.session.clone(),
                by: None,
            });
        }
        self.shrink(&key.session);
    }

    /// Keeps an answer for repeats.
    pub(crate) fn keep(
        &mut self,
        key: &CallKey,
        msg: Bytes,
        label: Label,
        after: Option<RecordId>,
    ) {
        let at = self.now.plus(self.config.settings.answer_ttl);
        let bytes = msg.len() as u64 + CALL_OVERHEAD;
        let Some(call) = self.call_mut(key) else {
            return;
        };
        call.state = State::Answered(Stored { msg, label, after });
        self.timers.set(Timer::Answer(key.clone()), at);
        let account = self.account(&key.session.role);
        account.usage.stored_bytes += bytes;
        account.stored.push_back(key.clone());
    }

    /// Evicts the oldest answers until the role's `stored_bytes` hold.
    pub(crate) fn bound_stored(&mut self, role: &proto::RoleName) {
        let quota = self.quota(role).stored_bytes;
        while self.usage(role).stored_bytes > quota
            && let Some(oldest) = self.account(role).stored.pop_front()
        {
            self.evict(&oldest);
        }
        // Those that went with their sessions leave their places here: each kept one is charged
        // `CALL_OVERHEAD` at least.
        let kept = self.usage(role).stored_bytes / CALL_OVERHEAD;
        if self.account(role).stored.len() as u64 > kept.saturating_mul(2).saturating_add(64) {
            self.compact_stored(role);
        }
        // Answers that were evicted by their age leave their place here.
        while let Some(oldest) = self.account(role).stored.front().cloned()
            && !matches!(
                self.call(&oldest).map(|call| &call.state),
                Some(State::Answered(_))
            )
        {
            self.account(role).stored.pop_front();
        }
    }

    /// Lets go of the places of answers that are not kept any more.
    pub(crate) fn compact_stored(&mut self, role: &proto::RoleName) {
        let mut stored = std::mem::take(&mut self.account(role).stored);
        stored.retain(|key| {
            let state = self.call(key).map(|call| &call.state);
            matches!(state, Some(State::Answered(_)))
        });
        self.account(role).stored = stored;
    }

    /// Tells one request the answer, or as much as its connection takes.
    fn tell(
        &mut self,
        key: &CallKey,
        waiter: &Waiter,
        msg: &Bytes,
        after: Option<RecordId>,
        kept: bool,
    ) {
        let (conn, id) = (waiter.conn, waiter.id);
        if !kept {
            self.forget_request(conn, id);
            return self.send(conn, after, id, true, msg.clone());
        }
        let msg = match waiter.parts {
            Some(sent) if sent > 0 => rest(msg, sent),
            Some(_) | None => msg.clone(),
        };
        let takes = self
            .conns
            .get(&conn)
            .is_some_and(|c| c.takes(crate::conn::frame_len(&msg)));
        if takes && !waiter.lags {
            self.forget_request(conn, id);
            return self.send(conn, after, id, true, msg);
        }
        // It waits by name, not by bytes: its connection is told once it drains.
        if let Some(call) = self.call_mut(key) {
            call.waiters.push(Waiter {
                lags: true,
                ..*waiter
            });
        }
        if !waiter.lags {
            self.wait(conn, id, key.clone());
        }
    }

    pub(crate) fn forget_request(&mut self, conn: ConnId, id: u64) {
        if let Some(conn) = self.conns.get_mut(&conn) {
            conn.requests.remove(&id);
        }
    }

    /// A request waited for its outbox to drain: it gets what its call has for it by now.
    pub(crate) fn catch_up(&mut self, conn: ConnId, id: u64, key: &CallKey) {
        let held = self.call_mut(key).and_then(|call| {
            let waiter = call
                .waiters
                .iter_mut()
                .find(|w| w.conn == conn && w.id == id)?;
            waiter.lags = false;
            Some(waiter.parts)
        });
        match (held, self.call(key).map(|call| &call.state)) {
            (Some(parts), Some(State::Answered(stored))) => {
                let (msg, after) = (stored.msg.clone(), stored.after);
                let msg = match parts {
                    Some(sent) if sent > 0 => rest(&msg, sent),
                    Some(_) | None => msg,
                };
                if let Some(call) = self.call_mut(key) {
                    call.waiters.retain(|w| !(w.conn == conn && w.id == id));
                }
                self.forget_request(conn, id);
                self.send(conn, after, id, true, msg);
            }
            (Some(_), Some(State::Dispatched(_))) => self.release_parts(key),
            (Some(_), _) => {}
            (None, _) => {
                let waits = self
                    .conns
                    .get(&conn)
                    .is_some_and(|c| c.requests.contains_key(&id));
                if waits {
                    self.forget_request(conn, id);
                    let text = "the answer was evicted before it could be delivered";
                    let failed = FailureCode::UnknownOutcome.response(text);
                    self.reply(conn, id, &Message::ToolResponse(failed));
                }
            }
        }
    }

    /// An answer is kept no longer for whom it waits: its bytes wait in its place.
    pub(crate) fn leave_answer(&mut self, key: &CallKey, waiter: &Waiter, stored: &Stored) {
        let msg = match waiter.parts {
            Some(sent) if sent > 0 => rest(&stored.msg, sent),
            Some(_) | None => stored.msg.clone(),
        };
        self.replace_waiting(waiter.conn, waiter.id, key, stored.after, msg);
    }

    /// Sends what is new of a call's parts to whoever gets parts and can take them.
    pub(crate) fn release_parts(&mut self, key: &CallKey) {
        let label_record = self.label_record(&key.session);
        let Some(call) = self.call(key) else { return };
        let State::Dispatched(flight) = &call.state else {
            return;
        };
        let have = flight.content.len();
        let after = flight.after.max(label_record);
        let label = flight.label;
        let mut sends = Vec::new();
        for (at, waiter) in call.waiters.iter().enumerate() {
            let Some(sent) = waiter.parts else { continue };
            if sent < have && !waiter.lags {
                let piece = flight.content.get(sent..).unwrap_or_default();
                let msg = proto::encode_message(&Message::ToolResponse(ToolResponse::Result {
                    content: piece.to_owned(),
                    class: label.class,
                    untrusted: label.untrusted,
                    truncated: false,
                }));
                sends.push((at, waiter.conn, waiter.id, msg));
            }
        }
        for (at, conn, id, msg) in sends {
            let takes = self
                .conns
                .get(&conn)
                .is_some_and(|c| c.takes(crate::conn::frame_len(&msg)));
            if let Some(call) = self.call_mut(key)
                && let Some(waiter) = call.waiters.get_mut(at)
            {
                if takes {
                    waiter.parts = Some(have);
                } else {
                    waiter.lags = true;
                }
            }
            if takes {
                if let Some(State::Dispatched(flight)) = self.call_mut(key).map(|c| &mut c.state) {
                    flight.released = true;
                }
                self.send(conn, after, id, false, msg);
            } else {
                self.wait(conn, id, key.clone());
            }
        }
    }

    /// A repeat of an answered call: the stored bytes, unless a deny applies by now; its label
    /// counts again. Without `arguments`: they are gone, and nothing can be explained.
    pub(crate) fn repeat_answer(
        &mut self,
        conn: ConnId,
        id: u64,
        key: &CallKey,
        tool: &ToolName,
        arguments: Option<&str>,
    ) {
        let decided = self.decide(&key.session, tool, arguments.unwrap_or_default());
        if let Some((_, Decision::Deny(deny))) = decided
            && deny.reason == DenyReason::DeniedByGrant
        {
            let Some(call) = self.call(key) else { return };
            let fingerprint = call.fingerprint.clone();
            self.denied(key, tool, &fingerprint, arguments, &deny, true);
            let denied = ToolResponse::Denied {
                reason: deny.reason,
            };
            let after = self.label_record(&key.session);
            return self.reply_after(conn, after, id, &Message::ToolResponse(denied));
        }
        self.tell_again(conn, id, key, tool);
    }

    /// The stored bytes; their label counts again.
    pub(crate) fn tell_again(&mut self, conn: ConnId, id: u64, key: &CallKey, tool: &ToolName) {
        let Some(State::Answered(stored)) = self.call(key).map(|call| &call.state) else {
            return;
        };
        let (msg, label, after) = (stored.msg.clone(), stored.label, stored.after);
        self.raise(&key.session, label, Some((key.call, tool)));
        let after = after.max(self.label_record(&key.session));
        let now = self.now;
        if let Some(session) = self.sessions.get_mut(&key.session) {
            session.last_used = now;
        }
        self.log_call(Level::Debug, "repeated", key, tool, |_| {});
        let waiter = Waiter {
            conn,
            id,
            parts: None,
            progress: false,
            lags: false,
        };
        if let Some(conn) = self.conns.get_mut(&conn) {
            conn.requests.insert(id, key.clone());
        }
        self.tell(key, &waiter, &msg, after, true);
    }

    fn log_answer(&mut self, key: &CallKey, msg: &Bytes) {
        let Some(call) = self.call(key) else { return };
        let (tool, elapsed) = (call.tool.clone(), self.now.since(call.since));
        let reason = match upshot::end(msg) {
            (CallEnd::Failed, code) => Some(code),
            (CallEnd::Result | CallEnd::Denied, _) => None,
        };
        self.log_call(Level::Info, "answered", key, &tool, |log| {
            log.reason = reason;
            log.elapsed_us = Some(elapsed * 1000);
        });
    }
}

/// The last piece for somebody who got so many bytes of the content in parts.
fn rest(msg: &Bytes, sent: usize) -> Bytes {
    let Ok(Message::ToolResponse(ToolResponse::Result {
        content,
        class,
        untrusted,
        truncated,
    })) = serde_json::from_slice(msg)
    else {
        return msg.clone();
    };
    let content = content.get(sent..).unwrap_or_default().to_owned();
    let last = ToolResponse::Result {
        content,
        class,
        untrusted,
        truncated,
    };
    proto::encode_message(&Message::ToolResponse(last))
}
