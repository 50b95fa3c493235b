//! The store's file stays bounded, however many calls there are. `RB_BOUNDED_CALLS` makes more of them.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;

use proto::Digest;
use serde_json::json;
use store::Head;

use crate::commands::{printed, rolebroker};
use crate::harness::{Daemon, Place, envelope, finished, result};

const CALLS: u64 = 12_000;
/// Calls that are asked for before their answers are read.
const AT_ONCE: u64 = 50;
/// What the database may have at most: three bounds of 256 KiB, and what is swept a little later.
const MOST: u64 = 12 << 20;
/// What the -wal may have at most: SQLite lets it grow to 4 MiB, and as long as a snapshot is being read.
const MOST_AHEAD: u64 = 64 << 20;

fn world() -> Place {
    let quota = "quota = { requests_per_second = 1000000, stored_bytes = \"256KiB\", arguments_bytes = \"256KiB\" }";
    let place = Place::new().setting("audit_bytes = \"256KiB\"");
    ["bot", "files"]
        .into_iter()
        .fold(place, |place, role| place.role(role, quota))
}

/// Bytes of a file beside the state.
fn size(daemon: &Daemon, name: &str) -> u64 {
    let file = daemon.place.path().join("state").join(name);
    file.metadata().map_or(0, |it| it.len())
}

/// Whole frames, and where in each what to look for begins.
struct Fast {
    stream: UnixStream,
    read: Vec<u8>,
}

impl Fast {
    fn connect(path: &Path) -> Self {
        Self {
            stream: UnixStream::connect(path).expect("the daemon listens"),
            read: Vec::new(),
        }
    }

    /// The next frame; none at the end.
    fn frame(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some((head, rest)) = self.read.split_first_chunk() {
                let length = usize::try_from(u32::from_be_bytes(*head)).expect("a length");
                if let Some(frame) = rest.get(..length) {
                    let frame = frame.to_vec();
                    self.read.drain(..4 + length);
                    return Some(frame);
                }
            }
            let mut some = [0; 64 << 10];
            match self.stream.read(&mut some) {
                Ok(0) | Err(_) => return None,
                Ok(read) => self.read.extend(&some[..read]),
            }
        }
    }

    fn say(&mut self, frames: &[String]) {
        let frame = |content: &String| {
            let length = u32::try_from(content.len()).expect("a length");
            [&length.to_be_bytes(), content.as_bytes()].concat()
        };
        let all: Vec<u8> = frames.iter().flat_map(frame).collect();
        self.stream.write_all(&all).expect("the daemon reads");
    }
}

/// The envelope's number.
fn id(frame: &[u8]) -> u64 {
    let text = std::str::from_utf8(frame).expect("UTF-8");
    let (_, rest) = text.split_once("\"id\":").expect("an id");
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next();
    digits.expect("digits").parse().expect("a number")
}

/// Answers whatever it is asked.
fn serve(mut wire: Fast) {
    while let Some(request) = wire.frame() {
        wire.say(&[envelope(
            id(&request),
            true,
            "tool_response",
            &result("as you say, and a little more of it"),
        )]);
    }
}

/// These calls of one session, each answered.
fn calls(wire: &mut Fast, calls: std::ops::Range<u64>) {
    let ask = |call: u64| {
        let arguments = format!(r#"{{"what":"tea","number":{call}}}"#);
        let body = json!({
            "session": "work", "call": call, "tool": "order", "arguments": arguments,
        });
        envelope(call, true, "tool_request", &body)
    };
    let asked: Vec<String> = calls.clone().map(ask).collect();
    wire.say(&asked);
    for _ in calls {
        let answer = wire.frame().expect("an answer");
        let text = String::from_utf8_lossy(&answer);
        assert!(text.contains(r#""status":"result""#), "{text}");
    }
}

#[test]
fn the_file_stays_bounded_however_many_calls_there_are() {
    let count = std::env::var("RB_BOUNDED_CALLS").ok();
    let count: u64 = count.map_or(CALLS, |count| count.parse().expect("a number"));
    let mut daemon = world().start();
    let runner = Fast::connect(&daemon.socket("files"));
    let serving = thread::spawn(move || serve(runner));
    let mut agent = Fast::connect(&daemon.socket("bot"));
    let (mut largest, mut ahead) = (0, 0);
    for from in (1..=count).step_by(usize::try_from(AT_ONCE).expect("small")) {
        calls(&mut agent, from..(from + AT_ONCE).min(count + 1));
        largest = largest.max(size(&daemon, "rolebroker.db"));
        ahead = ahead.max(size(&daemon, "rolebroker.db-wal"));
        let bounded = largest <= MOST && ahead <= MOST_AHEAD;
        assert!(bounded, "{largest} and {ahead} bytes after {from} calls");
        if from % 500_000 == 1 && from > 1 {
            eprintln!("{from} calls, at most {largest} and {ahead} bytes so far");
        }
    }
    eprintln!("{count} calls, at most {largest} and {ahead} bytes");
    // What is left is whole, and says where it begins.
    daemon.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(daemon.end().code(), Some(0));
    drop(agent);
    serving.join().expect("the runner's end");
    let state = daemon.place.path().join("state");
    let state = state.to_str().expect("UTF-8");
    let said = printed(
        &daemon,
        "admin",
        &["audit", "verify", "--state-dir", state],
        0,
    );
    let begins = said["begins"].as_u64().expect("a number");
    assert!(begins > 1, "{said}");
    // The exported lines lead from the hash before them to the head.
    let export = rolebroker(&daemon, "admin", &["audit", "export", "--state-dir", state]);
    let export = finished(&mut { export }, 0).stdout;
    let before = Head {
        count: begins - 1,
        hash: Digest::new(said["before"].as_str().expect("a hash")).expect("a hash"),
    };
    let export = String::from_utf8(export).expect("UTF-8");
    let head = export.lines().fold(before, |head, line| head.and(line));
    assert_eq!(said["head"], head.hash.as_str());
    assert_eq!(said["records"], head.count);
    daemon.restart();
}
