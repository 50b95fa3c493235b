//! Signals, as inputs.

use std::io;
use std::rc::Rc;

use tokio::signal::unix::{SignalKind, signal};

use crate::inbox::{Inbox, Input};

/// What somebody asks of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGHUP: load the configuration anew.
    Reload,
    /// SIGTERM or SIGINT: drain and end; a second one: end now.
    Terminate,
}

/// Catches signals from now on.
///
/// # Errors
/// The system refuses.
pub fn catch(inbox: &Rc<Inbox>) -> io::Result<()> {
    for (kind, meaning) in [
        (SignalKind::hangup(), Signal::Reload),
        (SignalKind::terminate(), Signal::Terminate),
        (SignalKind::interrupt(), Signal::Terminate),
    ] {
        let mut caught = signal(kind)?;
        let inbox = Rc::clone(inbox);
        tokio::task::spawn_local(async move {
            while caught.recv().await.is_some() {
                inbox.push(Input::Signal(meaning));
            }
        });
    }
    Ok(())
}
