//! Sessions: whose they are, what they have seen, how they are joined, closed and shrunk.

use proto::{
    CallId, Feature, JoinSession, Joined, Label, LabelScope, Message, Raise, RoleName, SessionId,
    SessionJoined, ToolName,
};

use crate::effect::Level;
use crate::engine::Engine;
use crate::event::ConnId;
use crate::limits::{CALL_OVERHEAD, MAX_RAISES};
use crate::record::{By, CallKey, Record, RecordId, SessionKey};
use crate::state::{Session, State};
use crate::timers::Timer;

/// Why a session cannot be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoSession {
    /// It belongs to another uid.
    Foreign,
    /// The role has as many as it may.
    Busy(&'static str),
}

impl Engine {
    /// The session at the end of the chain of sessions that this one was closed into.
    pub(crate) fn root(&self, key: &SessionKey) -> Option<SessionKey> {
        let mut root = None;
        let mut at = key.clone();
        while let Some(into) = self.sessions.get(&at).and_then(|s| s.went_into.clone()) {
            at.session = into;
            root = Some(at.clone());
        }
        root
    }

    /// Shortens the chain that a session's name hangs on, so that it is walked once only.
    fn compress(&mut self, key: &SessionKey) {
        let Some(root) = self.root(key) else { return };
        let mut at = key.clone();
        while let Some(session) = self.sessions.get_mut(&at)
            && let Some(into) = session.went_into.replace(root.session.clone())
            && into != root.session
        {
            at.session = into;
        }
    }

    /// What a session counts as having seen: its own label, joined with that of the session that
    /// it went into.
    pub(crate) fn effective(&self, key: &SessionKey) -> Label {
        let own = |key: &SessionKey| {
            let session = self.sessions.get(key);
            session.map_or_else(|| self.opening(&key.role), |session| session.label)
        };
        self.root(key)
            .map_or(own(key), |root| own(key).join(own(&root)))
    }

    /// Where a role's sessions begin.
    fn opening(&self, role: &RoleName) -> Label {
        self.accounts
            .get(role)
            .map_or(Label::BOTTOM, |account| account.opening)
    }

    /// The label that decides: the session's or the role's.
    pub(crate) fn deciding(&self, key: &SessionKey) -> Label {
        match self.scope(&key.role) {
            LabelScope::Session => self.effective(key),
            LabelScope::Role | LabelScope::None => self
                .accounts
                .get(&key.role)
                .map_or(Label::BOTTOM, |account| account.label),
        }
    }

    /// The last record that the deciding label and the rules depend on.
    pub(crate) fn label_record(&self, key: &SessionKey) -> Option<RecordId> {
        let own = self.sessions.get(key).and_then(|s| s.changed);
        let root = self
            .root(key)
            .and_then(|root| self.sessions.get(&root)?.changed);
        let role = self
            .accounts
            .get(&key.role)
            .and_then(|account| account.changed);
        own.max(root).max(role).max(self.rules_changed)
    }

    /// Joins `label` into what a session, the session that it went into, and the role have seen.
    pub(crate) fn raise(
        &mut self,
        key: &SessionKey,
        label: Label,
        call: Option<(CallId, &ToolName)>,
    ) {
        self.compress(key);
        let mut rose = self.raise_own(key, label, call);
        if let Some(root) = self.root(key) {
            rose |= self.raise_own(&root, label, None);
        }
        if rose {
            self.recheck.insert(key.role.clone());
            self.tools_changed.insert(key.role.clone());
        }
    }

    /// Joins `label` into what one session and its role have seen.
    pub(crate) fn raise_own(
        &mut self,
        key: &SessionKey,
        label: Label,
        call: Option<(CallId, &ToolName)>,
    ) -> bool {
        let Some(session) = self.sessions.get(key) else {
            return false;
        };
        let account = self.accounts.get(&key.role);
        let role_label = account.map_or(Label::BOTTOM, |account| account.label);
        if label.is_within(session.label) && label.is_within(role_label) {
            return false;
        }
        let seen = label;
        let label = session.label.join(seen);
        let record = self.record(Record::Raised {
            at: self.now,
            session: key.clone(),
            label,
            seen,
            call: call.map(|(call, _)| call),
            tool: call.map(|(_, tool)| tool.clone()),
        });
        let raise = call.map(|(call, tool)| Raise {
            call,
            tool: tool.clone(),
            label,
        });
        self.log(Level::Info, "label_raised", |log| {
            log.role = Some(key.role.clone());
            log.session = Some(key.session.clone());
            log.call = call.map(|(call, _)| call);
            log.tool = call.map(|(_, tool)| tool.clone());
            log.reason = Some(label.class.as_str());
        });
        let account = self.account(&key.role);
        account.label = account.label.join(seen);
        account.changed = record;
        account.raises.extend(raise.clone());
        cap(&mut account.raises);
        if let Some(session) = self.sessions.get_mut(key) {
            session.label = label;
            session.changed = record;
            session.raises.extend(raise);
            cap(&mut session.raises);
        }
        true
    }

    /// The session for a request of `uid`: made, or opened again, where it is not there.
    pub(crate) fn open_session(&mut self, key: &SessionKey, uid: u32) -> Result<(), NoSession> {
        let quota = self.quota(&key.role);
        let usage = self.usage(&key.role);
        let now = self.now;
        match self.sessions.get_mut(key) {
            Some(session) if session.owner != uid => return Err(NoSession::Foreign),
            Some(session) if !session.closed => session.last_used = now,
            held => {
                if usage.sessions >= quota.sessions {
                    return Err(NoSession::Busy("sessions"));
                }
                if held.is_none() && usage.closed_sessions >= quota.closed_sessions {
                    return Err(NoSession::Busy("closed_sessions"));
                }
                self.record(Record::Opened {
                    at: now,
                    session: key.clone(),
                    owner: uid,
                });
                self.apply_opened(key, uid);
            }
        }
        self.compress(key);
        Ok(())
    }

    /// Makes a session, or opens a closed one again.
    pub(crate) fn apply_opened(&mut self, key: &SessionKey, owner: u32) {
        let now = self.now;
        let opening = self.opening(&key.role);
        let closed = match self.sessions.get_mut(key) {
            Some(session) => {
                session.last_used = now;
                std::mem::replace(&mut session.closed, false)
            }
            None => {
                self.sessions
                    .insert(key.clone(), Session::new(owner, opening, now));
                self.account(&key.role).usage.sessions += 1;
                false
            }
        };
        if closed {
            let usage = &mut self.account(&key.role).usage;
            usage.closed_sessions -= 1;
            usage.sessions += 1;
        }
        let at = now.plus(self.config.settings.session_ttl);
        self.timers.set_once(Timer::Session(key.clone()), at);
    }

    pub(crate) fn agent_joins(&mut self, conn: ConnId, id: u64, join: JoinSession) {
        let Some(peer) = self.conns.get(&conn).map(|c| c.peer.clone()) else {
            return;
        };
        let by = By {
            role: peer.role.clone(),
            uid: peer.uid,
        };
        match self.join(&peer.role, &join, by, Some(peer.uid)) {
            Ok((label, after)) => {
                self.reply_after(conn, after, id, &Message::Joined(Joined { label }));
                self.tell_joined(&peer.role, &join, label, after, Some(conn));
            }
            Err(JoinError::Busy(quota)) => self.busy(conn, id, quota),
            Err(JoinError::Refused(why)) => self.bad_message(conn, id, why),
        }
    }

    /// Joins the label of `from` into `into`. With `uid`, both must belong to it.
    pub(crate) fn join(
        &mut self,
        role: &RoleName,
        join: &JoinSession,
        by: By,
        uid: Option<u32>,
    ) -> Result<(Label, Option<RecordId>), JoinError> {
        let key = |session: &SessionId| SessionKey {
            role: role.clone(),
            session: session.clone(),
        };
        let (from, into) = (key(&join.from), key(&join.into));
        if from == into {
            return Err(JoinError::Refused(
                "msg.body.into: is the same session as from",
            ));
        }
        let Some(session) = self.sessions.get(&from) else {
            return Err(JoinError::Refused(
                "msg.body.from: there is no such session",
            ));
        };
        let owner = session.owner;
        if uid.is_some_and(|uid| uid != owner) {
            return Err(JoinError::Refused("msg.body.from: belongs to another uid"));
        }
        if join.close {
            if session.went_into.as_ref().is_some_and(|s| *s != join.into) && session.in_flight > 0
            {
                return Err(JoinError::Refused(
                    "msg.body.from: went into another session, and results are owed to it still",
                ));
            }
            let usage = self.usage(role);
            if !session.closed && usage.closed_sessions >= self.quota(role).closed_sessions {
                return Err(JoinError::Busy("closed_sessions"));
            }
        }
        self.open_session(&into, uid.unwrap_or(owner))
            .map_err(|no| match no {
                NoSession::Foreign => JoinError::Refused("msg.body.into: belongs to another uid"),
                NoSession::Busy(quota) => JoinError::Busy(quota),
            })?;
        let record = self.record(Record::Joined {
            at: self.now,
            role: role.clone(),
            from: join.from.clone(),
            into: join.into.clone(),
            close: join.close,
            by,
        });
        self.apply_join(&from, &into, join.close);
        if let Some(session) = self.sessions.get_mut(&into) {
            session.changed = session.changed.max(record);
        }
        if join.close {
            self.shrink(&from);
        }
        Ok((self.effective(&into), self.label_record(&into)))
    }

    /// What a join does to labels, standing approvals and the chain of closed sessions; also when
    /// it is read back from its record.
    pub(crate) fn apply_join(&mut self, from: &SessionKey, into: &SessionKey, close: bool) {
        let label = self.effective(from);
        self.raise(into, label, None);
        if !close {
            return;
        }
        // What hangs on `from` came there by an earlier closing, and went on to where that led. Then
        // shortening a chain never changes what it says, and a restart finds the same.
        let gone = self.sessions.get(from).and_then(|s| s.went_into.clone());
        if gone.as_ref().is_some_and(|gone| *gone != into.session) {
            let hangs = |s: &Session| s.went_into.as_ref() == Some(&from.session);
            let of_role = self
                .sessions
                .iter_mut()
                .filter(|(k, _)| k.role == from.role);
            for (_, session) in of_role.filter(|(_, s)| hangs(s)) {
                session.went_into.clone_from(&gone);
            }
        }
        // A second closing: what the first one carried stays with the name.
        if let Some(session) = self.sessions.get_mut(from) {
            session.label = label;
            session.went_into = None;
        }
        // `into` may itself have gone into `from`: then it is the one that goes on.
        if self.root(into).as_ref() == Some(from)
            && let Some(session) = self.sessions.get_mut(into)
        {
            session.went_into = None;
        }
        let standing = match self.sessions.get_mut(from) {
            Some(session) => {
                session.went_into = Some(into.session.clone());
                std::mem::take(&mut session.standing)
            }
            None => return,
        };
        for (approval, held) in standing {
            self.timers
                .cancel(&Timer::Standing(from.clone(), approval.clone()));
            self.timers.set(
                Timer::Standing(into.clone(), approval.clone()),
                held.expires,
            );
            if let Some(session) = self.sessions.get_mut(into) {
                session.standing.insert(approval, held);
            }
        }
        self.mark_closed(from);
    }

    pub(crate) fn tell_joined(
        &mut self,
        role: &RoleName,
        join: &JoinSession,
        label: Label,
        after: Option<RecordId>,
        except: Option<ConnId>,
    ) {
        let JoinSession { from, into, close } = join.clone();
        let told = Message::SessionJoined(SessionJoined {
            from,
            into,
            close,
            label,
        });
        let msg = proto::encode_message(&told);
        let others: Vec<ConnId> = self
            .conns
            .iter()
            .filter(|(id, c)| c.peer.role == *role && c.features.is_some() && Some(**id) != except)
            .map(|(id, _)| *id)
            .collect();
        for id in others {
            self.send(id, after, 0, true, msg.clone());
        }
    }

    pub(crate) fn mark_closed(&mut self, key: &SessionKey) {
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        if !std::mem::replace(&mut session.closed, true) {
            let usage = &mut self.account(&key.role).usage;
            usage.sessions -= 1;
            usage.closed_sessions += 1;
        }
        self.timers.cancel(&Timer::Session(key.clone()));
    }

    /// Closes a session. `false`: the quota of closed ones is full.
    pub(crate) fn close_session(&mut self, key: &SessionKey, by: Option<By>) -> bool {
        let full = self.usage(&key.role).closed_sessions >= self.quota(&key.role).closed_sessions;
        let Some(session) = self.sessions.get(key) else {
            return true;
        };
        if session.closed {
            return true;
        }
        if full {
            return false;
        }
        self.record(Record::Closed {
            at: self.now,
            session: key.clone(),
            by,
        });
        self.mark_closed(key);
        self.shrink(key);
        true
    }

    /// Shrinks a closed session of which no call is in flight to its name, owner, label, the
    /// session that it went into and its watermark.
    pub(crate) fn shrink(&mut self, key: &SessionKey) {
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        if !session.closed || session.in_flight > 0 {
            return;
        }
        session.watermark = session.watermark.max(session.highest);
        session.refusals.clear();
        let standing: Vec<_> = session.standing.keys().cloned().collect();
        let covers: Vec<_> = session.covers.keys().copied().collect();
        let calls: Vec<_> = session.calls.keys().copied().collect();
        for approval in standing {
            self.drop_standing(key, &approval);
        }
        for call in covers {
            self.drop_cover(&CallKey {
                session: key.clone(),
                call,
            });
        }
        for call in calls {
            self.evict(&CallKey {
                session: key.clone(),
                call,
            });
        }
    }

    /// A session may have been idle for `session_ttl`.
    pub(crate) fn session_due(&mut self, key: &SessionKey) {
        let ttl = self.config.settings.session_ttl;
        let Some(session) = self.sessions.get(key) else {
            return;
        };
        let idle = session.in_flight == 0 && session.last_used.plus(ttl) <= self.now;
        if !idle || !self.close_session(key, None) {
            let again = session_deadline(self, key, ttl);
            self.timers.set(Timer::Session(key.clone()), again);
        }
    }

    /// Whether a call id is one of those that were evicted.
    pub(crate) fn is_evicted(&self, key: &CallKey) -> bool {
        self.sessions.get(&key.session).is_some_and(|session| {
            !session.calls.contains_key(&key.call)
                && session
                    .watermark
                    .is_some_and(|watermark| key.call <= watermark)
        })
    }

    /// Keeps an answer no longer.
    pub(crate) fn evict(&mut self, key: &CallKey) {
        let Some(session) = self.sessions.get_mut(&key.session) else {
            return;
        };
        let kept = match session.calls.get(&key.call).map(|call| &call.state) {
            Some(State::Answered(stored)) => stored.msg.len() as u64 + CALL_OVERHEAD,
            Some(State::Interrupted) => 0,
            Some(State::New | State::Asked(_) | State::Claimed { .. } | State::Dispatched(_))
            | None => return,
        };
        let Some(call) = session.calls.remove(&key.call) else {
            return;
        };
        session.watermark = session.watermark.max(Some(key.call));
        self.timers.cancel(&Timer::Answer(key.clone()));
        if let State::Answered(stored) = &call.state {
            for waiter in &call.waiters {
                self.leave_answer(key, waiter, stored);
            }
        }
        self.drop_cover(key);
        let account = self.account(&key.session.role);
        account.usage.stored_bytes -= kept;
        if call.effects != proto::Effects::Read {
            self.record(Record::Evicted {
                at: self.now,
                call: key.clone(),
            });
        }
    }

    pub(crate) fn push_tools_changed(&mut self, role: &RoleName) {
        let told: Vec<ConnId> = self
            .conns
            .iter()
            .filter(|(_, conn)| {
                conn.kind == proto::RoleKind::Agent
                    && conn.peer.role == *role
                    && conn.has(Feature::Tools)
            })
            .map(|(id, _)| *id)
            .collect();
        let msg = proto::encode_message(&Message::ToolsChanged(proto::ToolsChanged {}));
        for id in told {
            self.send_or_owe(id, &msg);
        }
    }
}

fn session_deadline(engine: &Engine, key: &SessionKey, ttl: u64) -> proto::Timestamp {
    let used = engine
        .sessions
        .get(key)
        .map_or(engine.now, |session| session.last_used);
    used.plus(ttl).max(engine.now.plus(1000))
}

fn cap(raises: &mut Vec<Raise>) {
    if raises.len() > MAX_RAISES {
        raises.remove(0);
    }
}

/// Why a join was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JoinError {
    Busy(&'static str),
    Refused(&'static str),
}
