//! One thread that writes: whatever waits becomes durable in one transaction.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use engine::{Record, RecordId};
use proto::Timestamp;

use crate::chain::Head;
use crate::error::StoreError;
use crate::row::Keep;
use crate::store::Store;

/// How often it looks for contents to forget.
const FORGET_EVERY: Duration = Duration::from_secs(10);

/// What is to be written.
#[derive(Debug)]
struct Batch {
    records: Vec<(RecordId, Record)>,
    keep: Keep,
    now: Timestamp,
}

/// The thread, and the way to it.
#[derive(Debug)]
pub struct Writer {
    queue: Sender<Batch>,
    thread: JoinHandle<()>,
}

impl Writer {
    /// Starts it. `told` hears up to where all is durable, after each transaction; or why none will be any more.
    ///
    /// # Errors
    /// There can be no thread.
    pub fn start(
        store: Store,
        told: impl FnMut(Result<Head, StoreError>) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (queue, waiting) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || write_all(store, &waiting, told))?;
        Ok(Self { queue, thread })
    }

    /// Hands records over; `now` is the broker's time. It never waits. After a failure nothing is written any more.
    pub fn write(&self, records: Vec<(RecordId, Record)>, keep: Keep, now: Timestamp) {
        // It has told why it ended.
        let _ = self.queue.send(Batch { records, keep, now });
    }

    /// Writes what waits, and ends.
    pub fn end(self) {
        drop(self.queue);
        // Its panic has ended the process.
        let _ = self.thread.join();
    }
}

fn write_all(
    mut store: Store,
    waiting: &Receiver<Batch>,
    mut told: impl FnMut(Result<Head, StoreError>),
) {
    let mut now = Timestamp::default();
    let mut heard = Instant::now();
    let mut looked = Instant::now();
    loop {
        let batch = match waiting.recv_timeout(FORGET_EVERY) {
            Ok(batch) => Some(batch),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        if let Some(Batch {
            mut records,
            mut keep,
            now: at,
        }) = batch
        {
            now = at;
            heard = Instant::now();
            for more in waiting.try_iter() {
                (now, keep) = (more.now, more.keep);
                records.extend(more.records);
            }
            match store.append(records, keep) {
                Ok(()) => told(Ok(store.head().clone())),
                Err(error) => return told(Err(error)),
            }
        }
        if looked.elapsed() >= FORGET_EVERY {
            looked = Instant::now();
            if let Err(error) = store.forget(now.plus(millis(heard.elapsed()))) {
                return told(Err(error));
            }
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
