//! The reading half of a connection: bytes to frames to decoded messages, in their order. It reads
//! on only after the reactor took what it read before, and the engine lets it.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use bytes::BytesMut;
use proto::frame::{self, LENGTH_BYTES};
use proto::{DecodeError, Decoded, ErrorCode};
use tokio::time::{Instant, timeout_at};

use crate::connection::Conn;
use crate::decoding::{FrameSpace, LARGE_FRAME, Pool, decode_small};
use crate::inbox::{Inbox, Input, Reason};

/// Bytes that are read at once of small frames.
pub const READ_BYTES: usize = 16 << 10;
/// Bytes that are read at once of a large frame.
pub const READ_LARGE_BYTES: usize = 256 << 10;

/// What the configuration says about reading and writing; a reload changes it under way.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// The largest frame, in bytes without its length.
    pub max_frame: usize,
    /// How long a begun frame may take.
    pub frame_timeout: Duration,
    /// How long an outbox may make no progress.
    pub write_timeout: Duration,
}

impl Pace {
    /// As the configuration says.
    pub fn of(settings: &policy::Settings) -> Self {
        Self {
            max_frame: usize::try_from(settings.max_frame).unwrap_or(usize::MAX),
            frame_timeout: Duration::from_millis(settings.frame_timeout),
            write_timeout: Duration::from_millis(settings.write_timeout),
        }
    }
}

/// What readers share.
#[derive(Debug)]
pub struct Reading {
    /// Where frames go.
    pub inbox: Rc<Inbox>,
    /// Who decodes large ones.
    pub pool: Pool,
    /// How long and how large.
    pub pace: Rc<Cell<Pace>>,
}

/// Reads a connection until it ends, or until somebody stops this.
pub async fn read(conn: Rc<Conn>, shared: Rc<Reading>) {
    let mut reader = Reader {
        conn,
        shared,
        buffer: BytesMut::new(),
        space: None,
        begun: None,
    };
    let reason = match reader.run().await {
        End::Closed => Reason::Closed,
        End::Failed => Reason::ReadFailed,
        End::BadFrame(detail) => {
            reader.push(Err(bad_frame(detail)), None);
            Reason::BadFrame
        }
    };
    reader.shared.inbox.push(Input::Ended {
        conn: reader.conn.id,
        reason,
    });
}

/// Why nothing more is read.
enum End {
    Closed,
    Failed,
    BadFrame(String),
}

struct Reader {
    conn: Rc<Conn>,
    shared: Rc<Reading>,
    buffer: BytesMut,
    /// The room that the large frame being read takes.
    space: Option<FrameSpace>,
    /// Since when the frame being read is waited for.
    begun: Option<Instant>,
}

impl Reader {
    async fn run(&mut self) -> End {
        loop {
            if let Err(end) = self.deliver().await {
                return end;
            }
            while !self.conn.may_read() {
                self.conn.resume.notified().await;
            }
            if let Err(end) = self.make_room().await {
                return end;
            }
            if let Err(end) = self.fill().await {
                return end;
            }
        }
    }

    /// Decodes and hands on every whole frame that was read.
    async fn deliver(&mut self) -> Result<(), End> {
        let max_frame = self.shared.pace.get().max_frame;
        while let Some(frame) = frame::split(&mut self.buffer, max_frame).map_err(bad)? {
            self.begun = None;
            if frame.len() <= LARGE_FRAME {
                self.push(decode_small(&frame), None);
            } else {
                let share = self.conn.slot.room.share();
                let space = match self.space.take() {
                    Some(space) => Some(space),
                    None => share.space(frame.len()).await,
                };
                let decoded = self.shared.pool.decode(&share, frame).await;
                self.push(decoded, space);
            }
        }
        Ok(())
    }

    /// Before more of a large frame is read, its role must have room for all of it.
    async fn make_room(&mut self) -> Result<(), End> {
        let Some(length) = self.begun_length() else {
            if self.buffer.is_empty() && self.buffer.capacity() > READ_BYTES {
                self.buffer = BytesMut::new();
            }
            return Ok(());
        };
        if length > LARGE_FRAME && self.space.is_none() {
            self.space = self.conn.slot.room.share().space(length).await;
            // The wait was ours and not the peer's.
            self.begun = None;
        }
        Ok(())
    }

    /// Reads what there is, at least a byte.
    async fn fill(&mut self) -> Result<(), End> {
        let pace = self.shared.pace.get();
        let deadline = if self.buffer.is_empty() {
            None
        } else {
            Some(*self.begun.get_or_insert_with(Instant::now) + pace.frame_timeout)
        };
        loop {
            let readable = match deadline {
                None => self.conn.stream.readable().await,
                Some(deadline) => match timeout_at(deadline, self.conn.stream.readable()).await {
                    Ok(readable) => readable,
                    Err(_) => return Err(bad("a begun frame was not complete in frame_timeout")),
                },
            };
            readable.map_err(|_| End::Failed)?;
            self.buffer.reserve(self.wanted());
            match self.conn.stream.try_read_buf(&mut self.buffer) {
                Ok(0) => {
                    frame::finish(&self.buffer).map_err(bad)?;
                    return Err(End::Closed);
                }
                Ok(_) => {
                    tokio::task::consume_budget().await;
                    return Ok(());
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return Err(End::Failed),
            }
        }
    }

    /// How many bytes to have room for: memory follows what came, never what a length says.
    fn wanted(&self) -> usize {
        match self.begun_length() {
            Some(length) => (length + LENGTH_BYTES)
                .saturating_sub(self.buffer.len())
                .clamp(READ_BYTES, READ_LARGE_BYTES),
            None => READ_BYTES,
        }
    }

    /// The length of the frame that is being read, once it is known.
    fn begun_length(&self) -> Option<usize> {
        let head = self.buffer.first_chunk::<LENGTH_BYTES>()?;
        usize::try_from(u32::from_be_bytes(*head)).ok()
    }

    fn push(&self, frame: Result<Decoded, DecodeError>, space: Option<FrameSpace>) {
        self.conn.untaken.set(self.conn.untaken.get() + 1);
        self.shared.inbox.push(Input::Frame {
            conn: self.conn.id,
            frame,
            space,
        });
    }
}

fn bad(why: impl ToString) -> End {
    End::BadFrame(why.to_string())
}

fn bad_frame(detail: String) -> DecodeError {
    DecodeError {
        code: ErrorCode::BadFrame,
        id: 0,
        reply: false,
        detail,
    }
}
