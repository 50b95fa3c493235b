//! What comes in: from sockets, from the configuration, from signals.

use std::sync::Arc;

use policy::Config;
use proto::{DecodeError, Decoded, Digest, RoleName};

use crate::record::RecordId;

/// One connection. The shell numbers them and never uses a number twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(pub u64);

/// Who is at the other end: the role by the socket, the rest by the kernel (DESIGN 5). The shell
/// has checked that the role admits it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Whose socket it reached.
    pub role: RoleName,
    /// Its uid, as the kernel said at accept.
    pub uid: u32,
}

/// A request that a later effect or event answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestId {
    /// The connection that asked.
    pub conn: ConnId,
    /// Its number there.
    pub id: u64,
}

/// A snapshot that is written, and what it makes room for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The last record that is in it.
    pub of: RecordId,
    /// SHA-256 over its parts.
    pub hash: Digest,
    /// The first record that is kept: older ones are given up.
    pub begins: RecordId,
    /// The chain's hash before that one.
    pub before: Digest,
}

/// What comes in.
#[derive(Debug, Clone)]
#[expect(
    clippy::large_enum_variant,
    reason = "an event is handed over once, and never stored"
)]
pub enum Event {
    /// An admitted peer. Comes before anything else about `conn`.
    Connected {
        /// Its number.
        conn: ConnId,
        /// Who it is.
        peer: Peer,
    },
    /// A frame of it, decoded or not.
    Received {
        /// From whom.
        conn: ConnId,
        /// What was understood, or why nothing was.
        frame: Result<Decoded, DecodeError>,
        /// A fresh random number: the engine makes its ids from it.
        nonce: u64,
    },
    /// So many bytes of what was sent to it (lengths included) have left for good.
    Written {
        /// To whom.
        conn: ConnId,
        /// How many bytes.
        bytes: u64,
    },
    /// It is gone. Nothing comes after it, and nothing may be sent to it.
    Closed {
        /// Who.
        conn: ConnId,
    },
    /// The configuration was loaded anew, on a signal or on an operator's request.
    Configured {
        /// The new one.
        config: Arc<Config>,
        /// Who asked, where an operator did.
        request: Option<RequestId>,
    },
    /// The configuration was not taken.
    ConfigRefused {
        /// Who asked, where an operator did.
        request: Option<RequestId>,
        /// Every fault, in words.
        why: String,
    },
    /// A snapshot of the state as of an earlier record is kept: from its record on it counts.
    Snapshot(Snapshot),
    /// More records are durable. The shell says it when it hears of it, however many became durable at once.
    Stored {
        /// How many are.
        records: u64,
        /// The end of the chain over them.
        head: Digest,
    },
    /// Take no new calls; end when those in flight have ended.
    Drain,
}
