//! What goes out: frames, records, closes, log lines.

use bytes::Bytes;
use proto::{ApprovalId, CallId, GrantId, RoleName, SessionId, ToolName};

use crate::event::{ConnId, RequestId};
use crate::record::{Record, RecordId};

/// What goes out, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Send a frame, once the record `after` is durable. Frames of one connection keep their
    /// order. The frame is `proto::encode_with(id, is_final, &msg, …)`.
    Send {
        /// To whom: an open connection.
        conn: ConnId,
        /// The last record that it depends on.
        after: Option<RecordId>,
        /// The envelope's id.
        id: u64,
        /// The envelope's `final`.
        is_final: bool,
        /// The canonical bytes of the envelope's `msg`.
        msg: Bytes,
    },
    /// Make this durable. Ids grow by one.
    Record {
        /// Its number.
        id: RecordId,
        /// What is recorded.
        record: Record,
    },
    /// Close a connection once everything sent to it before has left.
    Close {
        /// Which; the engine has forgotten it, the shell need not say `Closed`.
        conn: ConnId,
    },
    /// Write a log line.
    Log(Log),
    /// An operator asks for a reload: answer with `Configured` or `ConfigRefused`.
    Reload {
        /// Who asks.
        request: RequestId,
    },
    /// A drain is over: flush what was sent, and exit.
    Drained,
}

/// A list of effects that a caller gives and empties.
pub type Effects = Vec<Effect>;

/// How much a log line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For somebody who looks into one call.
    Debug,
    /// The ordinary course.
    Info,
    /// Somebody may have to act.
    Warn,
}

/// A log line: stable fields (DESIGN 10), never an argument, a content or a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// How much it matters.
    pub level: Level,
    /// What happened, a stable word.
    pub event: &'static str,
    /// The role that it is about.
    pub role: Option<RoleName>,
    /// The session.
    pub session: Option<SessionId>,
    /// The call.
    pub call: Option<CallId>,
    /// The tool.
    pub tool: Option<ToolName>,
    /// `permit`, `ask` or `deny`.
    pub decision: Option<&'static str>,
    /// A deny reason or a failure code, or a fixed text.
    pub reason: Option<&'static str>,
    /// The grant that decided.
    pub grant: Option<GrantId>,
    /// The approval.
    pub approval: Option<ApprovalId>,
    /// Since the request came, in microseconds (of a millisecond clock).
    pub elapsed_us: Option<u64>,
}
