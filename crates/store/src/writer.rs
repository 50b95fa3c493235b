//! One thread that writes: whatever waits becomes durable in one transaction. Between two of these it makes room.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use engine::{Record, RecordId};
use policy::Config;
use proto::{RoleName, Timestamp};

use crate::chain::Head;
use crate::error::StoreError;
use crate::retention::Retention;
use crate::row::Keep;
use crate::snapshot::Made;
use crate::store::Store;

/// How often it looks for contents to forget.
const FORGET_EVERY: Duration = Duration::from_secs(10);
/// How long it waits for records before it goes on making room.
const BREATH: Duration = Duration::from_millis(2);
/// How long after a snapshot that could not be made the next is tried.
const TRY_AGAIN: Duration = Duration::from_secs(600);

/// What the thread hears.
#[derive(Debug)]
enum Word {
    Write(Batch),
    Configured(Arc<Config>),
    Made(Result<Made, StoreError>),
    End,
}

/// What is to be written.
#[derive(Debug)]
struct Batch {
    records: Vec<(RecordId, Record)>,
    keep: Keep,
    now: Timestamp,
}

/// What the thread says.
#[derive(Debug)]
pub enum Told {
    /// All is durable up to here.
    Durable(Head),
    /// A snapshot is written, and counts once this is recorded.
    Snapshot(engine::Snapshot),
    /// None could be made just now; the record grows meanwhile.
    NoSnapshot(StoreError),
    /// Nothing will be durable any more.
    Failed(StoreError),
}

/// The thread, and the way to it.
#[derive(Debug)]
pub struct Writer {
    queue: Sender<Word>,
    thread: JoinHandle<()>,
}

impl Writer {
    /// Starts it on a store all of whose records were read. `config` says what is kept, `now` is the broker's time.
    ///
    /// # Errors
    /// There can be no thread.
    pub fn start(
        store: Store,
        config: Arc<Config>,
        now: Timestamp,
        told: impl FnMut(Told) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (queue, waiting) = mpsc::channel();
        let writing = Writing {
            store,
            config,
            told,
            queue: queue.clone(),
            now,
            heard: Instant::now(),
            looked: Instant::now(),
            // What lapsed while nobody looked goes first.
            forgets: true,
            snapshot: Making::Nothing(Instant::now()),
        };
        let thread = std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || writing.run(&waiting))?;
        Ok(Self { queue, thread })
    }

    /// Hands records over; `now` is the broker's time. It never waits. After a failure nothing is written any more.
    pub fn write(&self, records: Vec<(RecordId, Record)>, keep: Keep, now: Timestamp) {
        // It has told why it ended.
        let _ = self.queue.send(Word::Write(Batch { records, keep, now }));
    }

    /// Another configuration says what is kept.
    pub fn configured(&self, config: Arc<Config>) {
        let _ = self.queue.send(Word::Configured(config));
    }

    /// Writes what waits, and ends.
    pub fn end(self) {
        let _ = self.queue.send(Word::End);
        // Its panic has ended the process.
        let _ = self.thread.join();
    }
}

/// How far the next snapshot is.
enum Making {
    /// None is due before then.
    Nothing(Instant),
    /// It is made on its own thread.
    Thread,
    /// Its parts are written.
    Parts(Made),
    /// Its record is awaited, and then what it makes room for is taken away.
    Record(u64),
}

struct Writing<T> {
    store: Store,
    config: Arc<Config>,
    told: T,
    queue: Sender<Word>,
    /// The broker's time, and when it was heard.
    now: Timestamp,
    heard: Instant,
    looked: Instant,
    /// There may be more to forget than was forgotten then.
    forgets: bool,
    snapshot: Making,
}

impl<T: FnMut(Told)> Writing<T> {
    fn run(mut self, waiting: &Receiver<Word>) {
        loop {
            match self.turn(waiting) {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => return (self.told)(Told::Failed(error)),
            }
        }
    }

    /// Whether there will be another.
    fn turn(&mut self, waiting: &Receiver<Word>) -> Result<bool, StoreError> {
        let patience = if self.makes_room() {
            BREATH
        } else {
            FORGET_EVERY
        };
        let first = match waiting.recv_timeout(patience) {
            Ok(word) => Some(word),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return Ok(false),
        };
        let mut all: Option<Batch> = None;
        let mut goes_on = true;
        for word in first.into_iter().chain(waiting.try_iter()) {
            match word {
                Word::Write(batch) => match &mut all {
                    Some(all) => {
                        all.records.extend(batch.records);
                        (all.keep, all.now) = (batch.keep, batch.now);
                    }
                    None => all = Some(batch),
                },
                Word::Configured(config) => self.config = config,
                Word::Made(made) => self.made(made)?,
                Word::End => goes_on = false,
            }
        }
        if let Some(batch) = all {
            (self.now, self.heard) = (batch.now, Instant::now());
            self.store.append(batch.records, batch.keep)?;
            (self.told)(Told::Durable(self.store.head().clone()));
        }
        if goes_on {
            self.make_room()?;
        }
        Ok(goes_on)
    }

    /// Whether there is a step to make at once.
    fn makes_room(&self) -> bool {
        self.forgets
            || self.store.has_leftovers()
            || match &self.snapshot {
                Making::Parts(_) => true,
                Making::Record(of) => self.store.counts(*of),
                Making::Nothing(from) => self.is_due(*from),
                Making::Thread => false,
            }
    }

    fn is_due(&self, from: Instant) -> bool {
        from <= Instant::now() && self.store.is_snapshot_due(self.retention(), self.now())
    }

    /// One small step.
    fn make_room(&mut self) -> Result<(), StoreError> {
        let now = self.now();
        if self.forgets || self.looked.elapsed() >= FORGET_EVERY {
            self.looked = Instant::now();
            let config = &self.config;
            let aged = self.store.forget(now)?;
            self.forgets = self.store.outgrow(|role| quota(config, role))? || aged;
        } else if self.store.has_leftovers() {
            self.store.sweep()?;
        } else {
            let retention = self.retention();
            match &mut self.snapshot {
                Making::Parts(made) => {
                    if let Some(snapshot) = self.store.put(made, retention, now)? {
                        self.snapshot = Making::Record(snapshot.of.0);
                        (self.told)(Told::Snapshot(snapshot));
                    }
                }
                Making::Record(of) if self.store.counts(*of) => {
                    self.snapshot = Making::Nothing(Instant::now());
                }
                Making::Nothing(from) => {
                    let from = *from;
                    if self.is_due(from) {
                        self.make_snapshot();
                    }
                }
                Making::Thread | Making::Record(_) => {}
            }
        }
        Ok(())
    }

    fn make_snapshot(&mut self) {
        let (queue, config) = (self.queue.clone(), self.config.clone());
        let file = PathBuf::from(self.store.file());
        let making = move || {
            // Where nobody listens any more, the process ends.
            let _ = queue.send(Word::Made(Made::of(&file, config)));
        };
        let thread = std::thread::Builder::new().name("snapshot".to_owned());
        self.snapshot = match thread.spawn(making) {
            Ok(_) => Making::Thread,
            Err(_) => Making::Nothing(Instant::now() + TRY_AGAIN),
        };
    }

    fn made(&mut self, made: Result<Made, StoreError>) -> Result<(), StoreError> {
        match made {
            Ok(made) => self.snapshot = Making::Parts(made),
            Err(error) if !error.may_pass() => return Err(error),
            Err(error) => {
                self.snapshot = Making::Nothing(Instant::now() + TRY_AGAIN);
                (self.told)(Told::NoSnapshot(error));
            }
        }
        Ok(())
    }

    fn retention(&self) -> Retention {
        Retention {
            age: self.config.settings.audit_ttl,
            bytes: self.config.settings.audit_bytes,
        }
    }

    /// The broker's time by now.
    fn now(&self) -> Timestamp {
        let millis = self.heard.elapsed().as_millis();
        self.now.plus(u64::try_from(millis).unwrap_or(u64::MAX))
    }
}

/// Bytes of arguments that are kept of a role that is there.
fn quota(config: &Config, role: &str) -> u64 {
    let role = RoleName::new(role).ok();
    let role = role.and_then(|role| config.roles.get(&role));
    role.map_or(policy::Quota::default().arguments_bytes, |role| {
        role.quota.arguments_bytes
    })
}
