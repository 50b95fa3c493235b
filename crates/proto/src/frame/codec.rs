//! The framing as a codec of tokio-util.

use std::io;

use bytes::{BufMut, Bytes, BytesMut};
use tokio_util::codec::{Decoder, Encoder};

use super::{FrameError, LENGTH_BYTES, check, finish, split};
use crate::decode;
use crate::wire::Envelope;

/// Frames on a byte stream, in both directions, within one limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameCodec {
    max_frame: usize,
}

/// Why a stream of frames ended.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    /// The stream itself failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// What it carries is not a frame.
    #[error(transparent)]
    Frame(#[from] FrameError),
}

impl FrameCodec {
    /// A codec for frames of at most `max_frame` bytes, their lengths not counted.
    pub fn new(max_frame: usize) -> Self {
        Self { max_frame }
    }
}

impl Decoder for FrameCodec {
    type Item = Bytes;
    type Error = CodecError;

    fn decode(&mut self, buf: &mut BytesMut) -> Result<Option<Bytes>, CodecError> {
        Ok(split(buf, self.max_frame)?)
    }

    fn decode_eof(&mut self, buf: &mut BytesMut) -> Result<Option<Bytes>, CodecError> {
        let frame = split(buf, self.max_frame)?;
        if frame.is_none() {
            finish(buf)?;
        }
        Ok(frame)
    }
}

/// Encodes a frame's content.
impl Encoder<Bytes> for FrameCodec {
    type Error = CodecError;

    fn encode(&mut self, content: Bytes, out: &mut BytesMut) -> Result<(), CodecError> {
        put(&content, self.max_frame, out)
    }
}

impl Encoder<&Envelope> for FrameCodec {
    type Error = CodecError;

    fn encode(&mut self, envelope: &Envelope, out: &mut BytesMut) -> Result<(), CodecError> {
        put(&decode::encode(envelope), self.max_frame, out)
    }
}

fn put(content: &[u8], limit: usize, out: &mut BytesMut) -> Result<(), CodecError> {
    let length = check(content.len(), limit)?;
    let too_long = FrameError::TooLong { length, limit };
    let head = u32::try_from(length).map_err(|_| too_long)?;
    out.reserve(LENGTH_BYTES + length);
    out.put_u32(head);
    out.put_slice(content);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Message, ToolsChanged, decode};

    #[test]
    fn an_envelope_comes_back_from_its_frame() {
        let envelope = Envelope::last(0, Message::ToolsChanged(ToolsChanged {}));
        let mut codec = FrameCodec::new(4096);
        let mut buf = BytesMut::new();
        codec.encode(&envelope, &mut buf).unwrap();
        codec.encode(Bytes::from_static(b"{}"), &mut buf).unwrap();
        assert_eq!(
            decode(&codec.decode(&mut buf).unwrap().unwrap()),
            Ok(envelope)
        );
        assert_eq!(codec.decode_eof(&mut buf).unwrap().unwrap(), &b"{}"[..]);
        assert!(codec.decode_eof(&mut buf).unwrap().is_none());
    }

    #[test]
    fn an_end_inside_a_frame_is_an_error() {
        for cut in 1..6 {
            let mut buf = BytesMut::from(&b"\0\0\0\x02{}"[..cut]);
            let end = FrameCodec::new(16).decode_eof(&mut buf);
            assert!(
                matches!(end, Err(CodecError::Frame(FrameError::Unfinished { left })) if left == cut),
                "after {cut} bytes: {end:?}"
            );
        }
    }

    #[test]
    fn what_is_empty_or_over_the_limit_is_not_sent() {
        let mut buf = BytesMut::new();
        for content in [Bytes::new(), Bytes::from_static(&[b' '; 17])] {
            assert!(FrameCodec::new(16).encode(content, &mut buf).is_err());
        }
        assert!(buf.is_empty());
    }
}
