//! A connection whose frames are kept as bytes, and whose end is no failure.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;

use crate::harness::{PATIENCE, envelope};

pub(super) struct Wire {
    stream: UnixStream,
    read: Vec<u8>,
    last_id: u64,
}

/// One envelope, and its `msg` as it was sent.
pub(super) struct Frame {
    pub(super) id: u64,
    pub(super) is_final: bool,
    pub(super) kind: String,
    pub(super) body: Value,
    pub(super) msg: String,
}

impl Frame {
    pub(super) fn text(&self, field: &str) -> String {
        let text = self.body[field].as_str();
        text.unwrap_or_else(|| panic!("no {field}: {}", self.body))
            .to_owned()
    }
}

impl Wire {
    pub(super) fn connect(path: &Path) -> Self {
        let stream = UnixStream::connect(path).expect("the daemon listens");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        Self {
            stream,
            read: Vec::new(),
            last_id: 0,
        }
    }

    pub(super) fn ask(&mut self, kind: &str, body: &Value) -> u64 {
        self.last_id += 1;
        self.say(self.last_id, kind, body);
        self.last_id
    }

    pub(super) fn say(&mut self, id: u64, kind: &str, body: &Value) {
        let content = envelope(id, true, kind, body);
        let length = u32::try_from(content.len()).expect("a length");
        let frame = [&length.to_be_bytes(), content.as_bytes()].concat();
        (&self.stream).write_all(&frame).expect("the daemon reads");
    }

    /// The next whole frame of what was read.
    pub(super) fn frame(&mut self) -> Option<Frame> {
        let (head, rest) = self.read.split_first_chunk()?;
        let length = usize::try_from(u32::from_be_bytes(*head)).expect("a length");
        let content = rest.get(..length)?;
        let value: Value = serde_json::from_slice(content).expect("JSON");
        let mark = b"\"msg\":";
        let at = content.windows(mark.len()).position(|it| it == mark);
        let from = at.expect("a msg") + mark.len();
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let frame = Frame {
            id: value["id"].as_u64().expect("an id"),
            is_final: value["final"] == true,
            kind: text(&value["msg"]["kind"]),
            body: value["msg"]["body"].clone(),
            msg: String::from_utf8(content[from..length - 1].to_vec()).expect("UTF-8"),
        };
        self.read.drain(..4 + length);
        Some(frame)
    }

    /// Reads once; false at the end.
    pub(super) fn read(&mut self) -> bool {
        let mut some = [0; 16 << 10];
        match self.stream.read(&mut some) {
            Ok(read) => {
                self.read.extend(&some[..read]);
                read > 0
            }
            // A process that is killed with something unread resets.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => false,
            Err(error) => panic!("cannot read: {error}"),
        }
    }
}

/// Waits until any of these has something to read, or until then: which have.
pub(super) fn readable(wires: &[&mut Wire], until: Instant) -> Vec<bool> {
    let left = until.saturating_duration_since(Instant::now());
    let left = Timespec::try_from(left).expect("short");
    let fds = wires
        .iter()
        .map(|it| PollFd::new(&it.stream, PollFlags::IN));
    let mut fds: Vec<PollFd<'_>> = fds.collect();
    poll(&mut fds, Some(&left)).expect("poll");
    fds.iter().map(|fd| !fd.revents().is_empty()).collect()
}
