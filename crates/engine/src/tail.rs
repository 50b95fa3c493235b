//! Operators that are told what happens, as it happens: the log's lines, never more.

use proto::control::EventStatus;
use proto::{ControlReply, Message};

use crate::conn::frame_len;
use crate::effect::{Level, Log};
use crate::engine::Engine;
use crate::event::ConnId;

/// A connection that is told.
#[derive(Debug)]
pub(crate) struct Tail {
    /// The request that asked for it.
    request: u64,
    /// Events that it could not take.
    missed: u64,
}

impl Engine {
    pub(crate) fn begin_tail(&mut self, conn: ConnId, request: u64) {
        if self.tails.contains_key(&conn) {
            return self.bad_message(conn, request, "msg.body: this connection is told already");
        }
        self.tails.insert(conn, Tail { request, missed: 0 });
    }

    /// Tells everyone whose outbox has room; others are told how much they missed.
    pub(crate) fn tell_tails(&mut self, log: &Log) {
        if self.tails.is_empty() || log.level < Level::Info {
            return;
        }
        let mut event = status(self.now, log);
        for (conn, mut tail) in std::mem::take(&mut self.tails) {
            event.missed = tail.missed;
            let event = event.clone();
            let msg = Message::ControlReply(ControlReply::Event { event });
            let msg = proto::encode_message(&msg);
            let takes = |c: &crate::conn::Conn| c.takes(frame_len(&msg));
            if self.conns.get(&conn).is_some_and(takes) {
                self.send(conn, None, tail.request, false, msg);
                tail.missed = 0;
            } else {
                tail.missed += 1;
            }
            self.tails.insert(conn, tail);
        }
    }
}

fn status(at: proto::Timestamp, log: &Log) -> EventStatus {
    fn text<T: ToString>(value: Option<&T>) -> String {
        value.map(T::to_string).unwrap_or_default()
    }
    EventStatus {
        at,
        event: log.event.to_owned(),
        role: text(log.role.as_ref()),
        session: text(log.session.as_ref()),
        call: log.call.unwrap_or(proto::CallId(0)),
        tool: text(log.tool.as_ref()),
        decision: text(log.decision.as_ref()),
        reason: text(log.reason.as_ref()),
        grant: text(log.grant.as_ref()),
        approval: text(log.approval.as_ref()),
        elapsed_us: log.elapsed_us.unwrap_or(0),
        missed: 0,
    }
}
