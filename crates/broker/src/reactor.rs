//! The one owner of the engine: takes what came in as a batch, runs the engine over it, does what it
//! says, and writes once to every receiver. It never waits for anyone.

mod reloading;
mod sending;
mod telling;

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use engine::{ConnId, Effect, Effects, Engine, Event, Peer, RecordId, RequestId};
use proto::Timestamp;
use tokio::time::Instant;

use crate::alarm::Alarm;
use crate::beside::{Beside, Keeper};
use crate::clock::Clock;
use crate::configuration::Loaded;
use crate::connection::Conn;
use crate::decoding::Pool;
use crate::doors::Doors;
use crate::durable::Durable;
use crate::exit::{Exit, Fault};
use crate::heads::Heads;
use crate::inbox::{Accepted, Inbox, Input, Reason};
use crate::lobby::Lobby;
use crate::logs;
use crate::manager::Manager;
use crate::nonce::Nonces;
use crate::outbox::Frame;
use crate::reading::{self, Pace, Reading};
use crate::signals::Signal;
use crate::sockets::Supply;
use sending::mark;
use store::{Head, Store};

/// How often one turn may write and tell the engine, before others get theirs.
const MAX_ROUNDS: usize = 4;
/// How long after `drain_timeout` the broker ends even if the engine has not said so.
const DRAIN_GRACE: Duration = Duration::from_secs(5);
/// The least that is slept for a timer, which counts in milliseconds.
const LEAST_SLEEP: Duration = Duration::from_millis(1);

/// Where the broker is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    /// A signal asked for the end; it ends by then at the latest.
    Draining(Instant),
    Ended(Exit),
}

/// The engine, and everything around it.
#[derive(Debug)]
pub struct Reactor {
    engine: Engine,
    durable: Durable,
    heads: Heads,
    keeper: Keeper,
    clock: Clock,
    /// The turn's time.
    now: Timestamp,
    alarm: Alarm,
    nonces: Nonces,
    loaded: Loaded,
    supply: Supply,
    manager: Manager,
    /// How the last reload went: taken, or why not.
    last_reload: Option<Result<(), String>>,
    phase: Phase,
    conns: HashMap<ConnId, Rc<Conn>>,
    last_conn: u64,
    inbox: Rc<Inbox>,
    lobby: Rc<Lobby>,
    doors: Doors,
    reading: Rc<Reading>,
    pace: Rc<Cell<Pace>>,
    reloads: VecDeque<Option<RequestId>>,
    reloading: bool,
    // Lists that are emptied in every turn, kept for their memory.
    batch: Vec<Input>,
    effects: Effects,
    dirty: Vec<Rc<Conn>>,
    holding: Vec<Rc<Conn>>,
    served: Vec<Rc<Conn>>,
}

impl Reactor {
    /// A reactor without sockets yet, in the state that `store` holds, if it is the one that ran last. `supply` is where
    /// new ones come from.
    ///
    /// # Errors
    /// The store cannot be trusted or written, is not the one that ran last, what it holds does not fit the configuration, or there are no random numbers.
    pub fn new(
        loaded: Loaded,
        supply: Supply,
        inbox: Rc<Inbox>,
        mut store: Store,
        beside: Beside,
    ) -> Result<Self, Fault> {
        let nonces = Nonces::open()
            .map_err(|error| Fault::Internal(format!("cannot read /dev/urandom: {error}")))?;
        let mut clock = Clock::new();
        let now = clock.now();
        let mut effects = Effects::new();
        let engine = store
            .replay(|parts, records| {
                let (config, put_back) = (loaded.config.clone(), beside.put_back().cloned());
                Engine::restore(config, now, parts, records, put_back, &mut effects)
            })
            .map_err(|error| Fault::of_store(&error))?
            .map_err(Fault::Configuration)?;
        beside.check(&store)?;
        let heads = Heads::restored(store.head().clone());
        if let Some(by) = beside.put_back() {
            tracing::warn!(event = "restored_copy", uid = u64::from(by.uid));
        }
        let durable = Durable::after(RecordId(store.head().count));
        let pace = Rc::new(Cell::new(Pace::of(&loaded.config.settings)));
        let lobby = Lobby::new(Rc::clone(&inbox), &loaded.config, loaded.admission.clone());
        let mut reactor = Self {
            engine,
            durable,
            heads,
            keeper: Keeper::start(beside.folder().to_owned()),
            clock,
            now,
            alarm: Alarm::new(),
            nonces,
            loaded,
            supply,
            manager: Manager::default(),
            last_reload: None,
            phase: Phase::Running,
            conns: HashMap::new(),
            last_conn: 0,
            reading: Rc::new(Reading {
                inbox: Rc::clone(&inbox),
                pool: Pool::new(),
                pace: Rc::clone(&pace),
            }),
            inbox,
            lobby,
            doors: Doors::default(),
            pace,
            reloads: VecDeque::new(),
            reloading: false,
            batch: Vec::new(),
            effects,
            dirty: Vec::new(),
            holding: Vec::new(),
            served: Vec::new(),
        };
        // What lapsed or was interrupted meanwhile.
        reactor.apply();
        let config = reactor.loaded.config.clone();
        let head = reactor.durable.begin(store, config, now, &reactor.inbox)?;
        beside.begun(&head);
        reactor.stored(head);
        Ok(reactor)
    }

    /// Opens a role's socket.
    pub fn open(
        &mut self,
        role: proto::RoleName,
        listener: tokio::net::UnixListener,
        file: crate::sockets::SocketFile,
    ) {
        self.doors.open(&self.lobby, role, listener, file);
    }

    /// Runs until a drain is over.
    pub async fn run(mut self) -> Exit {
        loop {
            self.wait().await;
            if self.is_due() {
                // What readers and writers have to tell may be what a timer waits for.
                tokio::task::yield_now().await;
            }
            if let Err(exit) = self.turn() {
                return exit;
            }
            if let Phase::Ended(exit) = self.phase {
                let exit = self.flush_all().await.err().unwrap_or(exit);
                self.keeper.end().await;
                return exit;
            }
            if !self.inbox.is_empty() {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Until something came in or is due.
    async fn wait(&mut self) {
        let due = self
            .engine
            .poll_timeout()
            .map(|due| Instant::now() + self.clock.until(due).max(LEAST_SLEEP));
        let end = match self.phase {
            Phase::Draining(end) => Some(end),
            Phase::Running | Phase::Ended(_) => None,
        };
        let tell = self.manager.due(Instant::now());
        let head = self.heads.due();
        let all = [due, end, tell, head];
        self.alarm.set(all.into_iter().flatten().min());
        tokio::select! {
            biased;
            () = self.inbox.filled() => {}
            () = self.alarm.rings() => {}
        }
    }

    fn is_due(&mut self) -> bool {
        let now = self.clock.now();
        self.engine.poll_timeout().is_some_and(|due| due <= now)
    }

    /// One turn: everything that came in, everything that is due, one write for each receiver.
    fn turn(&mut self) -> Result<(), Exit> {
        self.now = self.clock.now();
        let mut batch = std::mem::take(&mut self.batch);
        self.inbox.take(&mut batch);
        if !batch.is_empty() {
            self.manager.touch();
        }
        for input in batch.drain(..) {
            self.input(input)?;
        }
        self.batch = batch;
        // Only what was due when the turn began: no peer was slow while this thread was busy, and
        // what the turn sends has not even been tried yet.
        if self
            .engine
            .poll_timeout()
            .is_some_and(|due| due <= self.now)
        {
            self.engine.handle_timeout(self.now, &mut self.effects);
            self.manager.touch();
            self.apply();
        }
        self.now = self.clock.now();
        for _ in 0..MAX_ROUNDS {
            self.commit();
            self.release();
            if self.dirty.is_empty() {
                break;
            }
            self.write();
        }
        if !self.dirty.is_empty() {
            self.inbox.wake();
        }
        self.let_readers_go_on();
        if let Phase::Draining(end) = self.phase
            && end <= Instant::now()
        {
            tracing::warn!(event = "drain_overdue");
            self.phase = Phase::Ended(Exit::Done);
        }
        if let Some(head) = self.heads.turn(Instant::now()) {
            self.keeper.keep(head);
        }
        self.tell();
        Ok(())
    }

    fn input(&mut self, input: Input) -> Result<(), Exit> {
        match input {
            Input::Accepted(accepted) => self.accept(accepted),
            Input::Frame { conn, frame, space } => {
                if let Some(conn) = self.conns.get(&conn) {
                    conn.untaken.set(conn.untaken.get().saturating_sub(1));
                    mark(&mut self.served, conn, |marks| &marks.served);
                    if conn.closing.get().is_none() {
                        let conn = conn.id;
                        let nonce = self.nonces.fresh().map_err(|error| {
                            tracing::error!(event = "no_random_numbers", detail = %error);
                            Exit::Internal
                        })?;
                        self.handle(Event::Received { conn, frame, nonce });
                    }
                }
                drop(space);
            }
            Input::Ended { conn, reason } => self.end(conn, reason),
            Input::Written { conn, bytes } => {
                if let Some(conn) = self.conns.get(&conn).cloned() {
                    self.tell_written(&conn, bytes);
                    mark(&mut self.dirty, &conn, |marks| &marks.dirty);
                }
            }
            Input::Stored(Ok(head)) => self.stored(head),
            Input::Stored(Err(why)) => {
                // What depends on it was not sent, and is not.
                logs::faults("store_failed", &why);
                return Err(Exit::Store);
            }
            Input::Snapshot(Ok(snapshot)) => {
                tracing::info!(
                    event = "snapshot",
                    records = snapshot.of.0,
                    begins = snapshot.begins.0
                );
                self.handle(Event::Snapshot(snapshot));
            }
            Input::Snapshot(Err(why)) => {
                tracing::warn!(event = "snapshot_failed", detail = why.as_str());
            }
            Input::Reloaded { request, outcome } => self.reloaded(request, outcome),
            Input::Reload(request) => self.reload(Some(request)),
            Input::Signal(Signal::Reload) => self.reload(None),
            Input::Signal(Signal::Terminate) => return self.terminate(),
        }
        Ok(())
    }

    /// Everything up to this head is durable.
    fn stored(&mut self, head: Head) {
        if self.durable.stored(RecordId(head.count)) {
            for conn in self.conns.values().filter(|conn| conn.paused.get()) {
                mark(&mut self.served, conn, |marks| &marks.served);
            }
        }
        self.heads.grown(head.clone());
        self.handle(Event::Stored {
            records: head.count,
            head: head.hash,
        });
    }

    fn accept(&mut self, accepted: Accepted) {
        self.last_conn += 1;
        let id = ConnId(self.last_conn);
        let conn = Rc::new(Conn::new(id, accepted));
        let peer = Peer {
            role: conn.role().clone(),
            uid: conn.uid,
        };
        // It may have waited here while a reload took its role away, or the end came.
        if matches!(self.phase, Phase::Ended(_))
            || !self.lobby.still_admits(&peer.role, conn.uid, conn.gid)
        {
            return conn.cut();
        }
        tracing::debug!(
            event = "accepted",
            role = peer.role.as_str(),
            conn = id.0,
            uid = u64::from(peer.uid)
        );
        let reader = reading::read(Rc::clone(&conn), Rc::clone(&self.reading));
        let reader = tokio::task::spawn_local(reader).abort_handle();
        *conn.reader.borrow_mut() = Some(reader);
        self.conns.insert(id, conn);
        self.handle(Event::Connected { conn: id, peer });
    }

    /// Nothing more comes from a connection. If it is being closed after a bad frame, what the
    /// engine said last still leaves.
    fn end(&mut self, id: ConnId, reason: Reason) {
        let Some(conn) = self.conns.get(&id) else {
            return;
        };
        if conn.closing.get().is_some() {
            if !reason.can_write() {
                self.forget(id);
            }
            return;
        }
        tracing::debug!(
            event = "disconnected",
            role = conn.role().as_str(),
            conn = id.0,
            reason = reason.as_str()
        );
        self.forget(id);
        self.handle(Event::Closed { conn: id });
    }

    fn forget(&mut self, id: ConnId) {
        if let Some(conn) = self.conns.remove(&id) {
            conn.cut();
        }
    }

    fn handle(&mut self, event: Event) {
        self.engine.handle(self.now, event, &mut self.effects);
        self.apply();
    }

    /// Does what the engine said, in its order.
    fn apply(&mut self) {
        let mut effects = std::mem::take(&mut self.effects);
        for effect in effects.drain(..) {
            match effect {
                Effect::Send {
                    conn,
                    after,
                    id,
                    is_final,
                    msg,
                } => {
                    let frame = Frame {
                        after,
                        id,
                        is_final,
                        msg,
                    };
                    self.send(conn, frame);
                }
                Effect::Record { id, record } => self.durable.append(id, record),
                Effect::Close { conn } => self.close(conn),
                Effect::Log(log) => logs::engine_line(&log),
                // Not at once: what the engine answers to it comes after these effects.
                Effect::Reload { request } => self.inbox.push(Input::Reload(request)),
                Effect::Drained => self.phase = Phase::Ended(Exit::Done),
            }
        }
        self.effects = effects;
    }

    fn terminate(&mut self) -> Result<(), Exit> {
        match self.phase {
            Phase::Running => {
                let patience = Duration::from_millis(self.loaded.config.settings.drain_timeout);
                self.phase = Phase::Draining(Instant::now() + patience + DRAIN_GRACE);
                self.handle(Event::Drain);
                Ok(())
            }
            Phase::Draining(_) | Phase::Ended(_) => {
                tracing::warn!(event = "ended_at_once");
                Err(Exit::Done)
            }
        }
    }
}
