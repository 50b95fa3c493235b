//! Sessions, calls, approvals, routing and quotas: one state machine, events in, effects out
//! (DESIGN 7 and 8). No I/O, no clock, no randomness, no unordered iteration: the same events give
//! the same effects.

// A new variant of an enum must be looked at everywhere.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod account;
mod answer;
mod approval;
mod call;
mod conn;
mod content;
mod control;
mod cover;
pub mod digest;
mod dispatch;
pub mod effect;
pub mod engine;
pub mod event;
mod explain;
mod flight;
mod judge;
mod lifecycle;
pub mod limits;
pub mod part;
mod put_back;
mod received;
pub mod record;
mod refused;
mod replay;
mod restore;
mod session;
mod showing;
mod snapshot;
mod state;
mod tail;
mod timers;
mod tools;
mod turns;
mod upshot;
mod vote;

pub use effect::{Effect, Effects, Level, Log};
pub use engine::{Engine, Usage};
pub use event::{ConnId, Event, Peer, RequestId, Snapshot};
pub use part::Part;
pub use record::{Basis, By, CallKey, OfferedTool, PutBack, Record, RecordId, SessionKey};
