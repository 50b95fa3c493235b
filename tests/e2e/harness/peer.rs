//! A peer that speaks frames as bytes: nothing of the project's own code stands between a test and the wire.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::JoinHandle;

use serde_json::{Value, json};

use super::PATIENCE;

/// A connection to a role's socket.
pub(crate) struct Peer {
    stream: UnixStream,
    last_id: u64,
    /// Read, and not asked for yet.
    waiting: VecDeque<Value>,
}

impl Peer {
    #[track_caller]
    pub(crate) fn connect(path: &Path) -> Self {
        let stream = UnixStream::connect(path)
            .unwrap_or_else(|error| panic!("cannot connect to {}: {error}", path.display()));
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        Self {
            stream,
            last_id: 0,
            waiting: VecDeque::new(),
        }
    }

    /// Bytes as they are.
    #[track_caller]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the daemon reads");
    }

    /// A length and these bytes.
    #[track_caller]
    pub(crate) fn frame(&mut self, content: &[u8]) {
        let length = u32::try_from(content.len()).expect("a length");
        self.bytes(&[&length.to_be_bytes(), content].concat());
    }

    /// An envelope.
    #[track_caller]
    pub(crate) fn say(&mut self, id: u64, is_final: bool, kind: &str, body: &Value) {
        self.frame(envelope(id, is_final, kind, body).as_bytes());
    }

    /// A request under the next id, which it gives.
    #[track_caller]
    pub(crate) fn ask(&mut self, kind: &str, body: &Value) -> u64 {
        self.last_id += 1;
        self.say(self.last_id, true, kind, body);
        self.last_id
    }

    /// Says hello, and gives the welcome.
    #[track_caller]
    pub(crate) fn hello(&mut self, features: &[&str]) -> Value {
        let id = self.ask("hello", &json!({"software": "e2e", "features": features}));
        let welcome = self.answer(id);
        assert_eq!(welcome["msg"]["kind"], "welcome", "{welcome}");
        welcome["msg"]["body"].clone()
    }

    /// Asks for a call.
    #[track_caller]
    pub(crate) fn call(&mut self, session: &str, call: u64, tool: &str, arguments: &str) -> u64 {
        let body = json!({"session": session, "call": call, "tool": tool, "arguments": arguments});
        self.ask("tool_request", &body)
    }

    /// Asks for a call, and waits for its last answer's body.
    #[track_caller]
    pub(crate) fn called(&mut self, session: &str, call: u64, tool: &str, args: &str) -> Value {
        let id = self.call(session, call, tool, args);
        self.ends(id)
    }

    /// The next envelope, whatever it is; `None` at the end of the stream.
    #[track_caller]
    pub(crate) fn next(&mut self) -> Option<Value> {
        self.waiting.pop_front().or_else(|| self.read())
    }

    /// The next envelope under this id that is no call. Others are kept. A runner's requests and the
    /// daemon's are numbered apart.
    #[track_caller]
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        self.find(|envelope| envelope["id"] == id && envelope["msg"]["kind"] != "tool_request")
    }

    /// The body of the last envelope under this id.
    #[track_caller]
    pub(crate) fn ends(&mut self, id: u64) -> Value {
        loop {
            let envelope = self.answer(id);
            if envelope["final"] == true {
                return envelope["msg"]["body"].clone();
            }
        }
    }

    /// The next request of a call, as a runner gets it: its id and body.
    #[track_caller]
    pub(crate) fn request(&mut self) -> (u64, Value) {
        let envelope = self.find(|envelope| envelope["msg"]["kind"] == "tool_request");
        let id = envelope["id"].as_u64().expect("an id");
        (id, envelope["msg"]["body"].clone())
    }

    /// The next push of this kind.
    #[track_caller]
    pub(crate) fn pushed(&mut self, kind: &str) -> Value {
        let envelope = self.find(|e| e["id"] == 0 && e["msg"]["kind"] == kind);
        envelope["msg"]["body"].clone()
    }

    /// Answers a request with a public, trusted result.
    #[track_caller]
    pub(crate) fn result(&mut self, id: u64, content: &str) {
        self.say(id, true, "tool_response", &result(content));
    }

    /// Answers a request with a failure.
    #[track_caller]
    pub(crate) fn fails(&mut self, id: u64, message: &str) {
        let body = json!({"status": "failed", "message": message});
        self.say(id, true, "tool_response", &body);
    }

    /// As an approver: approves what is asked next.
    #[track_caller]
    pub(crate) fn approves(&mut self) -> Value {
        self.answers("approve")
    }

    /// As an approver: answers what is asked next, and gives what became of it.
    #[track_caller]
    pub(crate) fn answers(&mut self, answer: &str) -> Value {
        let asked = self.pushed("approval_request");
        let body = json!({
            "approval": asked["approval"], "digest": asked["digest"], "answer": answer,
            "scope": "once", "comment": ""
        });
        let id = self.ask("approval_reply", &body);
        self.ends(id)
    }

    /// The stream is at its end; what comes before it is given.
    #[track_caller]
    pub(crate) fn closed(mut self) -> Vec<Value> {
        let mut said: Vec<Value> = self.waiting.drain(..).collect();
        while let Some(envelope) = self.read() {
            said.push(envelope);
        }
        said
    }

    /// Nothing has come that was not asked for.
    #[track_caller]
    pub(crate) fn is_silent(&mut self) {
        assert_eq!(self.waiting, VecDeque::<Value>::new());
        self.stream.set_nonblocking(true).expect("nonblocking");
        let read = (&self.stream).read(&mut [0]).map_err(|error| error.kind());
        self.stream.set_nonblocking(false).expect("blocking");
        assert_eq!(read, Err(ErrorKind::WouldBlock));
    }

    /// Sends nothing more.
    pub(crate) fn half_close(&mut self) {
        self.stream.shutdown(Shutdown::Write).expect("shutdown");
    }

    /// A second hand on the same connection.
    pub(crate) fn stream(&self) -> UnixStream {
        self.stream.try_clone().expect("a clone")
    }

    #[track_caller]
    fn find(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.waiting.iter().position(&fits) {
            return self.waiting.remove(at).expect("it is there");
        }
        loop {
            let Some(envelope) = self.read() else {
                panic!("the daemon hung up; it had said {:?}", self.waiting)
            };
            if fits(&envelope) {
                return envelope;
            }
            self.waiting.push_back(envelope);
        }
    }

    #[track_caller]
    fn read(&mut self) -> Option<Value> {
        let mut head = [0; 4];
        match (&self.stream).read_exact(&mut head) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return None,
            Err(error) => panic!("nothing came ({error}); before it {:?}", self.waiting),
        }
        let length = usize::try_from(u32::from_be_bytes(head)).expect("a length");
        let mut content = vec![0; length];
        self.stream.read_exact(&mut content).expect("a whole frame");
        Some(serde_json::from_slice(&content).expect("JSON"))
    }
}

/// The canonical writing of an envelope: the fields in the seed's order.
pub(crate) fn envelope(id: u64, is_final: bool, kind: &str, body: &Value) -> String {
    format!(
        "{{\"v\":1,\"id\":{id},\"final\":{is_final},\"msg\":{{\"kind\":\"{kind}\",\"body\":{body}}}}}"
    )
}

/// The body of a public, trusted result.
pub(crate) fn result(content: &str) -> Value {
    json!({
        "status": "result", "content": content, "class": "public", "untrusted": false,
        "truncated": false
    })
}

/// A runner on a thread that gives every request's arguments back, until it is dropped.
pub(crate) struct EchoRunner {
    stream: UnixStream,
    thread: Option<JoinHandle<u64>>,
}

impl EchoRunner {
    pub(crate) fn start(mut peer: Peer) -> Self {
        let stream = peer.stream();
        let thread = std::thread::spawn(move || {
            let mut served = 0;
            while let Some(envelope) = peer.next() {
                let id = envelope["id"].as_u64().expect("an id");
                let arguments = envelope["msg"]["body"]["arguments"].as_str();
                let body = result(arguments.expect("arguments"));
                let frame = self::envelope(id, true, "tool_response", &body);
                let length = u32::try_from(frame.len()).expect("a length");
                let frame = [&length.to_be_bytes(), frame.as_bytes()].concat();
                if (&peer.stream).write_all(&frame).is_err() {
                    break;
                }
                served += 1;
            }
            served
        });
        Self {
            stream,
            thread: Some(thread),
        }
    }

    /// Ends it; how many requests it served.
    pub(crate) fn served(mut self) -> u64 {
        self.hang_up().expect("it did not panic")
    }

    fn hang_up(&mut self) -> std::thread::Result<u64> {
        // The daemon may have been first.
        let _ = self.stream.shutdown(Shutdown::Both);
        self.thread.take().map_or(Ok(0), JoinHandle::join)
    }
}

impl Drop for EchoRunner {
    fn drop(&mut self) {
        let _ = self.hang_up();
    }
}
