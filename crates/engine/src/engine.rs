//! The engine's face: events in, effects out, and what is due when.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use policy::{Config, Ruleset};
use proto::{ApprovalId, Digest, GrantId, LabelScope, RoleName, Timestamp, ToolName, ToolSpec};

use crate::account::Account;
use crate::conn::Conn;
use crate::effect::{Effect, Effects, Level, Log};
use crate::event::{ConnId, Event, RequestId};
use crate::record::{By, CallKey, Record, RecordId, SessionKey};
use crate::state::{Approval, Call, Session, SettledApproval};
use crate::tail::Tail;
use crate::timers::{Timer, Timers};
use crate::turns::Turns;
use crate::upshot::Upshot;

/// The one state machine. See the crate's documentation.
#[derive(Debug)]
pub struct Engine {
    pub(crate) config: Arc<Config>,
    /// The configuration's, and what operators added.
    pub(crate) ruleset: Arc<Ruleset>,
    /// How often it was replaced.
    pub(crate) replaced: u64,
    /// What operators added, as they wrote it.
    pub(crate) runtime_grants: Vec<(GrantId, String)>,
    /// Grows whenever the ruleset changes.
    pub(crate) generation: u64,
    /// The last record that the ruleset or a pin depends on.
    pub(crate) rules_changed: Option<RecordId>,
    pub(crate) now: Timestamp,
    pub(crate) started: Timestamp,
    pub(crate) last_record: u64,
    /// How many records are durable, and the head over them.
    pub(crate) stored: (u64, Digest),
    pub(crate) nonce: u64,
    pub(crate) accounts: BTreeMap<RoleName, Account>,
    pub(crate) conns: BTreeMap<ConnId, Conn>,
    pub(crate) sessions: BTreeMap<SessionKey, Session>,
    pub(crate) approvals: BTreeMap<ApprovalId, Approval>,
    pub(crate) settled: VecDeque<SettledApproval>,
    /// Calls that were approved and have ended, oldest first.
    pub(crate) upshots: VecDeque<Upshot>,
    /// Operators' connections that are told what happens.
    pub(crate) tails: BTreeMap<ConnId, Tail>,
    /// Claimed calls, by runner role.
    pub(crate) turns: BTreeMap<RoleName, Turns>,
    /// Accepted definitions.
    pub(crate) pins: BTreeMap<(RoleName, ToolName), ToolSpec>,
    /// Uses spent, by grant.
    pub(crate) uses: BTreeMap<GrantId, u64>,
    pub(crate) timers: Timers,
    /// Who asked for the reloads that the shell has not answered yet: their connections may be gone by then.
    pub(crate) reloads: BTreeMap<RequestId, By>,
    pub(crate) draining: Option<Timestamp>,
    pub(crate) drained: bool,
    /// Calls in flight that a drain waits for: claimed and dispatched ones.
    pub(crate) running: u64,
    /// Work that the present event leaves: asked calls to judge again, by role.
    pub(crate) recheck: BTreeSet<RoleName>,
    /// Work that the present event leaves: runner roles whose calls may go on.
    pub(crate) routes: BTreeSet<RoleName>,
    /// Agent roles whose answer to `list_tools` may have changed.
    pub(crate) tools_changed: BTreeSet<RoleName>,
    /// Records are being read back: nothing is recorded or logged anew.
    pub(crate) replaying: bool,
    pub(crate) out: Effects,
}

/// What a role uses of its quotas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Open connections.
    pub connections: u64,
    /// Calls that are not answered yet.
    pub in_flight: u64,
    /// Sessions that are not closed or shrunk.
    pub sessions: u64,
    /// Sessions that are.
    pub closed_sessions: u64,
    /// Approvals of the role's calls: pending, granted and not spent, standing.
    pub approvals: u64,
    /// Bytes that wait for or from the role.
    pub waiting_bytes: u64,
    /// Bytes of answers: kept ones, and parts of those to come.
    pub stored_bytes: u64,
}

impl Engine {
    /// An engine with nothing in it.
    pub fn new(config: Arc<Config>, now: Timestamp) -> Self {
        Self {
            ruleset: Arc::new(config.ruleset.clone()),
            replaced: 0,
            config,
            runtime_grants: Vec::new(),
            generation: 1,
            rules_changed: None,
            now,
            started: now,
            last_record: 0,
            stored: (0, Digest::from_bytes([0; 32])),
            nonce: seed(now),
            accounts: BTreeMap::new(),
            conns: BTreeMap::new(),
            sessions: BTreeMap::new(),
            approvals: BTreeMap::new(),
            settled: VecDeque::new(),
            upshots: VecDeque::new(),
            tails: BTreeMap::new(),
            turns: BTreeMap::new(),
            pins: BTreeMap::new(),
            uses: BTreeMap::new(),
            timers: Timers::default(),
            reloads: BTreeMap::new(),
            draining: None,
            drained: false,
            running: 0,
            recheck: BTreeSet::new(),
            routes: BTreeSet::new(),
            tools_changed: BTreeSet::new(),
            replaying: false,
            out: Vec::new(),
        }
    }

    /// The configuration that counts.
    pub fn config(&self) -> &Arc<Config> {
        &self.config
    }

    /// Takes one event. `now` may not fall; if it does, the largest so far counts.
    pub fn handle(&mut self, now: Timestamp, event: Event, effects: &mut Effects) {
        self.enter(now, effects);
        // After a drain what is owed still leaves; nothing new is taken.
        if !self.drained || matches!(event, Event::Written { .. } | Event::Closed { .. }) {
            self.event(event);
            self.settle_work();
        }
        self.leave(effects);
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Connected { conn, peer } => self.connected(conn, peer),
            Event::Received { conn, frame, nonce } => {
                self.nonce = nonce;
                self.received(conn, frame);
            }
            Event::Written { conn, bytes } => self.written(conn, bytes),
            Event::Closed { conn } => self.closed(conn),
            Event::Configured { config, request } => self.configured(config, request),
            Event::ConfigRefused { request, why } => self.config_refused(request, &why),
            Event::Snapshot(snapshot) => self.note_snapshot(snapshot),
            Event::Stored { records, head } => self.stored = (records, head),
            Event::Drain => {
                self.begin_drain(None);
            }
        }
    }

    /// When `handle_timeout` wants to be called next.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        self.timers.next().filter(|_| !self.drained)
    }

    /// Does everything that is due at `now`.
    pub fn handle_timeout(&mut self, now: Timestamp, effects: &mut Effects) {
        self.enter(now, effects);
        while !self.drained
            && let Some(timer) = self.timers.pop(self.now)
        {
            self.due(timer);
            self.settle_work();
        }
        self.leave(effects);
    }

    fn due(&mut self, timer: Timer) {
        match timer {
            Timer::Drain => self.end_drain(),
            Timer::Call(key) => self.call_due(&key),
            Timer::Approval(approval) => self.approval_expired(&approval),
            Timer::Cover(key) => self.cover_due(&key),
            Timer::Standing(session, approval) => self.drop_standing(&session, &approval),
            Timer::Answer(key) => self.evict(&key),
            Timer::Session(key) => self.session_due(&key),
            Timer::Refused(role) => self.record_refused(&role),
            Timer::Write(conn) => self.stalled(conn),
            Timer::Slot(conn, wire) => self.free_slot(conn, wire),
        }
    }

    /// Whether the shell may go on reading from a connection: false while more waits for it than
    /// it takes. It becomes true again only by `Written` (or the connection closes).
    pub fn may_read(&self, conn: ConnId) -> bool {
        self.backlog_admits(conn)
    }

    /// Whether a drain has begun: no new calls are taken.
    pub fn is_draining(&self) -> bool {
        self.draining.is_some()
    }

    /// What a role uses of its quotas.
    pub fn usage(&self, role: &RoleName) -> Usage {
        self.accounts
            .get(role)
            .map(|account| account.usage)
            .unwrap_or_default()
    }

    pub(crate) fn enter(&mut self, now: Timestamp, effects: &mut Effects) {
        self.now = self.now.max(now);
        std::mem::swap(&mut self.out, effects);
    }

    pub(crate) fn leave(&mut self, effects: &mut Effects) {
        std::mem::swap(&mut self.out, effects);
    }

    /// Does what the present event left to do, until nothing is left.
    pub(crate) fn settle_work(&mut self) {
        loop {
            if let Some(role) = self.recheck.pop_first() {
                self.judge_asked_again(&role);
            } else if let Some(role) = self.routes.pop_first() {
                if !self.drained {
                    self.dispatch_waiting(&role);
                }
            } else {
                break;
            }
        }
        while let Some(role) = self.tools_changed.pop_first() {
            self.push_tools_changed(&role);
        }
        if self.draining.is_some() && self.running == 0 && self.all_is_sent() {
            self.end_drain();
        }
    }

    pub(crate) fn route(&mut self, runner: RoleName) {
        self.routes.insert(runner);
    }

    pub(crate) fn route_all(&mut self) {
        self.routes.extend(self.turns.keys().cloned());
    }

    pub(crate) fn account(&mut self, role: &RoleName) -> &mut Account {
        self.accounts.entry(role.clone()).or_default()
    }

    pub(crate) fn quota(&self, role: &RoleName) -> policy::Quota {
        const NOTHING: policy::Quota = policy::Quota {
            connections: 0,
            in_flight: 0,
            sessions: 0,
            closed_sessions: 0,
            approvals: 0,
            waiting_bytes: 0,
            stored_bytes: 0,
            arguments_bytes: 0,
            requests_per_second: 0,
        };
        self.config
            .roles
            .get(role)
            .map_or(NOTHING, |role| role.quota)
    }

    pub(crate) fn scope(&self, role: &RoleName) -> LabelScope {
        self.config
            .roles
            .get(role)
            .map_or(LabelScope::Role, |role| role.label_scope)
    }

    pub(crate) fn call(&self, key: &CallKey) -> Option<&Call> {
        self.sessions.get(&key.session)?.calls.get(&key.call)
    }

    pub(crate) fn call_mut(&mut self, key: &CallKey) -> Option<&mut Call> {
        self.sessions
            .get_mut(&key.session)?
            .calls
            .get_mut(&key.call)
    }

    pub(crate) fn record(&mut self, record: Record) -> Option<RecordId> {
        if self.replaying {
            return None;
        }
        self.last_record += 1;
        let id = RecordId(self.last_record);
        self.out.push(Effect::Record { id, record });
        Some(id)
    }

    /// A name for an approval, from the event's random number.
    pub(crate) fn fresh_approval(&mut self) -> Option<ApprovalId> {
        const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
        loop {
            let name: String = (0..8)
                .map(|i| char::from(LETTERS[usize::from((self.nonce >> (5 * i)) as u8 & 31)]))
                .collect();
            self.nonce = self.nonce.wrapping_add(1);
            let id = ApprovalId::new(name).ok()?;
            if !self.approvals.contains_key(&id) {
                return Some(id);
            }
        }
    }

    pub(crate) fn log(&mut self, level: Level, event: &'static str, fill: impl FnOnce(&mut Log)) {
        if self.replaying {
            return;
        }
        let mut log = Log {
            level,
            event,
            role: None,
            session: None,
            call: None,
            tool: None,
            decision: None,
            reason: None,
            grant: None,
            approval: None,
            elapsed_us: None,
        };
        fill(&mut log);
        self.tell_tails(&log);
        self.out.push(Effect::Log(log));
    }
}

/// What ids are made from until the first event brings a random number.
pub(crate) fn seed(now: Timestamp) -> u64 {
    now.millis().wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
