//! Bytes to envelopes and back, strictly (DESIGN 4).
//!
//! The round-trip rule: a frame is accepted only if what was understood, written back, says the
//! same. That closes what serde alone lets through, such as arrays for structs.

use std::fmt::Write as _;
use std::io;
use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};

use crate::frame;
use crate::scan::{self, Head, ScanError, Version};
use crate::wire::{self, Envelope, ErrorCode, Message};
use crate::{detail, json};

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
    /// The canonical writing of `envelope.msg`, to be forwarded behind a new head. A part of the
    /// frame itself, without a copy, where that was written canonically.
    pub msg: Bytes,
}

/// Decodes one frame's content. That a request's id is not 0 is for the caller to see.
///
/// # Errors
/// [`DecodeError`], as DESIGN 4 says under "bad input": `bad_frame` for what is not JSON,
/// `bad_version` for an integer `v` other than 1, `bad_message` for the rest. Where a limit ends the
/// scan, what was read before it decides.
pub fn decode(frame: &[u8]) -> Result<Envelope, DecodeError> {
    understand(frame).map(|understood| understood.envelope)
}

/// As [`decode`], and keeps the canonical bytes of the message.
///
/// # Errors
/// As [`decode`].
pub fn decode_shared(frame: Bytes) -> Result<Decoded, DecodeError> {
    let Understood { envelope, msg } = understand(&frame)?;
    let msg = match msg {
        Some(place) => frame.slice(place),
        None => encode_message(&envelope.msg),
    };
    Ok(Decoded { envelope, msg })
}

/// The canonical writing of an envelope, without its length.
#[expect(clippy::expect_used, reason = "the types of the wire always serialize")]
pub fn encode(envelope: &Envelope) -> Vec<u8> {
    serde_json::to_vec(envelope).expect(ALWAYS_SERIALIZES)
}

/// The canonical writing of a message: what stands behind `"msg":`.
#[expect(clippy::expect_used, reason = "the types of the wire always serialize")]
pub fn encode_message(msg: &Message) -> Bytes {
    Bytes::from(serde_json::to_vec(msg).expect(ALWAYS_SERIALIZES))
}

/// Appends the frame (its length too) of an envelope whose message is already written.
///
/// # Panics
/// If the frame is over 4 GiB; no frame that is within [`frame::MAX_MAX_FRAME`] is.
#[expect(
    clippy::expect_used,
    reason = "frames are held within 64 MiB by their senders"
)]
pub fn encode_with(id: u64, is_final: bool, msg: &[u8], out: &mut BytesMut) {
    let length = frame::envelope_len(id, is_final, msg.len());
    out.reserve(frame::LENGTH_BYTES + length);
    out.put_u32(u32::try_from(length).expect("a frame is at most 64 MiB, which 32 bits hold"));
    write!(out, "{{\"v\":1,\"id\":{id},\"final\":{is_final},\"msg\":")
        .expect("a BytesMut grows as needed, so writing to it cannot fail");
    out.put_slice(msg);
    out.put_u8(b'}');
}

const ALWAYS_SERIALIZES: &str = "envelopes hold strings, integers, booleans, lists and structs only, and memory takes any bytes";

struct Understood {
    envelope: Envelope,
    /// Where the message stands in the frame; None if the frame is not written canonically.
    msg: Option<Range<usize>>,
}

fn understand(frame: &[u8]) -> Result<Understood, DecodeError> {
    let scan = scan::scan(frame);
    let head = &scan.head;
    let text = match scan.text {
        Ok(text) => text,
        Err(error @ (ScanError::NotUtf8 { .. } | ScanError::NotJson { .. })) => {
            let detail = error.to_string();
            return Err(DecodeError {
                code: ErrorCode::BadFrame,
                id: 0,
                reply: false,
                detail,
            });
        }
        // A limit is our own; a peer of another version should hear that first.
        Err(_) if head.version == Version::Other => return Err(bad_version(head)),
        Err(error @ (ScanError::TooDeep | ScanError::TooMany)) => {
            return Err(bad_message(head, error.to_string()));
        }
    };
    match head.version {
        Version::Supported => {}
        Version::Other => return Err(bad_version(head)),
        Version::Unreadable => {
            return Err(bad_message(
                head,
                "v: the integer 1 must stand there, once".to_owned(),
            ));
        }
    }
    let Ok(envelope) = serde_json::from_str::<Envelope>(text) else {
        return Err(bad_message(head, why_not(text)));
    };
    if writes_as(&envelope, frame) {
        let before = frame::envelope_len(envelope.id, envelope.r#final, 0) - 1;
        return Ok(Understood {
            envelope,
            msg: Some(before..frame.len() - 1),
        });
    }
    match same_value(&envelope, text) {
        Ok(()) => Ok(Understood {
            envelope,
            msg: None,
        }),
        Err(detail) => Err(bad_message(head, detail)),
    }
}

/// Whether the canonical writing of `envelope` is exactly `frame`.
fn writes_as(envelope: &Envelope, frame: &[u8]) -> bool {
    let mut rest = Rest(frame);
    serde_json::to_writer(&mut rest, envelope).is_ok() && rest.0.is_empty()
}

/// Takes only the bytes that are left; so nothing is written, and the first difference ends it.
struct Rest<'a>(&'a [u8]);

impl io::Write for Rest<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self
            .0
            .strip_prefix(bytes)
            .ok_or(io::ErrorKind::InvalidData)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether the canonical writing of `envelope` and `text` are the same JSON value; else where not.
fn same_value(envelope: &Envelope, text: &str) -> Result<(), String> {
    let sent = json::parse(text).map_err(|error| error.to_string())?;
    let written = encode(envelope);
    let understood = std::str::from_utf8(&written)
        .ok()
        .and_then(|written| json::parse(written).ok())
        .unwrap_or_default();
    if understood == sent {
        Ok(())
    } else {
        Err(detail::of_difference(&understood, &sent))
    }
}

/// Decodes once more, for the path of what is wrong.
fn why_not(text: &str) -> String {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    match serde_path_to_error::deserialize::<_, Envelope>(&mut deserializer) {
        Ok(_) => "not an envelope".to_owned(),
        Err(error) => detail::of_serde(error.path(), error.inner()),
    }
}

fn bad_message(head: &Head<'_>, detail: String) -> DecodeError {
    let reply = head.kind.as_deref().is_some_and(wire::is_reply_kind);
    DecodeError {
        code: ErrorCode::BadMessage,
        id: head.id.unwrap_or(0),
        reply,
        detail,
    }
}

fn bad_version(head: &Head<'_>) -> DecodeError {
    let detail = "v: only version 1 is spoken here".to_owned();
    DecodeError {
        code: ErrorCode::BadVersion,
        ..bad_message(head, detail)
    }
}
