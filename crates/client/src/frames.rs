//! Envelopes over a socket: one reader, and one writer that writes once for all that waits.

use bytes::{Bytes, BytesMut};
use proto::frame::{self, LENGTH_BYTES};
use proto::{Envelope, ErrorCode, Message};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;

use crate::Error;

/// Bytes that one write takes at most, a frame that is larger aside.
const WRITE_AT_ONCE: usize = 64 << 10;

pub(crate) struct FrameReader {
    half: OwnedReadHalf,
    max_frame: usize,
    buffer: BytesMut,
    heard: bool,
}

impl FrameReader {
    /// Refuses frames over `max_frame` bytes before anything is allocated for them.
    pub(crate) fn new(half: OwnedReadHalf, max_frame: usize) -> Self {
        Self {
            half,
            max_frame,
            buffer: BytesMut::new(),
            heard: false,
        }
    }

    /// What the welcome says of the limit.
    pub(crate) fn limit(&mut self, max_frame: usize) {
        self.max_frame = max_frame;
    }

    /// Whether the broker said anything at all.
    pub(crate) fn heard(&self) -> bool {
        self.heard
    }

    /// The next envelope; `None` when the broker hung up between two.
    pub(crate) async fn next(&mut self) -> Result<Option<Envelope>, String> {
        loop {
            if let Some(frame) = frame::split(&mut self.buffer, self.max_frame).map_err(text)? {
                return proto::decode(&frame).map(Some).map_err(text);
            }
            if self.half.read_buf(&mut self.buffer).await.map_err(text)? == 0 {
                return frame::finish(&self.buffer).map(|()| None).map_err(text);
            }
        }
    }
}

/// One frame with its length.
///
/// # Errors
/// [`Error::TooLarge`] if it does not fit.
pub(crate) fn write(
    id: u64,
    is_final: bool,
    msg: &Message,
    max_frame: usize,
) -> Result<Bytes, Error> {
    let msg = proto::encode_message(msg);
    let mut out = BytesMut::with_capacity(msg.len() + 64);
    proto::encode_with(id, is_final, &msg, &mut out);
    let bytes = out.len() - LENGTH_BYTES;
    if bytes > max_frame {
        return Err(Error::TooLarge {
            bytes,
            limit: max_frame,
        });
    }
    Ok(out.freeze())
}

/// Writes what comes in, until no sender is left or the broker is gone.
pub(crate) async fn write_all(mut half: OwnedWriteHalf, mut frames: mpsc::Receiver<Bytes>) {
    let mut batch = BytesMut::new();
    while let Some(first) = frames.recv().await {
        batch.extend_from_slice(&first);
        while batch.len() < WRITE_AT_ONCE {
            let Ok(more) = frames.try_recv() else { break };
            batch.extend_from_slice(&more);
        }
        if half.write_all(&batch).await.is_err() {
            return; // The reader learns why.
        }
        batch.clear();
    }
    // Nobody is left to hear of a failure here.
    let _ = half.shutdown().await;
}

pub(crate) fn rejected(code: ErrorCode, detail: String) -> Error {
    Error::Rejected { code, detail }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
