//! What the tests share: a place with a configuration, the daemon in it, peers on its sockets, and other
//! programs.

mod chance;
mod daemon;
mod log;
mod peer;
mod place;
mod programs;
mod terminal;

pub(crate) use chance::{Chance, seed_of};
pub(crate) use daemon::Daemon;
pub(crate) use log::Log;
pub(crate) use peer::{EchoRunner, Peer, envelope, result};
pub(crate) use place::Place;
pub(crate) use programs::{Program, as_user, can_be_others, finished, program, python};
pub(crate) use terminal::Terminal;

use std::time::Duration;

/// How long a test waits for something that must happen, before it fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(50);
