//! How the command says by its exit code what happened.

use client::Error;

/// How a command ended; 0 is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit(pub u8);

/// It was done.
pub const DONE: Exit = Exit(0);
/// It was not done: the broker or a person did not take it, or the demo did not show what it should.
pub const NOT_DONE: Exit = Exit(1);
/// The call was denied.
pub const DENIED: Exit = Exit(3);
/// The call failed.
pub const FAILED: Exit = Exit(4);

/// The configuration has faults.
pub const CONFIGURATION: Exit = Exit(78);

/// A second ^C ended it before the answer came.
pub const INTERRUPTED: Exit = Exit(130);

/// The command line was wrong.
pub const USAGE: u8 = 64;
/// What `replay` or `suggest --past` reads cannot be read.
pub const NO_INPUT: u8 = 66;
/// The broker cannot be reached.
pub const UNAVAILABLE: u8 = 69;
/// The broker or this command is at fault.
pub const INTERNAL: u8 = 70;
/// The broker does not admit this user.
pub const PERMISSION: u8 = 77;

/// A mistake in what was typed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// What was asked for cannot be done any more.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotDone(pub String);

/// What is read, a file or the record, cannot be read, where 1 says something else.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unread(pub String);

/// A configuration would not be taken: its faults, or what does not fit it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Faulty(pub String);

/// The code for what went wrong.
pub fn code_of(error: &anyhow::Error) -> u8 {
    if error.downcast_ref::<Usage>().is_some() {
        return USAGE;
    }
    if error.downcast_ref::<NotDone>().is_some() {
        return NOT_DONE.0;
    }
    if error.downcast_ref::<Unread>().is_some() {
        return NO_INPUT;
    }
    if error.downcast_ref::<Faulty>().is_some() {
        return CONFIGURATION.0;
    }
    match error.downcast_ref::<Error>() {
        Some(Error::Connect { .. } | Error::NoWelcome { .. } | Error::Lost { .. }) => UNAVAILABLE,
        Some(Error::NotAdmitted { .. }) => PERMISSION,
        Some(Error::Name(_) | Error::WrongKind { .. } | Error::TooLarge { .. }) => USAGE,
        Some(Error::Rejected { .. } | Error::OfferRefused { .. }) => NOT_DONE.0,
        Some(Error::Misbehaved { .. }) | None => INTERNAL,
    }
}
