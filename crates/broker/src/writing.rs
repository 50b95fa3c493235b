//! The writing half of a connection: at once as far as the peer takes it, and by a task that waits
//! for the peer where it does not.

use std::cell::Cell;
use std::io::ErrorKind;
use std::rc::Rc;

use tokio::time::{Instant, timeout_at};

use crate::connection::Conn;
use crate::inbox::{Inbox, Input, Reason};
use crate::reading::Pace;

/// What became of an attempt to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// Everything that may leave has left.
    All(u64),
    /// The peer takes no more for now.
    Blocked(u64),
    /// The peer is gone.
    Gone,
}

/// Writes as much as the peer takes without waiting.
pub fn write_now(conn: &Conn) -> Written {
    let mut outbox = conn.outbox.borrow_mut();
    let mut bytes = 0;
    while !outbox.ready().is_empty() {
        match conn.stream.try_write(outbox.ready()) {
            Ok(0) => return Written::Gone,
            Ok(written) => {
                outbox.left(written);
                bytes += written as u64;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Written::Blocked(bytes),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return Written::Gone,
        }
    }
    Written::All(bytes)
}

/// Goes on writing as the peer takes it, until nothing is left that may leave. No progress for
/// `write_timeout` ends the connection, and so does the deadline of its closing.
pub async fn write_on(conn: Rc<Conn>, inbox: Rc<Inbox>, pace: Rc<Cell<Pace>>) {
    loop {
        let patience = Instant::now() + pace.get().write_timeout;
        let deadline = conn.closing.get().map_or(patience, |end| end.min(patience));
        let (written, otherwise) = match timeout_at(deadline, conn.stream.writable()).await {
            Err(_) => (Written::Gone, Reason::WriteTimeout),
            Ok(Err(_)) => (Written::Gone, Reason::WriteFailed),
            Ok(Ok(())) => (write_now(&conn), Reason::WriteFailed),
        };
        let (bytes, done) = match written {
            Written::All(bytes) => (bytes, true),
            Written::Blocked(bytes) => (bytes, false),
            Written::Gone => {
                return inbox.push(Input::Ended {
                    conn: conn.id,
                    reason: otherwise,
                });
            }
        };
        if done {
            conn.writing.set(false);
        }
        if bytes > 0 || done {
            inbox.push(Input::Written {
                conn: conn.id,
                bytes,
            });
        }
        if done {
            return;
        }
    }
}
