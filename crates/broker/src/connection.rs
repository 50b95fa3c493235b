//! One connection, as the reactor, its reader and its writer share it. All run on one thread.

use std::cell::{Cell, RefCell};
use std::io::Read;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream as StdStream;

use engine::ConnId;
use proto::RoleName;
use tokio::net::UnixStream;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::lobby::Slot;
use crate::outbox::Outbox;

/// Bytes that are thrown away at most when a connection with unread bytes is closed.
const MAX_DISCARDED: usize = 1 << 20;

/// One connection.
#[derive(Debug)]
pub struct Conn {
    /// Its number.
    pub id: ConnId,
    /// Its uid at accept.
    pub uid: u32,
    /// Its primary gid at accept.
    pub gid: u32,
    /// Its place among its role's connections.
    pub slot: Slot,
    /// The socket.
    pub stream: UnixStream,
    /// What is on its way to it.
    pub outbox: RefCell<Outbox>,
    /// Frames of it in the inbox.
    pub untaken: Cell<usize>,
    /// Whether the engine wants nothing more of it for now.
    pub paused: Cell<bool>,
    /// Wakes its reader once its frames were taken.
    pub resume: Notify,
    /// Its reader, to be stopped.
    pub reader: RefCell<Option<AbortHandle>>,
    /// Whether a writer waits until it takes more.
    pub writing: Cell<bool>,
    /// Until when it is flushed, once it is being closed.
    pub closing: Cell<Option<Instant>>,
    /// What the reactor has to look at before its turn ends.
    pub marks: Marks,
}

/// On which of the reactor's lists a connection is already.
#[derive(Debug, Default)]
pub struct Marks {
    /// It may have bytes to write.
    pub dirty: Cell<bool>,
    /// It holds frames that wait for a record.
    pub holding: Cell<bool>,
    /// Its reader waits for a word.
    pub served: Cell<bool>,
}

impl Conn {
    /// A connection that was just accepted.
    pub fn new(id: ConnId, accepted: crate::inbox::Accepted) -> Self {
        Self {
            id,
            uid: accepted.uid,
            gid: accepted.gid,
            slot: accepted.slot,
            stream: accepted.stream,
            outbox: RefCell::default(),
            untaken: Cell::new(0),
            paused: Cell::new(false),
            resume: Notify::new(),
            reader: RefCell::default(),
            writing: Cell::new(false),
            closing: Cell::new(None),
            marks: Marks::default(),
        }
    }

    /// Its role.
    pub fn role(&self) -> &RoleName {
        &self.slot.room.role
    }

    /// Whether its reader may go on.
    pub fn may_read(&self) -> bool {
        self.untaken.get() == 0 && !self.paused.get()
    }

    /// Stops reading from it.
    pub fn stop_reading(&self) {
        if let Some(reader) = self.reader.borrow_mut().take() {
            reader.abort();
        }
    }

    /// Ends it in both directions. What the peer had sent and nobody read is thrown away: closing a
    /// Unix socket with unread bytes would take the last answer for a broken connection.
    pub fn cut(&self) {
        self.stop_reading();
        let Ok(copy) = self.stream.as_fd().try_clone_to_owned() else {
            return;
        };
        let mut stream = StdStream::from(copy);
        if stream.shutdown(Shutdown::Both).is_err() {
            return;
        }
        let mut scratch = [0; 4096];
        let mut discarded = 0;
        while discarded < MAX_DISCARDED {
            match stream.read(&mut scratch) {
                Ok(0) | Err(_) => return,
                Ok(read) => discarded += read,
            }
        }
    }
}
