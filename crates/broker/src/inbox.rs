//! What came in and was not taken by the reactor yet. Its length is bounded by what fills it: every
//! connection waits after one read until the reactor has taken it, and connections are counted.

use std::cell::RefCell;

use engine::{ConnId, RequestId};
use proto::{DecodeError, Decoded};
use store::Head;
use tokio::net::UnixStream;
use tokio::sync::Notify;

use crate::decoding::FrameSpace;
use crate::lobby::Slot;
use crate::reload::Reloaded;
use crate::signals::Signal;

/// One thing that came in.
#[derive(Debug)]
pub enum Input {
    /// A peer that its role admits.
    Accepted(Accepted),
    /// A frame, decoded or not; what it weighs is given back once the engine has seen it.
    Frame {
        /// From whom.
        conn: ConnId,
        /// What was understood, or why nothing was.
        frame: Result<Decoded, DecodeError>,
        /// Its share of its role's bytes, if it is large.
        space: Option<FrameSpace>,
    },
    /// Nothing more comes from a connection.
    Ended {
        /// Which one.
        conn: ConnId,
        /// Why.
        reason: Reason,
    },
    /// Bytes have left for a connection.
    Written {
        /// Which one.
        conn: ConnId,
        /// How many.
        bytes: u64,
    },
    /// Everything up to this head is durable; or why nothing more will be.
    Stored(Result<Head, String>),
    /// A snapshot is written, and counts once it is recorded; or why there is none.
    Snapshot(Result<engine::Snapshot, String>),
    /// A configuration was loaded, or not.
    Reloaded {
        /// The operator's request, if it was one.
        request: Option<RequestId>,
        /// What is new, or every fault in words.
        outcome: Result<Reloaded, String>,
    },
    /// An operator asks for a reload.
    Reload(RequestId),
    /// A signal.
    Signal(Signal),
}

/// Why a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The peer closed it.
    Closed,
    /// The system could not read it.
    ReadFailed,
    /// What came was no frame.
    BadFrame,
    /// The peer took nothing for too long.
    WriteTimeout,
    /// The peer takes nothing any more.
    WriteFailed,
    /// A new configuration does not admit it.
    FitsNoMore,
}

impl Reason {
    /// The reason as the log writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Closed => "closed",
            Reason::ReadFailed => "read_failed",
            Reason::BadFrame => "bad_frame",
            Reason::WriteTimeout => "write_timeout",
            Reason::WriteFailed => "write_failed",
            Reason::FitsNoMore => "fits_no_more",
        }
    }

    /// Whether what was said to the peer can still reach it.
    pub fn can_write(self) -> bool {
        match self {
            Reason::Closed | Reason::ReadFailed | Reason::BadFrame | Reason::FitsNoMore => true,
            Reason::WriteTimeout | Reason::WriteFailed => false,
        }
    }
}

/// A peer that its role admits.
#[derive(Debug)]
pub struct Accepted {
    /// Its connection.
    pub stream: UnixStream,
    /// Its place among its role's connections.
    pub slot: Slot,
    /// Its uid at accept.
    pub uid: u32,
    /// Its primary gid at accept.
    pub gid: u32,
}

/// The one list that everything comes in by.
#[derive(Debug, Default)]
pub struct Inbox {
    inputs: RefCell<Vec<Input>>,
    wake: Notify,
}

impl Inbox {
    /// Adds one.
    pub fn push(&self, input: Input) {
        let mut inputs = self.inputs.borrow_mut();
        if inputs.is_empty() {
            self.wake.notify_one();
        }
        inputs.push(input);
    }

    /// Wakes the reactor although nothing came in.
    pub fn wake(&self) {
        self.wake.notify_one();
    }

    /// Waits until there is something to do.
    pub async fn filled(&self) {
        self.wake.notified().await;
    }

    /// Swaps what came in for an empty list.
    pub fn take(&self, batch: &mut Vec<Input>) {
        debug_assert!(batch.is_empty(), "the last batch was not worked off");
        std::mem::swap(&mut *self.inputs.borrow_mut(), batch);
    }

    /// Whether nothing came in.
    pub fn is_empty(&self) -> bool {
        self.inputs.borrow().is_empty()
    }
}
