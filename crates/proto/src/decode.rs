//! Bytes to envelopes and back, strictly (DESIGN 4).

use bytes::{BufMut, Bytes, BytesMut};

use crate::wire::{Envelope, ErrorCode, Message};

/// Why a frame was not accepted: the error to answer with, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code:?} under id {id}: {detail}")]
pub struct DecodeError {
    /// What the peer is told.
    pub code: ErrorCode,
    /// The frame's id where one could be read, else 0.
    pub id: u64,
    /// Whether the frame's kind could be read and is a reply's: the error then travels under id 0.
    pub reply: bool,
    /// The field's path and the rule; never a value.
    pub detail: String,
}

/// An accepted frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// What was understood.
    pub envelope: Envelope,
    /// The canonical writing of `envelope.msg`, to be forwarded behind a new head.
    pub msg: Bytes,
}

/// Decodes one frame's content.
///
/// # Errors
/// [`DecodeError`], as DESIGN 4 says under "bad input".
pub fn decode(frame: &[u8]) -> Result<Envelope, DecodeError> {
    decode_shared(Bytes::copy_from_slice(frame)).map(|decoded| decoded.envelope)
}

/// As [`decode`], and keeps the canonical bytes of the message.
///
/// # Errors
/// As [`decode`].
pub fn decode_shared(frame: Bytes) -> Result<Decoded, DecodeError> {
    let envelope: Envelope = serde_json::from_slice(&frame).map_err(|_| DecodeError {
        code: ErrorCode::BadMessage,
        id: 0,
        reply: false,
        detail: String::new(),
    })?;
    let msg = encode_message(&envelope.msg);
    Ok(Decoded { envelope, msg })
}

/// The canonical writing of an envelope, without its length.
pub fn encode(envelope: &Envelope) -> Vec<u8> {
    serde_json::to_vec(envelope).unwrap_or_default()
}

/// The canonical writing of a message: what stands behind `"msg":`.
pub fn encode_message(msg: &Message) -> Bytes {
    Bytes::from(serde_json::to_vec(msg).unwrap_or_default())
}

/// Appends the frame (its length too) of an envelope whose message is already written.
pub fn encode_with(id: u64, is_final: bool, msg: &[u8], out: &mut BytesMut) {
    let head = format!("{{\"v\":1,\"id\":{id},\"final\":{is_final},\"msg\":");
    out.put_u32((head.len() + msg.len() + 1) as u32);
    out.put_slice(head.as_bytes());
    out.put_slice(msg);
    out.put_u8(b'}');
}
