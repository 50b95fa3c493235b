//! The engine's face; being written.

use std::sync::Arc;

use policy::Config;
use proto::{RoleName, Timestamp};

use crate::{ConnId, Effects, Event, Record};

/// The one state machine.
#[derive(Debug)]
pub struct Engine {
    _config: Arc<Config>,
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
    /// Pending approvals of the role's calls, and its standing approvals.
    pub approvals: u64,
    /// Bytes that wait for or from the role.
    pub waiting_bytes: u64,
    /// Bytes of kept answers.
    pub stored_bytes: u64,
}

impl Engine {
    /// An engine with nothing in it.
    pub fn new(config: Arc<Config>, now: Timestamp) -> Self {
        let _ = now;
        Self { _config: config }
    }

    /// An engine as the records left it. Records are the durable ones, in order; `next` is the
    /// number of the next record. Effects are those of what lapsed or was interrupted meanwhile.
    pub fn restore(
        config: Arc<Config>,
        now: Timestamp,
        records: impl IntoIterator<Item = Record>,
        effects: &mut Effects,
    ) -> Self {
        let _ = (records, effects);
        Self::new(config, now)
    }

    /// Takes one event. `now` may not fall; if it does, the largest so far counts.
    pub fn handle(&mut self, now: Timestamp, event: Event, effects: &mut Effects) {
        let _ = (now, event, effects);
    }

    /// When `handle_timeout` wants to be called next.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        None
    }

    /// Does everything that is due at `now`.
    pub fn handle_timeout(&mut self, now: Timestamp, effects: &mut Effects) {
        let _ = (now, effects);
    }

    /// Whether the shell may go on reading from a connection: false while more waits for it than
    /// it takes. It becomes true again only by `Written` (or the connection closes).
    pub fn may_read(&self, conn: ConnId) -> bool {
        let _ = conn;
        true
    }

    /// What a role uses of its quotas.
    pub fn usage(&self, role: &RoleName) -> Usage {
        let _ = role;
        Usage::default()
    }
}
