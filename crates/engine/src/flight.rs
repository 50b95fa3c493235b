//! Calls on their way through a runner: parts, progress, answers, silence, loss, cancels.

use proto::{
    Cancel, Content, Effects, Envelope, ErrorCode, FailureCode, Feature, Label, Message, Progress,
    ToolResponse,
};

use proto::frame::escaped_len;

use crate::content::{bounded, fitting, room};
use crate::effect::Level;
use crate::engine::Engine;
use crate::event::ConnId;
use crate::limits::{MAX_ABANDONED, MAX_ATTEMPTS, MAX_FAILURE_TEXT, MAX_NOTE};
use crate::record::{CallKey, Record};
use crate::state::{Call, Flight, State};
use crate::timers::Timer;

impl Engine {
    /// A reply of a runner's. One under an id that is not open is dropped and counted.
    pub(crate) fn runner_replied(&mut self, conn: ConnId, envelope: Envelope, msg: bytes::Bytes) {
        let Some(runner) = self.conns.get(&conn) else {
            return;
        };
        let Some(key) = runner.flights.get(&envelope.id).cloned() else {
            return self.late_reply(conn, &envelope);
        };
        let (parts, progress) = (runner.has(Feature::Parts), runner.has(Feature::Progress));
        match envelope.msg {
            Message::ToolResponse(ToolResponse::Result {
                content,
                class,
                untrusted,
                truncated,
            }) => {
                let label = Label { class, untrusted };
                if envelope.r#final {
                    self.last_piece(&key, content, label, truncated, msg);
                } else if parts {
                    self.part(&key, &content, label, truncated);
                } else {
                    self.runner_erred(&key, "it sent a part without the feature `parts`");
                }
            }
            Message::ToolResponse(ToolResponse::Failed { message }) => {
                self.runner_erred(&key, &message);
            }
            Message::ToolResponse(ToolResponse::Denied { .. }) => {
                self.runner_erred(&key, "it answered `denied`");
            }
            Message::ToolResponse(ToolResponse::PendingApproval { .. }) => {
                self.runner_erred(&key, "it answered `pending_approval`");
            }
            Message::Error(error) => self.runner_erred(&key, &error.detail),
            Message::Progress(said) if progress && !envelope.r#final => self.progress(&key, &said),
            Message::Progress(_) => {
                self.runner_erred(
                    &key,
                    "it sent `progress` without the feature, or as its last",
                );
            }
            other @ (Message::ToolRequest(_)
            | Message::Hello(_)
            | Message::Welcome(_)
            | Message::Cancel(_)
            | Message::Offer(_)
            | Message::Offered(_)
            | Message::ListTools(_)
            | Message::Tools(_)
            | Message::ToolsChanged(_)
            | Message::SessionJoined(_)
            | Message::JoinSession(_)
            | Message::Joined(_)
            | Message::ApprovalRequest(_)
            | Message::ApprovalReply(_)
            | Message::ApprovalSettled(_)
            | Message::CallSettled(_)
            | Message::ListApprovals(_)
            | Message::Approvals(_)
            | Message::Control(_)
            | Message::ControlReply(_)) => self.not_yours(conn, 0, other.kind()),
        }
    }

    /// A runner's frame under an open id that could not be understood.
    pub(crate) fn undecodable_reply(&mut self, conn: ConnId, wire: u64) {
        if let Some(key) = self
            .conns
            .get(&conn)
            .and_then(|c| c.flights.get(&wire).cloned())
        {
            self.runner_erred(&key, "its answer could not be understood");
        }
    }

    fn flight(&self, key: &CallKey) -> Option<&Flight> {
        match &self.call(key)?.state {
            State::Dispatched(flight) => Some(flight),
            State::New
            | State::Asked(_)
            | State::Claimed { .. }
            | State::Answered(_)
            | State::Interrupted => None,
        }
    }

    fn flight_mut(&mut self, key: &CallKey) -> Option<&mut Flight> {
        match &mut self.call_mut(key)?.state {
            State::Dispatched(flight) => Some(flight),
            State::New
            | State::Asked(_)
            | State::Claimed { .. }
            | State::Answered(_)
            | State::Interrupted => None,
        }
    }

    /// Joins what a runner wrote for a call into the session, before any of it reaches the agent.
    fn taint(&mut self, key: &CallKey, said: Label) -> Label {
        let Some(call) = self.call(key) else {
            return said;
        };
        let tool = call.tool.clone();
        // The floor of the dispatch, and that of now: a reload may have raised it.
        let floor = self
            .effective_tool(tool.as_str())
            .map_or(said, |now| Label {
                class: now.class,
                untrusted: now.untrusted,
            });
        let Some(flight) = self.flight_mut(key) else {
            return said;
        };
        flight.label = flight.label.join(said).join(floor);
        let label = flight.label;
        self.raise(&key.session, label, Some((key.call, &tool)));
        label
    }

    fn part(&mut self, key: &CallKey, content: &str, said: Label, truncated: bool) {
        self.taint(key, said);
        self.append(key, content, truncated);
        self.put_off_silence(key);
        self.release_parts(key);
    }

    /// Appends to the parts so far what fits a frame and the role's `stored_bytes`.
    fn append(&mut self, key: &CallKey, content: &str, truncated: bool) {
        let most = room(self.config.settings.max_frame);
        let role = &key.session.role;
        let stored = self.make_room(role, content.len() as u64);
        let Some(flight) = self.flight_mut(key) else {
            return;
        };
        flight.truncated |= truncated;
        if flight.overflowed {
            return;
        }
        let written = escaped_len(content);
        let taken = if flight.written + written <= most {
            content
        } else {
            fitting(content, most - flight.written.min(most))
        };
        let taken = bounded(taken, usize::try_from(stored).unwrap_or(usize::MAX));
        flight.overflowed = taken.len() < content.len();
        flight.written += escaped_len(taken);
        flight.content.push_str(taken);
        let bytes = taken.len() as u64;
        self.account(role).usage.stored_bytes += bytes;
    }

    /// Evicts kept answers of a role's until so many bytes have room, or none are left; gives the
    /// room that there is.
    fn make_room(&mut self, role: &proto::RoleName, bytes: u64) -> u64 {
        let quota = self.quota(role).stored_bytes;
        while self.usage(role).stored_bytes.saturating_add(bytes) > quota
            && let Some(oldest) = self.account(role).stored.pop_front()
        {
            self.evict(&oldest);
        }
        quota.saturating_sub(self.usage(role).stored_bytes)
    }

    /// The last or only piece of a result.
    fn last_piece(
        &mut self,
        key: &CallKey,
        content: String,
        said: Label,
        truncated: bool,
        msg: bytes::Bytes,
    ) {
        let label = self.taint(key, said);
        let most = room(self.config.settings.max_frame);
        let Some(flight) = self.flight(key) else {
            return;
        };
        let whole = flight.content.is_empty() && !flight.overflowed && !flight.truncated;
        // What is forwarded is what was judged: its own bytes, if the floor added nothing.
        if whole && label == said && escaped_len(&content) <= most {
            return self.finish_with(key, msg, label, true);
        }
        self.append(key, &content, truncated);
        let Some(flight) = self.flight_mut(key) else {
            return;
        };
        let cut = flight.overflowed;
        if cut && flight.tool.content == Content::Mcp {
            return self.fail_labelled(
                key,
                FailureCode::TooLarge,
                "the result does not fit a frame",
            );
        }
        let result = ToolResponse::Result {
            content: flight.content.clone(),
            class: label.class,
            untrusted: label.untrusted,
            truncated: cut || flight.truncated,
        };
        self.finish(key, &result, label, true);
    }

    fn progress(&mut self, key: &CallKey, said: &Progress) {
        self.taint(key, Label::BOTTOM);
        self.put_off_silence(key);
        let most = room(self.config.settings.max_frame);
        let Some(flight) = self.flight_mut(key) else {
            return;
        };
        if said.done < flight.done {
            return;
        }
        flight.done = said.done;
        let note = fitting(bounded(&said.note, MAX_NOTE), most).to_owned();
        let told = Message::Progress(Progress {
            done: said.done,
            total: said.total,
            note,
        });
        let msg = proto::encode_message(&told);
        let after = flight.after.max(self.label_record(&key.session));
        let Some(call) = self.call(key) else { return };
        let waiters: Vec<_> = call
            .waiters
            .iter()
            .filter(|w| w.progress && !w.lags)
            .map(|w| (w.conn, w.id))
            .collect();
        for (conn, id) in waiters {
            // Only news of the moment: one that cannot take it now does without.
            if self
                .conns
                .get(&conn)
                .is_some_and(|c| c.takes(crate::conn::frame_len(&msg)))
            {
                self.send(conn, after, id, false, msg.clone());
            }
        }
    }

    fn put_off_silence(&mut self, key: &CallKey) {
        let silence = self.config.settings.call_timeout;
        let now = self.now;
        if let Some(flight) = self.flight(key)
            && !flight.cancelled
        {
            let at = now.plus(silence).min(flight.limit);
            self.timers.set(Timer::Call(key.clone()), at);
        }
    }

    /// A runner's own failure, or what it may not say: it cannot speak as the broker.
    fn runner_erred(&mut self, key: &CallKey, text: &str) {
        // What stands around it is shorter than what stands around a result.
        let most = room(self.config.settings.max_frame);
        let text = fitting(bounded(text, MAX_FAILURE_TEXT), most);
        self.fail_labelled(key, FailureCode::RunnerFailed, text);
    }

    fn fail_labelled(&mut self, key: &CallKey, code: FailureCode, text: &str) {
        let label = self.taint(key, Label::BOTTOM);
        self.finish(key, &code.response(text), label, true);
    }

    pub(crate) fn cancel_flight(&mut self, key: &CallKey) {
        let grace = self.config.settings.cancel_grace;
        let now = self.now;
        let Some(flight) = self.flight_mut(key) else {
            return;
        };
        if std::mem::replace(&mut flight.cancelled, true) {
            return;
        }
        let (conn, wire) = (flight.conn, flight.wire);
        self.timers.set(Timer::Call(key.clone()), now.plus(grace));
        self.tell_cancelled(conn, wire, key);
    }

    fn tell_cancelled(&mut self, conn: ConnId, wire: u64, key: &CallKey) {
        if self.conns.get(&conn).is_some_and(|c| c.features.is_some()) {
            let cancel = Cancel {
                session: key.session.session.clone(),
                call: key.call,
            };
            let msg = proto::encode_message(&Message::Cancel(cancel));
            self.send(conn, None, wire, true, msg);
        }
    }

    /// A dispatched call was silent for too long, took too long, or its cancel was not answered.
    pub(crate) fn flight_due(&mut self, key: &CallKey) {
        let Some(Call {
            state: State::Dispatched(flight),
            effects,
            ..
        }) = self.call(key)
        else {
            return;
        };
        let (conn, wire, cancelled) = (flight.conn, flight.wire, flight.cancelled);
        let effects = *effects;
        // A runner that was told, and did not answer for `cancel_grace`, has its place back.
        let told = cancelled && self.conns.get(&conn).is_some_and(|c| c.features.is_some());
        self.abandon(conn, wire, key, !told);
        if !cancelled {
            self.tell_cancelled(conn, wire, key);
        }
        let (code, text) = match (cancelled, effects) {
            (true, Effects::Read) => (FailureCode::Cancelled, "the runner did not answer"),
            (true, Effects::Idempotent | Effects::Once) => (
                FailureCode::UnknownOutcome,
                "it was cancelled, and the runner did not answer",
            ),
            (false, Effects::Once) => (
                FailureCode::UnknownOutcome,
                "the runner did not answer in time",
            ),
            (false, Effects::Read | Effects::Idempotent) => {
                (FailureCode::TimedOut, "the runner did not answer in time")
            }
        };
        self.fail(key, code, text, true);
    }

    /// Gives a call on a runner's connection up. It holds its place for `cancel_grace` more where
    /// the runner was not told before.
    fn abandon(&mut self, conn: ConnId, wire: u64, key: &CallKey, holds: bool) {
        let until = self.now.plus(self.config.settings.cancel_grace);
        let Some(runner) = self.conns.get_mut(&conn) else {
            return;
        };
        runner.flights.remove(&wire);
        runner.abandoned.insert(wire, (key.clone(), holds));
        if runner.abandoned.len() > MAX_ABANDONED
            && let Some((oldest, _)) = runner.abandoned.pop_first()
        {
            self.timers.cancel(&Timer::Slot(conn, oldest));
        }
        if holds {
            self.timers.set(Timer::Slot(conn, wire), until);
        }
    }

    pub(crate) fn free_slot(&mut self, conn: ConnId, wire: u64) {
        let Some(runner) = self.conns.get_mut(&conn) else {
            return;
        };
        if let Some((_, held)) = runner.abandoned.get_mut(&wire) {
            *held = false;
        }
        let role = runner.peer.role.clone();
        self.route(role);
    }

    /// A reply under an id that is not open: the late answer of a call that was given up is
    /// recorded, not released; everything else is dropped and counted.
    fn late_reply(&mut self, conn: ConnId, envelope: &Envelope) {
        let Some(runner) = self.conns.get_mut(&conn) else {
            return;
        };
        let role = runner.peer.role.clone();
        let held = if envelope.r#final {
            runner.abandoned.remove(&envelope.id)
        } else {
            None
        };
        let Some((call, _)) = held else {
            self.account(&role).dropped_replies += 1;
            self.log(Level::Debug, "reply_dropped", |log| log.role = Some(role));
            return;
        };
        self.timers.cancel(&Timer::Slot(conn, envelope.id));
        if self
            .call(&call)
            .is_some_and(|call| call.effects != Effects::Read)
        {
            let is_result = matches!(
                envelope.msg,
                Message::ToolResponse(ToolResponse::Result { .. })
            );
            let status = if is_result { "result" } else { "failed" }.to_owned();
            self.record(Record::Late {
                at: self.now,
                call,
                status,
            });
        }
        self.route(role);
    }

    /// The runner of a call is gone.
    pub(crate) fn lost(&mut self, key: &CallKey) {
        let Some(flight) = self.flight(key) else {
            return;
        };
        let (cancelled, released) = (flight.cancelled, flight.released);
        let Some(call) = self.call(key) else { return };
        let (effects, attempts) = (call.effects, call.attempts);
        self.take_back(key);
        if cancelled {
            let (code, text) = match effects {
                Effects::Read => (FailureCode::Cancelled, "the runner is gone"),
                Effects::Idempotent | Effects::Once => (
                    FailureCode::UnknownOutcome,
                    "it was cancelled, and the runner is gone",
                ),
            };
            self.fail(key, code, text, true);
        } else if effects == Effects::Once || released || attempts >= MAX_ATTEMPTS {
            self.give_up_lost(key);
        } else {
            self.rerun(key);
        }
    }

    /// Sends a lost call to another connection, if it may still run.
    fn rerun(&mut self, key: &CallKey) {
        let Some(call) = self.call(key) else { return };
        match self.judge(key, &call.tool, &call.arguments, &call.fingerprint) {
            crate::judge::Judged::Permit { tool, .. } if tool.effects != Effects::Once => {
                self.advance(key);
            }
            // Refused by now, or run at most once by now.
            crate::judge::Judged::Permit { .. }
            | crate::judge::Judged::Ask { .. }
            | crate::judge::Judged::Deny(_) => self.give_up_lost(key),
        }
    }

    /// Ends a call whose runner was lost.
    pub(crate) fn give_up_lost(&mut self, key: &CallKey) {
        let Some(call) = self.call(key) else { return };
        let code = match call.effects {
            Effects::Read => FailureCode::RunnerFailed,
            Effects::Idempotent | Effects::Once => FailureCode::UnknownOutcome,
        };
        self.fail(key, code, "the runner was lost while it ran", true);
    }

    /// A kind that this peer may not send now.
    pub(crate) fn not_yours(&mut self, conn: ConnId, id: u64, kind: &str) {
        let detail = format!("msg.kind: `{kind}` is not for this role to send now");
        self.error(conn, id, ErrorCode::BadMessage, &detail);
    }
}
