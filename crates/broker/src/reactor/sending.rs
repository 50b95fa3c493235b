//! What leaves: frames once their records are durable, one write for each receiver and round, and what
//! the engine is told of it.

use std::cell::Cell;
use std::rc::Rc;

use engine::{ConnId, Event};
use tokio::time::{Instant, timeout_at};

use super::Reactor;
use crate::connection::{Conn, Marks};
use crate::exit::Exit;
use crate::inbox::Reason;
use crate::outbox::Frame;
use crate::writing::{self, Written};

impl Reactor {
    pub(super) fn send(&mut self, conn: ConnId, frame: Frame) {
        let Some(conn) = self.conns.get(&conn) else {
            return;
        };
        if conn.closing.get().is_some() {
            return;
        }
        let mut outbox = conn.outbox.borrow_mut();
        outbox.push(frame, &self.durable);
        if outbox.holds() {
            mark(&mut self.holding, conn, |marks| &marks.holding);
        } else {
            mark(&mut self.dirty, conn, |marks| &marks.dirty);
        }
    }

    pub(super) fn close(&mut self, conn: ConnId) {
        if let Some(conn) = self.conns.get(&conn) {
            conn.stop_reading();
            conn.closing
                .set(Some(Instant::now() + self.pace.get().write_timeout));
            mark(&mut self.dirty, conn, |marks| &marks.dirty);
        }
    }

    /// Hands this turn's records to the store.
    pub(super) fn commit(&mut self) {
        self.durable.commit(&self.loaded.config, self.now);
    }

    /// Frames whose records have become durable may leave.
    pub(super) fn release(&mut self) {
        let mut still = Vec::new();
        for conn in self.holding.drain(..) {
            conn.marks.holding.set(false);
            let mut outbox = conn.outbox.borrow_mut();
            outbox.release(&self.durable);
            if outbox.holds() {
                mark(&mut still, &conn, |marks| &marks.holding);
            }
            drop(outbox);
            mark(&mut self.dirty, &conn, |marks| &marks.dirty);
        }
        self.holding = still;
    }

    /// Writes once for every receiver, and tells the engine what has left.
    pub(super) fn write(&mut self) {
        let mut dirty = std::mem::take(&mut self.dirty);
        for conn in dirty.drain(..) {
            conn.marks.dirty.set(false);
            if !conn.writing.get() {
                match writing::write_now(&conn) {
                    Written::All(bytes) => self.tell_written(&conn, bytes),
                    Written::Blocked(bytes) => {
                        self.tell_written(&conn, bytes);
                        conn.writing.set(true);
                        tokio::task::spawn_local(writing::write_on(
                            Rc::clone(&conn),
                            Rc::clone(&self.inbox),
                            Rc::clone(&self.pace),
                        ));
                    }
                    Written::Gone => self.end(conn.id, Reason::WriteFailed),
                }
            }
            if conn.closing.get().is_some() && conn.outbox.borrow().is_empty() {
                self.forget(conn.id);
            }
        }
        // What the engine answered to that is for the next round.
        dirty.append(&mut self.dirty);
        self.dirty = dirty;
    }

    pub(super) fn tell_written(&mut self, conn: &Rc<Conn>, bytes: u64) {
        if bytes > 0 && conn.closing.get().is_none() && self.conns.contains_key(&conn.id) {
            let id = conn.id;
            self.handle(Event::Written { conn: id, bytes });
            if conn.paused.get() {
                mark(&mut self.served, conn, |marks| &marks.served);
            }
        }
    }

    pub(super) fn let_readers_go_on(&mut self) {
        for conn in self.served.drain(..) {
            conn.marks.served.set(false);
            let ahead = self.durable.is_ahead(conn.role());
            conn.paused.set(ahead || !self.engine.may_read(conn.id));
            if conn.may_read() {
                conn.resume.notify_one();
            }
        }
    }

    /// The last records become durable and the last bytes leave, for at most `write_timeout`; nothing is read any more.
    pub(super) async fn flush_all(&mut self) -> Result<(), Exit> {
        self.doors.close();
        for conn in self.conns.values() {
            conn.stop_reading();
        }
        let end = Instant::now() + self.pace.get().write_timeout;
        while !self.durable.is_settled()
            || !self.conns.values().all(|c| c.outbox.borrow().is_empty())
        {
            if timeout_at(end, self.inbox.filled()).await.is_err() {
                tracing::warn!(event = "flush_cut_short");
                return Ok(());
            }
            self.turn()?;
        }
        for conn in self.conns.values() {
            conn.cut();
        }
        if let Some(head) = self.heads.last() {
            self.keeper.keep(head);
        }
        self.durable.end();
        Ok(())
    }
}

/// Puts a connection on a list, once.
pub(super) fn mark(list: &mut Vec<Rc<Conn>>, conn: &Rc<Conn>, of: fn(&Marks) -> &Cell<bool>) {
    if !of(&conn.marks).replace(true) {
        list.push(Rc::clone(conn));
    }
}
