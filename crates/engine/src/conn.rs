//! Connections: what is on its way to one, what waits until it drains, and how it ends.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use proto::frame::{LENGTH_BYTES, envelope_len};
use proto::{ErrorCode, Feature, Message, RoleKind, ToolName, ToolSpec, WireError};

use crate::effect::{Effect, Level};
use crate::engine::Engine;
use crate::event::{ConnId, Peer};
use crate::limits::{BACKLOG_BYTES, OUTBOX_BYTES};
use crate::record::{By, CallKey, RecordId};
use crate::timers::Timer;

/// A connection.
#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) peer: Peer,
    pub(crate) kind: RoleKind,
    /// What the hello switched on; `None`: there was none, only the seed's kinds are spoken.
    pub(crate) features: Option<BTreeSet<Feature>>,
    /// Bytes given to the shell and not yet written.
    outbox: u64,
    /// What waits until the outbox drains, in order.
    backlog: VecDeque<Waiting>,
    /// The bytes of `backlog`'s frames: charged to the role.
    backlog_bytes: u64,
    /// A `tools_changed` that could not be taken yet.
    owes_tools_changed: bool,
    /// An agent's requests that wait for a call.
    pub(crate) requests: BTreeMap<u64, CallKey>,
    /// A runner's calls.
    pub(crate) flights: BTreeMap<u64, CallKey>,
    /// A runner's calls that were given up; true while one still holds its place.
    pub(crate) abandoned: BTreeMap<u64, (CallKey, bool)>,
    /// The next request's number to a runner.
    pub(crate) next_wire: u64,
    /// A runner's last offer as it was made, and the tools of it that are served.
    pub(crate) offer: Option<(Vec<ToolSpec>, BTreeSet<ToolName>)>,
}

/// What waits until an outbox drains.
#[derive(Debug)]
pub(crate) enum Waiting {
    /// A frame.
    Frame {
        after: Option<RecordId>,
        id: u64,
        is_final: bool,
        msg: Bytes,
    },
    /// Whatever a call has for a request by then.
    Call { id: u64, key: CallKey },
}

impl Conn {
    pub(crate) fn new(peer: Peer, kind: RoleKind) -> Self {
        Self {
            peer,
            kind,
            features: None,
            outbox: 0,
            backlog: VecDeque::new(),
            backlog_bytes: 0,
            owes_tools_changed: false,
            requests: BTreeMap::new(),
            flights: BTreeMap::new(),
            abandoned: BTreeMap::new(),
            next_wire: 1,
            offer: None,
        }
    }

    pub(crate) fn has(&self, feature: Feature) -> bool {
        self.features
            .as_ref()
            .is_some_and(|features| features.contains(&feature))
    }

    pub(crate) fn by(&self) -> By {
        By {
            role: self.peer.role.clone(),
            uid: self.peer.uid,
        }
    }

    /// Calls that hold a place on a runner's connection.
    pub(crate) fn load(&self) -> u64 {
        (self.flights.len() + self.abandoned.values().filter(|(_, held)| *held).count()) as u64
    }

    /// Whether it takes a frame of so many bytes now.
    pub(crate) fn takes(&self, bytes: u64) -> bool {
        self.backlog.is_empty() && (self.outbox == 0 || self.outbox + bytes <= OUTBOX_BYTES)
    }
}

/// The bytes of a frame with this message, its length included: at most.
pub(crate) fn frame_len(msg: &[u8]) -> u64 {
    exact_len(u64::MAX, false, msg)
}

/// The bytes of a frame, its length included: exactly.
fn exact_len(id: u64, is_final: bool, msg: &[u8]) -> u64 {
    (LENGTH_BYTES + envelope_len(id, is_final, msg.len())) as u64
}

impl Engine {
    pub(crate) fn connected(&mut self, id: ConnId, peer: Peer) {
        let Some(role) = self.config.roles.get(&peer.role) else {
            self.out.push(Effect::Close { conn: id });
            return;
        };
        let (kind, quota) = (role.kind, role.quota);
        let usage = &mut self.account(&peer.role).usage;
        if usage.connections >= quota.connections {
            self.refuse_connection(id);
            self.log(Level::Warn, "connection_refused", |log| {
                log.role = Some(peer.role.clone());
                log.reason = Some("busy: connections");
            });
            return;
        }
        usage.connections += 1;
        self.log(Level::Debug, "connected", |log| {
            log.role = Some(peer.role.clone())
        });
        self.conns.insert(id, Conn::new(peer, kind));
        if kind == RoleKind::Runner {
            self.route_all();
        }
    }

    /// Tells a peer that there is no room for it: closed without a word, it would think itself not admitted.
    fn refuse_connection(&mut self, id: ConnId) {
        let told = Message::Error(WireError {
            code: ErrorCode::Internal,
            detail: "busy: connections".to_owned(),
        });
        self.out.push(Effect::Send {
            conn: id,
            after: None,
            id: 0,
            is_final: true,
            msg: proto::encode_message(&told),
        });
        self.out.push(Effect::Close { conn: id });
    }

    /// Tells the shell to close a connection once what was sent has left, and forgets it.
    pub(crate) fn close(&mut self, id: ConnId) {
        if self.conns.contains_key(&id) {
            self.out.push(Effect::Close { conn: id });
            self.closed(id);
        }
    }

    pub(crate) fn closed(&mut self, id: ConnId) {
        let Some(conn) = self.conns.remove(&id) else {
            return;
        };
        self.timers.cancel(&Timer::Write(id));
        self.tails.remove(&id);
        for (wire, (_, held)) in &conn.abandoned {
            if *held {
                self.timers.cancel(&Timer::Slot(id, *wire));
            }
        }
        let usage = &mut self.account(&conn.peer.role).usage;
        usage.connections -= 1;
        usage.waiting_bytes -= conn.backlog_bytes;
        for key in conn.requests.values() {
            if let Some(call) = self.call_mut(key) {
                call.waiters.retain(|waiter| waiter.conn != id);
            }
        }
        self.log(Level::Debug, "closed", |log| {
            log.role = Some(conn.peer.role.clone())
        });
        for key in conn.flights.values() {
            self.lost(key);
        }
    }

    pub(crate) fn written(&mut self, id: ConnId, bytes: u64) {
        let Some(conn) = self.conns.get_mut(&id) else {
            return;
        };
        conn.outbox = conn.outbox.saturating_sub(bytes);
        let drained = conn.outbox == 0;
        let runner = (conn.kind == RoleKind::Runner).then(|| conn.peer.role.clone());
        if drained {
            self.timers.cancel(&Timer::Write(id));
        } else {
            let at = self.now.plus(self.config.settings.write_timeout);
            self.timers.set(Timer::Write(id), at);
        }
        self.drain_backlog(id);
        if let Some(role) = runner {
            self.route(role);
        }
    }

    fn drain_backlog(&mut self, id: ConnId) {
        loop {
            let Some(conn) = self.conns.get_mut(&id) else {
                return;
            };
            if conn.outbox >= OUTBOX_BYTES {
                return;
            }
            match conn.backlog.pop_front() {
                None if std::mem::take(&mut conn.owes_tools_changed) => {
                    let told = Message::ToolsChanged(proto::ToolsChanged {});
                    self.send_or_owe(id, &proto::encode_message(&told));
                    return;
                }
                None => return,
                Some(Waiting::Frame {
                    after,
                    id: request,
                    is_final,
                    msg,
                }) => {
                    let bytes = exact_len(request, is_final, &msg);
                    if conn.outbox > 0 && conn.outbox + bytes > OUTBOX_BYTES {
                        conn.backlog.push_front(Waiting::Frame {
                            after,
                            id: request,
                            is_final,
                            msg,
                        });
                        return;
                    }
                    conn.backlog_bytes -= bytes;
                    let role = conn.peer.role.clone();
                    self.account(&role).usage.waiting_bytes -= bytes;
                    self.put(id, after, request, is_final, msg);
                }
                Some(Waiting::Call { id: request, key }) => {
                    // What waits behind it stays behind it: it is taken out while this one is sent.
                    let rest = std::mem::take(&mut conn.backlog);
                    self.catch_up(id, request, &key);
                    let Some(conn) = self.conns.get_mut(&id) else {
                        return;
                    };
                    let stuck = !conn.backlog.is_empty();
                    conn.backlog.extend(rest);
                    if stuck {
                        return;
                    }
                }
            }
        }
    }

    /// Sends a frame, or lets it wait until the outbox drains.
    pub(crate) fn send(
        &mut self,
        id: ConnId,
        after: Option<RecordId>,
        request: u64,
        is_final: bool,
        msg: Bytes,
    ) {
        let Some(conn) = self.conns.get_mut(&id) else {
            return;
        };
        let bytes = exact_len(request, is_final, &msg);
        if conn.takes(bytes) {
            self.put(id, after, request, is_final, msg);
            return;
        }
        let role = conn.peer.role.clone();
        let waiting = self.usage(&role).waiting_bytes.saturating_add(bytes);
        if request == 0 && waiting > self.quota(&role).waiting_bytes {
            // Nobody paces what is pushed. It says hello again and is told what is pending.
            self.log(Level::Warn, "too_slow", |log| {
                log.role = Some(role);
                log.reason = Some("busy: waiting_bytes");
            });
            return self.close(id);
        }
        let Some(conn) = self.conns.get_mut(&id) else {
            return;
        };
        conn.backlog_bytes += bytes;
        conn.backlog.push_back(Waiting::Frame {
            after,
            id: request,
            is_final,
            msg,
        });
        self.account(&role).usage.waiting_bytes += bytes;
    }

    /// Pushes a `tools_changed`, now or once the outbox drains: one says it for all before.
    pub(crate) fn send_or_owe(&mut self, id: ConnId, msg: &Bytes) {
        let Some(conn) = self.conns.get_mut(&id) else {
            return;
        };
        if conn.takes(exact_len(0, true, msg)) {
            self.put(id, None, 0, true, msg.clone());
        } else {
            conn.owes_tools_changed = true;
        }
    }

    /// Lets a request wait for whatever its call has once the outbox drains.
    pub(crate) fn wait(&mut self, id: ConnId, request: u64, key: CallKey) {
        if let Some(conn) = self.conns.get_mut(&id) {
            conn.backlog.push_back(Waiting::Call { id: request, key });
        }
    }

    /// Puts a frame where a request waits for its call.
    pub(crate) fn replace_waiting(
        &mut self,
        id: ConnId,
        request: u64,
        key: &CallKey,
        after: Option<RecordId>,
        msg: Bytes,
    ) {
        let Some(conn) = self.conns.get_mut(&id) else {
            return;
        };
        let mine = |w: &&mut Waiting| matches!(w, Waiting::Call { id, key: k } if *id == request && k == key);
        let Some(place) = conn.backlog.iter_mut().find(mine) else {
            return;
        };
        let bytes = exact_len(request, true, &msg);
        *place = Waiting::Frame {
            after,
            id: request,
            is_final: true,
            msg,
        };
        conn.backlog_bytes += bytes;
        conn.requests.remove(&request);
        let role = conn.peer.role.clone();
        self.account(&role).usage.waiting_bytes += bytes;
    }

    fn put(
        &mut self,
        id: ConnId,
        after: Option<RecordId>,
        request: u64,
        is_final: bool,
        msg: Bytes,
    ) {
        let Some(conn) = self.conns.get_mut(&id) else {
            return;
        };
        if conn.outbox == 0 {
            let at = self.now.plus(self.config.settings.write_timeout);
            self.timers.set(Timer::Write(id), at);
        }
        conn.outbox += exact_len(request, is_final, &msg);
        self.out.push(Effect::Send {
            conn: id,
            after,
            id: request,
            is_final,
            msg,
        });
    }

    /// The outbox made no progress for `write_timeout`.
    pub(crate) fn stalled(&mut self, id: ConnId) {
        if let Some(conn) = self.conns.get(&id) {
            let role = conn.peer.role.clone();
            self.log(Level::Warn, "write_timeout", |log| log.role = Some(role));
            self.close(id);
        }
    }

    /// Whether nothing waits for an outbox to drain.
    pub(crate) fn all_is_sent(&self) -> bool {
        self.conns.values().all(|conn| conn.backlog.is_empty())
    }

    /// Whether the shell may go on reading from a connection.
    pub(crate) fn backlog_admits(&self, id: ConnId) -> bool {
        self.conns.get(&id).is_none_or(|conn| {
            conn.backlog_bytes <= BACKLOG_BYTES
                && conn.backlog.len() <= crate::limits::MAX_OPEN_REQUESTS
        })
    }

    pub(crate) fn reply(&mut self, id: ConnId, request: u64, msg: &Message) {
        self.send(id, None, request, true, proto::encode_message(msg));
    }

    pub(crate) fn reply_after(
        &mut self,
        id: ConnId,
        after: Option<RecordId>,
        request: u64,
        msg: &Message,
    ) {
        self.send(id, after, request, true, proto::encode_message(msg));
    }

    /// Answers a request that could not be taken.
    pub(crate) fn error(&mut self, id: ConnId, request: u64, code: ErrorCode, detail: &str) {
        let detail = detail.to_owned();
        self.reply(id, request, &Message::Error(WireError { code, detail }));
        if let Some(conn) = self.conns.get(&id) {
            let role = conn.peer.role.clone();
            self.log(Level::Debug, "bad_input", |log| {
                log.role = Some(role);
                log.reason = Some(match code {
                    ErrorCode::BadFrame => "bad_frame",
                    ErrorCode::BadVersion => "bad_version",
                    ErrorCode::BadMessage => "bad_message",
                    ErrorCode::Internal => "internal",
                });
            });
        }
    }

    pub(crate) fn bad_message(&mut self, id: ConnId, request: u64, detail: &str) {
        self.error(id, request, ErrorCode::BadMessage, detail);
    }

    pub(crate) fn busy(&mut self, id: ConnId, request: u64, quota: &str) {
        self.error(id, request, ErrorCode::Internal, &format!("busy: {quota}"));
    }
}
