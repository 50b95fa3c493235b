//! What is on its way to one connection: bytes that may leave, behind them frames that wait for a
//! record to be durable. Frames keep their order. How much may be here is the engine's to bound
//! (`engine::limits::OUTBOX_BYTES`).

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};
use engine::RecordId;

use crate::durable::Durable;

/// An empty outbox gives memory over this back.
const KEPT_BYTES: usize = 64 << 10;

/// One connection's outgoing bytes and frames.
#[derive(Debug, Default)]
pub struct Outbox {
    ready: BytesMut,
    held: VecDeque<Frame>,
}

/// One frame to be written, and the last record that it depends on.
#[derive(Debug)]
pub struct Frame {
    /// The record that must be durable before it leaves.
    pub after: Option<RecordId>,
    /// The envelope's id.
    pub id: u64,
    /// The envelope's `final`.
    pub is_final: bool,
    /// The canonical bytes of its message.
    pub msg: Bytes,
}

impl Outbox {
    /// Appends a frame. It may leave at once if its record is durable and nothing before it waits.
    pub fn push(&mut self, frame: Frame, durable: &Durable) {
        if self.held.is_empty() && durable.covers(frame.after) {
            self.write(&frame);
        } else {
            self.held.push_back(frame);
        }
    }

    /// Lets every frame go whose record is durable by now, and none before those ahead of it.
    pub fn release(&mut self, durable: &Durable) {
        while let Some(frame) = self.held.pop_front_if(|frame| durable.covers(frame.after)) {
            self.write(&frame);
        }
    }

    /// The bytes that may leave.
    pub fn ready(&self) -> &[u8] {
        &self.ready
    }

    /// Whether frames wait for a record.
    pub fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.held.is_empty()
    }

    /// So many bytes have left.
    pub fn left(&mut self, bytes: usize) {
        self.ready.advance(bytes.min(self.ready.len()));
        if self.ready.is_empty() && self.ready.capacity() > KEPT_BYTES {
            self.ready = BytesMut::new();
        }
    }

    fn write(&mut self, frame: &Frame) {
        proto::encode_with(frame.id, frame.is_final, &frame.msg, &mut self.ready);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(id: u64, after: Option<u64>) -> Frame {
        Frame {
            after: after.map(RecordId),
            id,
            is_final: true,
            msg: Bytes::from_static(b"{}"),
        }
    }

    fn durable_to(id: u64) -> Durable {
        let mut durable = Durable::default();
        durable.stored(RecordId(id));
        durable
    }

    /// The ids of the frames that may leave.
    fn leaving(outbox: &Outbox) -> Vec<u64> {
        let mut bytes = BytesMut::from(outbox.ready());
        let mut ids = Vec::new();
        while let Ok(Some(frame)) = proto::frame::split(&mut bytes, 1 << 20) {
            let value: serde_json::Value = serde_json::from_slice(&frame).expect("JSON");
            ids.push(value["id"].as_u64().expect("an id"));
        }
        ids
    }

    #[test]
    fn a_frame_leaves_only_after_its_record_and_never_before_its_elders() {
        let mut outbox = Outbox::default();
        let nothing = Durable::default();
        outbox.push(frame(1, None), &nothing);
        outbox.push(frame(2, Some(5)), &nothing);
        outbox.push(frame(3, None), &nothing);
        outbox.push(frame(4, Some(6)), &nothing);
        assert_eq!(leaving(&outbox), [1]);
        outbox.release(&durable_to(4));
        assert_eq!(leaving(&outbox), [1]);
        outbox.release(&durable_to(5));
        assert_eq!(leaving(&outbox), [1, 2, 3]);
        assert!(outbox.holds());
        outbox.release(&durable_to(6));
        assert_eq!(leaving(&outbox), [1, 2, 3, 4]);
        assert!(!outbox.holds());
    }

    #[test]
    fn what_has_left_does_not_leave_again() {
        let mut outbox = Outbox::default();
        outbox.push(frame(1, None), &Durable::default());
        let length = outbox.ready().len();
        outbox.left(length - 1);
        assert_eq!(outbox.ready(), b"}");
        outbox.left(1);
        assert!(outbox.is_empty());
    }
}
