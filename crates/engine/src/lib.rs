//! Sessions, calls, approvals, routing and quotas: one state machine, events in, effects out
//! (DESIGN 7 and 8). No I/O, no clock, no randomness, no unordered iteration: the same events give
//! the same effects.

pub mod effect;
pub mod engine;
pub mod event;
pub mod limits;
pub mod record;

pub use effect::{Effect, Effects, Level, Log};
pub use engine::{Engine, Usage};
pub use event::{ConnId, Event, Peer, RequestId};
pub use record::{By, CallKey, Record, RecordId, SessionKey};
