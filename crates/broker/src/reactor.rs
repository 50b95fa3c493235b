//! The one owner of the engine: takes what came in as a batch, runs the engine over it, does what it
//! says, and writes once to every receiver. It never waits for anyone.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use engine::{ConnId, Effect, Effects, Engine, Event, Peer, RequestId};
use proto::Timestamp;
use tokio::time::{Instant, timeout_at};

use crate::alarm::Alarm;
use crate::clock::Clock;
use crate::configuration::Loaded;
use crate::connection::Conn;
use crate::decoding::Pool;
use crate::doors::Doors;
use crate::durable::Durable;
use crate::exit::{Exit, Fault};
use crate::inbox::{Accepted, Inbox, Input, Reason};
use crate::lobby::Lobby;
use crate::logs;
use crate::nonce::Nonces;
use crate::outbox::Frame;
use crate::reading::{self, Pace, Reading};
use crate::reload::{self, MAX_RELOADS, Reloaded};
use crate::signals::Signal;
use crate::writing::{self, Written};

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
    clock: Clock,
    /// The turn's time.
    now: Timestamp,
    alarm: Alarm,
    nonces: Nonces,
    loaded: Loaded,
    folder: PathBuf,
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
    /// A reactor without sockets yet. `folder` is where new ones are bound.
    ///
    /// # Errors
    /// There are no random numbers.
    pub fn new(loaded: Loaded, folder: PathBuf, inbox: Rc<Inbox>) -> Result<Self, Fault> {
        let nonces = Nonces::open()
            .map_err(|error| Fault::Internal(format!("cannot read /dev/urandom: {error}")))?;
        let mut clock = Clock::new();
        let now = clock.now();
        let engine = Engine::new(loaded.config.clone(), now);
        let pace = Rc::new(Cell::new(Pace::of(&loaded.config.settings)));
        let lobby = Lobby::new(Rc::clone(&inbox), &loaded.config, loaded.admission.clone());
        Ok(Self {
            engine,
            durable: Durable::default(),
            clock,
            now,
            alarm: Alarm::new(),
            nonces,
            loaded,
            folder,
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
            effects: Vec::new(),
            dirty: Vec::new(),
            holding: Vec::new(),
            served: Vec::new(),
        })
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
            if let Err(exit) = self.turn() {
                return exit;
            }
            if let Phase::Ended(exit) = self.phase {
                self.flush_all().await;
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
        self.alarm.set(due.into_iter().chain(end).min());
        tokio::select! {
            biased;
            () = self.inbox.filled() => {}
            () = self.alarm.rings() => {}
        }
    }

    /// One turn: everything that came in, everything that is due, one write for each receiver.
    fn turn(&mut self) -> Result<(), Exit> {
        self.now = self.clock.now();
        let mut batch = std::mem::take(&mut self.batch);
        self.inbox.take(&mut batch);
        for input in batch.drain(..) {
            self.input(input)?;
        }
        self.batch = batch;
        self.now = self.clock.now();
        if self
            .engine
            .poll_timeout()
            .is_some_and(|due| due <= self.now)
        {
            self.engine.handle_timeout(self.now, &mut self.effects);
            self.apply();
        }
        for _ in 0..MAX_ROUNDS {
            self.durable.commit();
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
            Input::Reloaded { request, outcome } => self.reloaded(request, outcome),
            Input::Reload(request) => self.reload(Some(request)),
            Input::Signal(Signal::Reload) => self.reload(None),
            Input::Signal(Signal::Terminate) => return self.terminate(),
        }
        Ok(())
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

    fn send(&mut self, conn: ConnId, frame: Frame) {
        let Some(conn) = self.conns.get(&conn) else {
            return;
        };
        if conn.closing.get().is_some() {
            return;
        }
        let mut outbox = conn.outbox.borrow_mut();
        outbox.push(frame, &self.durable);
        if outbox.holds() {
            mark(&mut self.holding, conn, |marks| &marks.holding);
        } else {
            mark(&mut self.dirty, conn, |marks| &marks.dirty);
        }
    }

    fn close(&mut self, conn: ConnId) {
        if let Some(conn) = self.conns.get(&conn) {
            conn.stop_reading();
            conn.closing
                .set(Some(Instant::now() + self.pace.get().write_timeout));
            mark(&mut self.dirty, conn, |marks| &marks.dirty);
        }
    }

    /// Frames whose records have become durable may leave.
    fn release(&mut self) {
        let mut still = Vec::new();
        for conn in self.holding.drain(..) {
            conn.marks.holding.set(false);
            let mut outbox = conn.outbox.borrow_mut();
            outbox.release(&self.durable);
            if outbox.holds() {
                mark(&mut still, &conn, |marks| &marks.holding);
            }
            drop(outbox);
            mark(&mut self.dirty, &conn, |marks| &marks.dirty);
        }
        self.holding = still;
    }

    /// Writes once for every receiver, and tells the engine what has left.
    fn write(&mut self) {
        let mut dirty = std::mem::take(&mut self.dirty);
        for conn in dirty.drain(..) {
            conn.marks.dirty.set(false);
            if !conn.writing.get() {
                match writing::write_now(&conn) {
                    Written::All(bytes) => self.tell_written(&conn, bytes),
                    Written::Blocked(bytes) => {
                        self.tell_written(&conn, bytes);
                        conn.writing.set(true);
                        tokio::task::spawn_local(writing::write_on(
                            Rc::clone(&conn),
                            Rc::clone(&self.inbox),
                            Rc::clone(&self.pace),
                        ));
                    }
                    Written::Gone => self.end(conn.id, Reason::WriteFailed),
                }
            }
            if conn.closing.get().is_some() && conn.outbox.borrow().is_empty() {
                self.forget(conn.id);
            }
        }
        // What the engine answered to that is for the next round.
        dirty.append(&mut self.dirty);
        self.dirty = dirty;
    }

    fn tell_written(&mut self, conn: &Rc<Conn>, bytes: u64) {
        if bytes > 0 && conn.closing.get().is_none() && self.conns.contains_key(&conn.id) {
            let id = conn.id;
            self.handle(Event::Written { conn: id, bytes });
            if conn.paused.get() {
                mark(&mut self.served, conn, |marks| &marks.served);
            }
        }
    }

    fn let_readers_go_on(&mut self) {
        for conn in self.served.drain(..) {
            conn.marks.served.set(false);
            conn.paused.set(!self.engine.may_read(conn.id));
            if conn.may_read() {
                conn.resume.notify_one();
            }
        }
    }

    /// Asks for a reload, one at a time.
    fn reload(&mut self, request: Option<RequestId>) {
        if self.reloads.len() >= MAX_RELOADS {
            let why = "busy: too many reloads wait".to_owned();
            return self.refuse_reload(request, why);
        }
        self.reloads.push_back(request);
        self.next_reload();
    }

    fn next_reload(&mut self) {
        if self.reloading {
            return;
        }
        if let Some(request) = self.reloads.pop_front() {
            self.reloading = true;
            tokio::task::spawn_local(reload::reload(
                self.loaded.clone(),
                self.folder.clone(),
                request,
                Rc::clone(&self.inbox),
            ));
        }
    }

    fn reloaded(&mut self, request: Option<RequestId>, outcome: Result<Reloaded, String>) {
        self.reloading = false;
        match outcome {
            Err(why) => self.refuse_reload(request, why),
            Ok(reloaded) => self.take(request, reloaded),
        }
        self.next_reload();
    }

    fn refuse_reload(&mut self, request: Option<RequestId>, why: String) {
        logs::faults("reload_fault", &why);
        self.handle(Event::ConfigRefused { request, why });
    }

    /// Takes a new configuration, if the engine does: what operators granted must fit it too.
    fn take(&mut self, request: Option<RequestId>, reloaded: Reloaded) {
        let config = reloaded.loaded.config.clone();
        self.handle(Event::Configured {
            config: config.clone(),
            request,
        });
        if !Arc::ptr_eq(self.engine.config(), &config) {
            // What was bound for it is unlinked again as `reloaded` goes.
            return logs::faults(
                "reload_fault",
                "a grant that was added at run time does not fit",
            );
        }
        self.loaded = reloaded.loaded;
        self.pace.set(Pace::of(&config.settings));
        self.doors.keep_only(&config);
        let closed = self.close_misfits();
        for (role, listener, file) in reloaded.sockets {
            self.doors.open(&self.lobby, role, listener, file);
        }
        warn(&self.loaded);
        tracing::info!(
            event = "configuration_taken",
            ruleset = config.digest.as_str(),
            closed
        );
    }

    /// Ends the connections whose users or groups are not admitted any more, before a byte more
    /// leaves for them; tells the lobby who stays. Gives their number.
    fn close_misfits(&mut self) -> u64 {
        let admission = &self.loaded.admission;
        let fits = |conn: &Conn| admission.admit(conn.role(), conn.uid, conn.gid).is_ok();
        let (stay, go): (Vec<_>, Vec<_>) = self.conns.values().partition(|conn| fits(conn));
        let present = stay
            .iter()
            .map(|conn| (conn.role().clone(), conn.uid, conn.gid));
        self.lobby
            .configure(&self.loaded.config, admission.clone(), present);
        let mut gone: Vec<ConnId> = go.iter().map(|conn| conn.id).collect();
        gone.sort();
        for id in &gone {
            self.end(*id, Reason::FitsNoMore);
        }
        gone.len() as u64
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

    /// The last bytes leave, for at most `write_timeout`; nothing is read any more.
    async fn flush_all(&mut self) {
        self.doors.close();
        for conn in self.conns.values() {
            conn.stop_reading();
        }
        let end = Instant::now() + self.pace.get().write_timeout;
        while !self.conns.values().all(|c| c.outbox.borrow().is_empty()) {
            if timeout_at(end, self.inbox.filled()).await.is_err() || self.turn().is_err() {
                tracing::warn!(event = "flush_cut_short");
                return;
            }
        }
        for conn in self.conns.values() {
            conn.cut();
        }
    }
}

/// Says what a reviewer of the configuration should know.
pub fn warn(loaded: &Loaded) {
    for warning in &loaded.warnings {
        tracing::warn!(event = "warning", detail = warning.as_str());
    }
}

/// Puts a connection on a list, once.
fn mark(
    list: &mut Vec<Rc<Conn>>,
    conn: &Rc<Conn>,
    of: fn(&crate::connection::Marks) -> &Cell<bool>,
) {
    if !of(&conn.marks).replace(true) {
        list.push(Rc::clone(conn));
    }
}
