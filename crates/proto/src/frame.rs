//! Framing: a 4-byte big-endian length, then that many bytes of JSON, one envelope. Frame limits and
//! frame sizes count the JSON, without the 4 bytes.

use bytes::{Buf, Bytes, BytesMut};

#[cfg(feature = "codec")]
mod codec;
mod size;

#[cfg(feature = "codec")]
pub use codec::{CodecError, FrameCodec};
pub use size::{
    content_that_always_fits, content_that_can_fit, envelope_len, escaped_len, largest_result,
    smallest_result,
};

/// The default frame limit: 8 MiB.
pub const DEFAULT_MAX_FRAME: usize = 8 << 20;
/// The least that a frame limit may be: 4 KiB.
pub const MIN_MAX_FRAME: usize = 4 << 10;
/// The most that a frame limit may be: 64 MiB.
pub const MAX_MAX_FRAME: usize = 64 << 20;
/// The bytes of the length before a frame.
pub const LENGTH_BYTES: usize = 4;

/// Why a stream of frames cannot go on. Answered with `bad_frame` under id 0, then closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A frame of no bytes.
    #[error("a frame of length 0")]
    Empty,
    /// A frame over the limit.
    #[error("a frame of {length} bytes is over the limit of {limit}")]
    TooLong {
        /// Its length, in bytes.
        length: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The stream ended inside a frame, or inside its length.
    #[error("the stream ended inside a frame, {left} bytes after its beginning")]
    Unfinished {
        /// How much of it there was, its length included.
        left: usize,
    },
}

/// Takes the next whole frame off the front of `buf`, without its length and without a copy. None if
/// more bytes are needed: `buf` is then as it was, and nothing was reserved for what is to come (a
/// length alone must not cost memory).
///
/// # Errors
/// [`FrameError::Empty`] and [`FrameError::TooLong`], as soon as the length can be read.
pub fn split(buf: &mut BytesMut, max_frame: usize) -> Result<Option<Bytes>, FrameError> {
    let Some(head) = buf.first_chunk::<LENGTH_BYTES>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes(*head);
    let length = check(usize::try_from(length).unwrap_or(usize::MAX), max_frame)?;
    if buf.len() - LENGTH_BYTES < length {
        return Ok(None);
    }
    buf.advance(LENGTH_BYTES);
    Ok(Some(buf.split_to(length).freeze()))
}

/// Sees whether a stream may end with `buf` unread.
///
/// # Errors
/// [`FrameError::Unfinished`] if a frame was begun.
pub fn finish(buf: &[u8]) -> Result<(), FrameError> {
    if buf.is_empty() {
        Ok(())
    } else {
        Err(FrameError::Unfinished { left: buf.len() })
    }
}

fn check(length: usize, limit: usize) -> Result<usize, FrameError> {
    match length {
        0 => Err(FrameError::Empty),
        _ if length > limit => Err(FrameError::TooLong { length, limit }),
        _ => Ok(length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(length: u32, content: &[u8]) -> BytesMut {
        let mut buf = BytesMut::from(&length.to_be_bytes()[..]);
        buf.extend_from_slice(content);
        buf
    }

    #[test]
    fn frames_come_off_whole_and_in_order() {
        let mut buf = buffer(2, b"{}");
        buf.extend_from_slice(&buffer(3, b"[1]"));
        buf.extend_from_slice(&[0, 0]);
        assert_eq!(split(&mut buf, 16), Ok(Some(Bytes::from_static(b"{}"))));
        assert_eq!(split(&mut buf, 16), Ok(Some(Bytes::from_static(b"[1]"))));
        assert_eq!(split(&mut buf, 16), Ok(None));
        assert_eq!(finish(&buf), Err(FrameError::Unfinished { left: 2 }));
        assert_eq!(finish(&[]), Ok(()));
    }

    #[test]
    fn a_length_out_of_bounds_is_refused_before_any_content() {
        assert_eq!(split(&mut buffer(0, b""), 16), Err(FrameError::Empty));
        let too_long = FrameError::TooLong {
            length: 17,
            limit: 16,
        };
        assert_eq!(split(&mut buffer(17, b""), 16), Err(too_long));
        assert_eq!(
            too_long.to_string(),
            "a frame of 17 bytes is over the limit of 16"
        );
        assert!(split(&mut buffer(u32::MAX, b""), MAX_MAX_FRAME).is_err());
        assert_eq!(
            split(&mut buffer(16, &[b' '; 16]), 16),
            Ok(Some(Bytes::from_static(&[b' '; 16])))
        );
    }

    #[test]
    fn a_length_alone_reserves_nothing() {
        let mut buf = buffer(MAX_MAX_FRAME as u32, b"{");
        let before = buf.capacity();
        assert_eq!(split(&mut buf, MAX_MAX_FRAME), Ok(None));
        assert_eq!((buf.capacity(), buf.len()), (before, 5));
    }
}
