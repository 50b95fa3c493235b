//! What stands between the engine and its peers: connections with an order each, sends that wait
//! for their record, outboxes that drain slowly. It is the reactor without sockets.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use bytes::BytesMut;
use engine::{ConnId, RecordId};
use proto::Envelope;

use crate::store::Store;

/// A frame on its way to a peer.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) after: Option<RecordId>,
    /// With its length.
    pub(crate) bytes: usize,
    pub(crate) envelope: Rc<Envelope>,
    /// Names it to the model.
    pub(crate) ticket: u64,
}

/// One connection, as the broker's side sees it.
#[derive(Debug, Default)]
pub(crate) struct Link {
    /// Frames that the peer wrote, without their lengths.
    pub(crate) incoming: VecDeque<Vec<u8>>,
    /// Sends whose record is not durable yet, and what stands behind them.
    held: VecDeque<Outgoing>,
    /// Released, not yet read by the peer.
    outbox: VecDeque<Outgoing>,
    /// Bytes of the outbox's first frame that have left.
    left: usize,
    /// The peer is gone; the engine hears of it after what the peer wrote.
    pub(crate) gone: bool,
    /// The engine closed it; it goes once everything has left.
    pub(crate) closing: bool,
}

impl Link {
    pub(crate) fn has_outgoing(&self) -> bool {
        !self.held.is_empty() || !self.outbox.is_empty()
    }

    pub(crate) fn can_drain(&self) -> bool {
        !self.outbox.is_empty()
    }
}

/// Every connection.
#[derive(Debug, Default)]
pub(crate) struct Shell {
    pub(crate) links: BTreeMap<ConnId, Link>,
}

impl Shell {
    /// Takes a send: reads it back as a peer would, strictly.
    pub(crate) fn send(
        &mut self,
        conn: ConnId,
        after: Option<RecordId>,
        head: (u64, bool),
        msg: &[u8],
        ticket: u64,
    ) -> Rc<Envelope> {
        let mut frame = BytesMut::new();
        proto::encode_with(head.0, head.1, msg, &mut frame);
        let bytes = frame.len();
        let content = frame.split_off(4).freeze();
        let length = u32::from_be_bytes([frame[0], frame[1], frame[2], frame[3]]);
        assert_eq!(
            length as usize,
            content.len(),
            "a frame's length is its content's"
        );
        let decoded = match proto::decode_shared(content.clone()) {
            Ok(decoded) => decoded,
            Err(error) => panic!("the broker sent what does not decode: {error}: {content:?}"),
        };
        assert_eq!(
            decoded.msg, msg,
            "what the broker sends is in canonical writing"
        );
        let envelope = Rc::new(decoded.envelope);
        let link = self.links.get_mut(&conn);
        let link = link.unwrap_or_else(|| panic!("invariant 4: a send to {conn:?}, not open"));
        assert!(
            !link.closing,
            "invariant 4: a send to {conn:?} after its close"
        );
        link.held.push_back(Outgoing {
            after,
            bytes,
            envelope: envelope.clone(),
            ticket,
        });
        envelope
    }

    /// Releases what may go: in order, nothing before its record. Gives the tickets.
    pub(crate) fn release(&mut self, store: &Store) -> Vec<u64> {
        let mut released = Vec::new();
        for link in self.links.values_mut() {
            while let Some(front) = link.held.front() {
                if front.after.is_some_and(|record| !store.is_durable(record)) {
                    break;
                }
                released.push(front.ticket);
                link.outbox.extend(link.held.pop_front());
            }
        }
        released
    }

    /// So many bytes leave at most: how many did, and which frames arrived whole.
    pub(crate) fn drain(&mut self, conn: ConnId, most: usize) -> (u64, Vec<Rc<Envelope>>) {
        let mut budget = most;
        let mut arrived = Vec::new();
        let Some(link) = self.links.get_mut(&conn) else {
            return (0, arrived);
        };
        while let Some(front) = link.outbox.front() {
            let rest = front.bytes - link.left;
            if rest > budget {
                link.left += budget;
                budget = 0;
                break;
            }
            budget -= rest;
            link.left = 0;
            arrived.extend(link.outbox.pop_front().map(|outgoing| outgoing.envelope));
        }
        ((most - budget) as u64, arrived)
    }

    /// Connections for which `wanted` holds, in order.
    pub(crate) fn of(&self, wanted: impl Fn(&Link) -> bool) -> Vec<ConnId> {
        self.links
            .iter()
            .filter(|(_, link)| wanted(link))
            .map(|(conn, _)| *conn)
            .collect()
    }
}
