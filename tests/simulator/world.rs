//! One run: the engine, its shell, its peers and the model, driven step by step by one seed.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use engine::{ConnId, Effect, Effects, Engine, Event, RequestId};
use policy::Config;
use proto::{DecodeError, Digest, ErrorCode, Timestamp};

use crate::config::{Plan, VARIANTS};
use crate::history;
use crate::model::Model;
use crate::past;
use crate::peers::operator::role;
use crate::peers::{Books, Cx, Peer};
use crate::restart::restored;
use crate::rng::Rng;
use crate::shell::Shell;
use crate::show::{effect_line, event_line, mix};
use crate::store::Store;

/// 2030-01-01T00:00:00Z.
const BEGIN: u64 = 1_893_456_000_000;

/// Of so many crashes, the time picks one after which a copy is put back.
const PUT_BACK: u64 = 20;

/// Everything of one run.
pub(crate) struct World {
    pub(crate) rng: Rng,
    pub(crate) now: u64,
    pub(crate) plan: Plan,
    variant: usize,
    engine: Engine,
    pub(crate) shell: Shell,
    pub(crate) store: Store,
    pub(crate) model: Model,
    pub(crate) peers: BTreeMap<ConnId, Peer>,
    books: Books,
    pub(crate) next_conn: u64,
    next_ticket: u64,
    reloads: Vec<RequestId>,
    /// The record of a copy that was put back; while it is not durable, the marker is still there.
    put_back: Option<engine::RecordId>,
    drained: bool,
    pub(crate) calm: bool,
    /// A running hash of every effect, where somebody wants to compare.
    pub(crate) digest: Option<u64>,
}

impl World {
    pub(crate) fn new(seed: u64, digest: bool) -> Self {
        let mut rng = Rng::new(seed);
        let plan = Plan::new(&mut rng);
        let config = plan.variants[0].clone();
        let begin = time(BEGIN);
        Self {
            engine: Engine::new(config.clone(), begin),
            model: Model::new(config),
            rng,
            now: BEGIN,
            plan,
            variant: 0,
            shell: Shell::default(),
            store: Store::default(),
            peers: BTreeMap::new(),
            books: Books::default(),
            next_conn: 1,
            next_ticket: 1,
            reloads: Vec::new(),
            put_back: None,
            drained: false,
            calm: false,
            digest: digest.then_some(0),
        }
    }

    /// A peer does something, if it wants to.
    pub(crate) fn act(&mut self, conn: ConnId) {
        self.with_peer(conn, |peer, cx| peer.act(cx));
    }

    /// Frames leave an outbox, and reach the peer.
    pub(crate) fn drain(&mut self, conn: ConnId, most: usize) {
        let (bytes, arrived) = self.shell.drain(conn, most);
        let Some(link) = self.shell.links.get(&conn) else {
            return;
        };
        let (gone, closing) = (link.gone, link.closing);
        if closing && !link.has_outgoing() {
            self.forget(conn);
        } else if !closing && bytes > 0 {
            self.handle(Event::Written { conn, bytes });
        }
        for envelope in arrived.iter().filter(|_| !gone) {
            self.with_peer(conn, |peer, cx| peer.receive(envelope, cx));
        }
    }

    fn with_peer(&mut self, conn: ConnId, does: impl FnOnce(&mut Peer, &mut Cx<'_>)) {
        let Some(peer) = self.peers.get_mut(&conn) else {
            return;
        };
        let mut cx = Cx {
            rng: &mut self.rng,
            now: self.now,
            plan: &self.plan,
            books: &mut self.books,
            calm: self.calm,
            out: Vec::new(),
            hang_up: false,
        };
        does(peer, &mut cx);
        let (out, hang_up) = (cx.out, cx.hang_up);
        if let Some(link) = self.shell.links.get_mut(&conn)
            && !link.gone
            && !link.closing
        {
            link.incoming.extend(out);
        }
        if hang_up {
            self.hang_up(conn);
        }
    }

    /// The peer goes away. What it wrote may still arrive, or not.
    pub(crate) fn hang_up(&mut self, conn: ConnId) {
        let Some(link) = self.shell.links.get_mut(&conn) else {
            return;
        };
        if link.gone {
            return;
        }
        history::note(|| format!("{conn:?} hangs up"));
        self.model.coverage.hang_ups += 1;
        link.gone = true;
        if self.rng.chance(40) {
            let keep = self.rng.below(link.incoming.len() + 1);
            link.incoming.truncate(keep);
        }
        self.peers.remove(&conn);
    }

    /// The next frame of a connection reaches the engine, or the news that there is none.
    pub(crate) fn deliver(&mut self, conn: ConnId) {
        if self.drained {
            return;
        }
        let may_read = self.engine.may_read(conn);
        let Some(link) = self.shell.links.get_mut(&conn) else {
            return;
        };
        if link.closing {
            link.incoming.clear();
            if link.gone || !link.has_outgoing() {
                self.forget(conn);
            }
            return;
        }
        if link.gone && (link.incoming.is_empty() || !may_read) {
            self.forget(conn);
            self.model.closed(conn);
            return self.handle(Event::Closed { conn });
        }
        if !may_read {
            self.model.coverage.reads_paused += 1;
            return;
        }
        let Some(frame) = link.incoming.pop_front() else {
            return;
        };
        let frame = if frame.len() > self.plan.max_frame {
            Err(DecodeError {
                code: ErrorCode::BadFrame,
                id: 0,
                reply: false,
                detail: "length".into(),
            })
        } else {
            proto::decode_shared(Bytes::from(frame))
        };
        let nonce = self.rng.next();
        self.model.now = time(self.now);
        self.model.received(conn, &frame);
        self.handle(Event::Received { conn, frame, nonce });
    }

    fn forget(&mut self, conn: ConnId) {
        self.shell.links.remove(&conn);
        self.peers.remove(&conn);
    }

    /// The store makes some records durable; what waited for them goes.
    pub(crate) fn commit(&mut self, count: usize) {
        self.store.commit(count);
        let records = self.store.durable_records().len() as u64;
        if records > self.model.stored {
            self.model.stored = records;
            let head = Digest::from_bytes([7; 32]);
            self.handle(Event::Stored { records, head });
        }
        self.release();
    }

    fn release(&mut self) {
        let tickets = self.shell.release(&self.store);
        self.model.released(&tickets);
    }

    /// Time passes; what is due may be handled now or a little later.
    pub(crate) fn pass(&mut self, millis: u64, punctual: bool) {
        self.now += millis;
        if punctual {
            self.tick();
        }
    }

    /// When the engine wants to be called next.
    pub(crate) fn due(&self) -> Option<u64> {
        self.engine.poll_timeout().map(Timestamp::millis)
    }

    /// Handles what is due.
    pub(crate) fn tick(&mut self) {
        if self.drained || self.due().is_none_or(|due| due > self.now) {
            return;
        }
        history::note(|| format!("+{} timeout", self.now - BEGIN));
        let mut effects = Effects::new();
        self.model.now = time(self.now);
        self.engine.handle_timeout(time(self.now), &mut effects);
        self.apply(effects);
        let due = self.due().filter(|_| !self.drained);
        assert!(
            due.is_none_or(|due| due > self.now),
            "a timeout at {due:?} stays due"
        );
    }

    /// A configuration is loaded, or refused: for whoever asked, or on a signal.
    pub(crate) fn reload(&mut self) {
        let request = self.reloads.pop();
        if self.rng.chance(15) {
            self.model.coverage.reloads_refused += 1;
            return self.handle(Event::ConfigRefused {
                request,
                why: "line 1: no".into(),
            });
        }
        let variant = self.rng.below(VARIANTS);
        let config = self.plan.variants[variant].clone();
        history::note(|| format!("+{} variant {variant} is loaded", self.now - BEGIN));
        let mut effects = Effects::new();
        self.model.now = time(self.now);
        let event = Event::Configured {
            config: config.clone(),
            request,
        };
        self.engine.handle(time(self.now), event, &mut effects);
        // Grants of run time may not fit it.
        if self.engine.config().digest == config.digest {
            self.variant = variant;
            self.model.configured(&config);
        }
        self.apply(effects);
    }

    /// Whether an operator waits for a reload.
    pub(crate) fn reload_asked(&self) -> bool {
        !self.reloads.is_empty()
    }

    /// The broker is told to end.
    pub(crate) fn begin_drain(&mut self) {
        self.handle(Event::Drain);
    }

    /// Whether it did.
    pub(crate) fn has_drained(&self) -> bool {
        self.drained
    }

    /// The power goes, and comes back.
    pub(crate) fn crash(&mut self) {
        if self.rng.chance(50) {
            let some = self.rng.below(self.store.pending() + 1);
            self.commit(some);
        }
        history::note(|| {
            format!(
                "+{} CRASH, {} records are lost",
                self.now - BEGIN,
                self.store.pending()
            )
        });
        self.model.crashed(&self.store);
        let marked = self
            .put_back
            .take()
            .is_some_and(|id| !self.store.is_durable(id));
        let put_back = (marked || self.now.is_multiple_of(PUT_BACK)).then(|| engine::PutBack {
            uid: 0,
            reason: "a drill".to_owned(),
        });
        if put_back.is_some() {
            history::note(|| "what is left of it is put back as a copy".to_owned());
            self.model.put_back();
        }
        self.shell.links.clear();
        self.peers.clear();
        self.reloads.clear();
        self.drained = false;
        self.now += self.rng.below(3000) as u64;
        let records = self.store.crash();
        let config = self.plan.variants[self.variant].clone();
        self.model.now = time(self.now);
        let mut effects = Effects::new();
        self.engine = restored(
            &config,
            time(self.now),
            &records,
            put_back.as_ref(),
            &mut effects,
        );
        if self.digest.is_some() {
            self.restores_alike(&config, put_back.as_ref(), &effects);
        }
        self.put_back = effects.iter().find_map(|effect| match effect {
            Effect::Record {
                id,
                record: engine::Record::Restored { .. },
            } => Some(*id),
            _ => None,
        });
        self.apply(effects);
    }

    /// Invariant 9: the same records give the same engine.
    fn restores_alike(
        &self,
        config: &Arc<Config>,
        put_back: Option<&engine::PutBack>,
        effects: &Effects,
    ) {
        let mut again = Effects::new();
        let records = self.store.durable_records();
        let engine = restored(config, time(self.now), records, put_back, &mut again);
        assert_eq!(
            *effects, again,
            "invariant 9: a restore has other effects the second time"
        );
        for name in config.roles.keys() {
            assert_eq!(
                engine.usage(name),
                self.engine.usage(name),
                "invariant 9: usage of {name}"
            );
        }
    }

    /// Invariant 10: see [`past::judged_again`].
    pub(crate) fn judged_again(&mut self) {
        self.model.coverage.decisions_judged_again +=
            past::judged_again(self.store.durable_records());
    }

    pub(crate) fn handle(&mut self, event: Event) {
        history::note(|| format!("+{} {}", self.now - BEGIN, event_line(&event)));
        let mut effects = Effects::new();
        self.model.now = time(self.now);
        self.engine.handle(time(self.now), event, &mut effects);
        self.apply(effects);
    }

    fn apply(&mut self, effects: Effects) {
        for effect in effects {
            if !matches!(effect, Effect::Log(_)) {
                history::note(|| format!("    {}", effect_line(&effect)));
            }
            if let Some(digest) = &mut self.digest {
                *digest = mix(*digest, &effect);
            }
            match effect {
                Effect::Send {
                    conn,
                    after,
                    id,
                    is_final,
                    msg,
                } => {
                    let ticket = self.next_ticket;
                    self.next_ticket += 1;
                    let envelope = self.shell.send(conn, after, (id, is_final), &msg, ticket);
                    self.model.sent(conn, &envelope, after, ticket);
                }
                Effect::Record { id, record } => {
                    self.model.record_made(id, &record);
                    self.store.append(id, record);
                }
                Effect::Close { conn } => {
                    self.model.coverage.closes_by_engine += 1;
                    self.model.closed(conn);
                    let link = self.shell.links.get_mut(&conn);
                    link.unwrap_or_else(|| panic!("{conn:?} is closed, but not open"))
                        .closing = true;
                }
                Effect::Log(_) => {}
                Effect::Reload { request } => self.reloads.push(request),
                Effect::Drained => self.drained = true,
            }
        }
        self.model.batch_ended();
        self.release();
    }

    /// What must hold after every step.
    pub(crate) fn check(&mut self) {
        // What lapsed counts until somebody lets the engine look at the time.
        if self.drained || self.due().is_some_and(|due| due <= self.now) {
            return;
        }
        self.model.check_quotas(&self.engine);
        let waits = |name: &str| self.engine.usage(&role(name)).waiting_bytes > 0;
        let full = waits("alice") || waits("bob") || waits("files") || waits("admin");
        self.model.coverage.outboxes_full += u64::from(full);
    }

    /// What must hold when everybody has gone.
    pub(crate) fn check_all_returned(&self) {
        if self.drained {
            return;
        }
        self.model.check_all_returned(&self.engine);
    }
}

fn time(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis).expect("virtual time stays small")
}
