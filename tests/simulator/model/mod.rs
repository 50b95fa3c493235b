//! The model: what must hold, kept from what crossed the wire and from the records, never from
//! inside the engine. It hears every event before the engine does and sees every effect after.

mod agents;
mod answers;
mod approvals;
mod approvers;
mod covers;
mod decisions;
mod endings;
mod labels;
mod quotas;
mod rate;
mod records;
mod runners;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::{ConnId, RecordId, SessionKey};
use policy::{Config, Ruleset};
use proto::{
    ApprovalId, CallId, DecodeError, Decoded, Envelope, GrantId, Label, LabelScope, Message,
    RoleKind, RoleName, Timestamp, ToolName, ToolSpec,
};

pub(crate) use answers::Call;
pub(crate) use approvals::{Approval, Standing};
pub(crate) use labels::{Labels, Proof};
pub(crate) use wire::{Conn, Heard, What};

use crate::coverage::Coverage;
use crate::store::Store;

/// Everything that the invariants need to know.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) now: Timestamp,
    pub(crate) config: Arc<Config>,
    pub(crate) ruleset: Ruleset,
    pub(crate) conns: BTreeMap<ConnId, Conn>,
    pub(crate) labels: Labels,
    pub(crate) sessions: BTreeMap<SessionKey, Session>,
    pub(crate) calls: BTreeMap<engine::CallKey, Call>,
    pub(crate) approvals: BTreeMap<ApprovalId, Approval>,
    pub(crate) standings: BTreeMap<ApprovalId, Standing>,
    /// Uses spent, with the record that spent them.
    pub(crate) spent: Vec<(RecordId, GrantId)>,
    /// Grants of run time, with their text, and where they were revoked.
    pub(crate) granted: Vec<(RecordId, GrantId, String)>,
    pub(crate) revoked: Vec<(RecordId, GrantId)>,
    pub(crate) pins: Vec<(RecordId, RoleName, ToolSpec)>,
    /// Dispatches recorded in this batch, which their send must follow.
    pub(crate) recorded: BTreeMap<engine::CallKey, decisions::Recorded>,
    /// Sends that wait for their record.
    pub(crate) waiting: BTreeSet<u64>,
    /// Of those, the ones that carry a call to a runner.
    pub(crate) reaching: BTreeMap<u64, engine::CallKey>,
    pub(crate) draining: bool,
    /// As many records are durable as the engine was told since it was made.
    pub(crate) stored: u64,
    /// Requests that were told that they are over a role's rate, and that no record counts yet.
    pub(crate) over_rate: BTreeMap<RoleName, u64>,
    /// A copy was put back once.
    pub(crate) put_back: bool,
    pub(crate) coverage: Coverage,
}

/// A session, as the wire shows it.
#[derive(Debug, Default)]
pub(crate) struct Session {
    /// Uids that used it; it belongs to one of them.
    pub(crate) uids: BTreeSet<u32>,
    /// How often it ended; calls of before may be unknown afterwards.
    pub(crate) closes: u64,
    /// Calls up to this one may be unknown.
    pub(crate) forgotten: u64,
}

impl Model {
    pub(crate) fn new(config: Arc<Config>) -> Self {
        Self {
            now: Timestamp::default(),
            ruleset: config.ruleset.clone(),
            config,
            conns: BTreeMap::new(),
            labels: Labels::default(),
            sessions: BTreeMap::new(),
            calls: BTreeMap::new(),
            approvals: BTreeMap::new(),
            standings: BTreeMap::new(),
            spent: Vec::new(),
            granted: Vec::new(),
            revoked: Vec::new(),
            pins: Vec::new(),
            recorded: BTreeMap::new(),
            waiting: BTreeSet::new(),
            reaching: BTreeMap::new(),
            draining: false,
            stored: 0,
            over_rate: BTreeMap::new(),
            put_back: false,
            coverage: Coverage::default(),
        }
    }

    pub(crate) fn connected(&mut self, conn: ConnId, role: &RoleName, uid: u32) {
        let kind = self.config.roles[role].kind;
        self.conns.insert(conn, Conn::new(role.clone(), kind, uid));
    }

    /// The peer is gone, or the engine closed it: nothing may go to it any more.
    pub(crate) fn closed(&mut self, conn: ConnId) {
        if let Some(gone) = self.conns.remove(&conn)
            && !gone.runs.is_empty()
        {
            self.coverage.runners_lost_midcall += 1;
        }
    }

    /// A frame is about to reach the engine.
    pub(crate) fn received(&mut self, conn: ConnId, frame: &Result<Decoded, DecodeError>) {
        self.coverage.frames_received += 1;
        let Some(state) = self.conns.get_mut(&conn) else {
            return;
        };
        self.coverage.garbage_frames += u64::from(frame.is_err());
        let heard = state.hear(frame);
        match (state.kind, frame, heard) {
            (RoleKind::Agent, Ok(decoded), Heard::Request) => self.agent_asks(conn, decoded),
            (RoleKind::Approver, Ok(decoded), Heard::Request) => {
                self.approver_answers(conn, decoded);
            }
            (RoleKind::Runner, Ok(decoded), Heard::Request) => {
                self.runner_offers(conn, decoded);
            }
            (RoleKind::Runner, frame, Heard::Reply(id)) => self.runner_says(conn, id, frame),
            (
                RoleKind::Agent | RoleKind::Approver | RoleKind::Operator | RoleKind::Runner,
                _,
                Heard::Nothing | Heard::Request | Heard::Reply(_),
            ) => {}
        }
    }

    /// The engine sends something.
    pub(crate) fn sent(
        &mut self,
        conn: ConnId,
        envelope: &Envelope,
        after: Option<RecordId>,
        ticket: u64,
    ) {
        self.waiting.insert(ticket);
        let state = &self.conns[&conn];
        if state.kind == RoleKind::Runner
            && matches!(envelope.msg, Message::ToolRequest(_) | Message::Cancel(_))
        {
            return self.runner_is_asked(conn, envelope, after, ticket);
        }
        if envelope.id == 0 {
            return self.pushed(conn, envelope, after, ticket);
        }
        let state = self.conns.get_mut(&conn).expect("it was there above");
        let Some(what) = state.answer(envelope.id, envelope.r#final) else {
            let finished = state.finished.contains(&envelope.id);
            let which = if finished { "answered" } else { "never open" };
            panic!(
                "invariant 1: a frame under id {}, {which}, to {conn:?}",
                envelope.id
            );
        };
        self.may_be_over_rate(conn, &envelope.msg);
        self.answered(conn, &what, envelope, after, ticket);
        if envelope.r#final
            && let Some(state) = self.conns.get_mut(&conn)
        {
            state.open.remove(&envelope.id);
        }
    }

    fn answered(
        &mut self,
        conn: ConnId,
        what: &What,
        envelope: &Envelope,
        after: Option<RecordId>,
        ticket: u64,
    ) {
        if let Message::Error(error) = &envelope.msg {
            assert!(envelope.r#final, "invariant 1: an error ends its request");
            self.coverage.bad_messages += 1;
            return self.refused(conn, what, envelope.id, error);
        }
        if let Message::Welcome(welcome) = &envelope.msg
            && let Some(state) = self.conns.get_mut(&conn)
        {
            assert_eq!(
                welcome.role, state.role,
                "invariant 6: another role's welcome"
            );
            state.features = welcome.features.clone();
            return;
        }
        match what {
            What::Call { key, fingerprint } => {
                self.agent_hears(conn, key, Some(*fingerprint), envelope, ticket);
            }
            What::Cancel { key } => self.agent_hears(conn, key, None, envelope, ticket),
            What::Join { from, into, close } => {
                self.agent_joined(from, into, *close, envelope, ticket);
            }
            What::List { session } => self.agent_lists(session, envelope),
            What::Control(control) => self.operator_hears(control, envelope, ticket),
            What::Reply(reply) => self.approver_hears(conn, reply, envelope),
            What::Other => self.others_hear(conn, envelope, after),
        }
    }

    /// Something under id 0.
    fn pushed(&mut self, conn: ConnId, envelope: &Envelope, after: Option<RecordId>, ticket: u64) {
        assert!(envelope.r#final, "a push is one frame: {envelope:?}");
        match &envelope.msg {
            Message::Error(_) => {
                let state = self.conns.get_mut(&conn).expect("checked by the shell");
                let owed = [&mut state.owed_under_zero, &mut state.tolerated_under_zero];
                let Some(owed) = owed.into_iter().find(|owed| **owed > 0) else {
                    panic!("invariant 1: an error under id 0 that nobody is owed");
                };
                *owed -= 1;
            }
            Message::ToolsChanged(_) => self.coverage.tools_changed += 1,
            Message::SessionJoined(join) => self.agent_is_told_of_a_join(conn, join, ticket),
            Message::ApprovalRequest(request) => self.approver_is_shown(conn, request, after, true),
            Message::ApprovalSettled(settled) => self.approver_is_told(conn, settled),
            Message::CallSettled(ended) => self.approver_hears_of_the_call(conn, ended),
            _other => panic!("invariant 1: {} under id 0", envelope.msg.kind()),
        }
    }

    /// Which sends were released: what they said can be held against the engine after a crash.
    pub(crate) fn released(&mut self, tickets: &[u64]) {
        for ticket in tickets {
            self.waiting.remove(ticket);
            self.runner_was_reached(*ticket);
        }
    }

    /// All connections are gone, and with them every record that was not durable.
    pub(crate) fn crashed(&mut self, store: &Store) {
        self.coverage.crashes += 1;
        self.coverage.crashes_losing_records += u64::from(store.pending() > 0);
        let mut running = self.conns.values().map(|conn| conn.runs.len());
        self.coverage.crashes_in_a_dispatch += u64::from(running.any(|runs| runs > 0));
        self.conns.clear();
        self.recorded.clear();
        self.over_rate.clear();
        self.stored = 0;
        self.reaching.clear();
        self.draining = false;
        let waiting = std::mem::take(&mut self.waiting);
        self.labels.crash(|proof| match proof {
            Proof::Sent(ticket) => !waiting.contains(&ticket),
            Proof::Recorded(id) => store.is_durable(id),
            Proof::Anyway => true,
        });
        self.spent.retain(|(id, _)| store.is_durable(*id));
        self.granted.retain(|(id, _, _)| store.is_durable(*id));
        self.revoked.retain(|(id, _)| store.is_durable(*id));
        self.pins.retain(|(id, _, _)| store.is_durable(*id));
        self.approvals_crash(store);
        for call in self.calls.values_mut() {
            call.crash(&waiting, store);
        }
        self.compile();
    }

    /// What the restart finds is a copy: of every session of it nothing is known any more.
    pub(crate) fn put_back(&mut self) {
        self.coverage.copies_put_back += 1;
        self.put_back = true;
        self.labels.put_back(self.config.roles.keys());
        for session in self.sessions.values_mut() {
            session.closes += 1;
            session.forgotten = u64::MAX;
        }
        self.standings.clear();
        for approval in self.approvals.values_mut() {
            approval.void = true;
        }
    }

    /// A configuration holds from now on.
    pub(crate) fn configured(&mut self, config: &Arc<Config>) {
        self.config = config.clone();
        self.compile();
    }

    /// The configuration's ruleset, and what an operator added at run time.
    fn compile(&mut self) {
        let mut ruleset = self.config.ruleset.clone();
        for (_, grant, toml) in &self.granted {
            if self.revoked.iter().any(|(_, revoked)| revoked == grant) {
                continue;
            }
            if let Ok((with, _)) = ruleset.with_grant(toml) {
                ruleset = with;
            }
        }
        self.ruleset = ruleset;
    }

    pub(crate) fn scope(&self, role: &RoleName) -> LabelScope {
        self.config
            .roles
            .get(role)
            .map_or(LabelScope::Session, |role| role.label_scope)
    }

    pub(crate) fn session(&mut self, key: &SessionKey) -> &mut Session {
        self.sessions.entry(key.clone()).or_default()
    }

    /// The pinned definition of a tool, if there is one.
    pub(crate) fn pinned(&self, runner: &RoleName, tool: &ToolName) -> Option<&ToolSpec> {
        let mut pins = self.pins.iter().rev();
        pins.find(|(_, role, spec)| role == runner && spec.name == *tool)
            .map(|(_, _, spec)| spec)
    }

    /// What a session is let see with a send: it raises that session, and whatever it went into
    /// while the call was owed to it.
    pub(crate) fn sees(&mut self, key: &engine::CallKey, label: Label, ticket: u64) {
        let asked_before = self.calls.get(key).map_or(0, |call| call.closes);
        self.labels.released(&key.session, label, ticket);
        if self.session(&key.session).closes > asked_before
            && let Some(heir) = self.labels.heir(&key.session)
        {
            self.labels.released(&heir, label, ticket);
        }
    }

    /// Whether a call's outcome may be said to be unknown because it was forgotten: its session
    /// ended, an answer of a higher number was evicted, or one was old enough to be.
    pub(crate) fn is_forgotten(&self, session: &SessionKey, CallId(call): CallId) -> bool {
        let recorded = self
            .sessions
            .get(session)
            .is_some_and(|session| call <= session.forgotten);
        // Evictions of `read` answers are not recorded.
        let quota = self
            .config
            .roles
            .get(&session.role)
            .map(|role| role.quota.stored_bytes);
        let first = engine::CallKey {
            session: session.clone(),
            call: CallId(call),
        };
        let old = self
            .calls
            .range(first..)
            .take_while(|(key, _)| key.session == *session)
            .any(|(_, later)| {
                later
                    .held_since
                    .is_some_and(|at| self.now.since(at) >= self.config.settings.answer_ttl)
            });
        recorded || old || quota.is_none_or(|quota| quota < 1 << 20)
    }
}
