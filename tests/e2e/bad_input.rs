//! Bad input at every role's socket: each gets the answer that the wire's rules promise, the connection is
//! kept or closed as they say, and the daemon goes on serving another agent.

use serde_json::{Value, json};

use crate::harness::{Daemon, EchoRunner, Peer, Place, envelope, result};

const ROLES: [&str; 4] = ["bot", "files", "boss", "admin"];
const MAX_FRAME: u32 = 8 << 20;
/// What the daemon may have grown by, in KiB, after all of it.
const MAX_GROWTH: u64 = 96 << 10;

/// One bad thing to say.
struct Bad {
    name: &'static str,
    /// Frames (or, with `raw`, bytes).
    said: Vec<u8>,
    raw: bool,
    /// What is answered, and under which id.
    code: &'static str,
    id: u64,
}

impl Bad {
    fn closes(&self) -> bool {
        self.code == "bad_frame"
    }
}

fn raw(name: &'static str, said: &[u8]) -> Bad {
    Bad {
        name,
        said: said.to_vec(),
        raw: true,
        code: "bad_frame",
        id: 0,
    }
}

fn frame(name: &'static str, code: &'static str, id: u64, said: impl Into<Vec<u8>>) -> Bad {
    Bad {
        name,
        said: said.into(),
        raw: false,
        code,
        id,
    }
}

/// What is no frame, or no JSON in it. A name with "end" is followed by the end of the stream.
fn no_frames() -> Vec<Bad> {
    let long = (MAX_FRAME + 1).to_be_bytes();
    let bad = |name, said: &[u8]| frame(name, "bad_frame", 0, said);
    vec![
        raw("a length of 0", &[0, 0, 0, 0]),
        raw("a length over the limit", &long),
        raw("the largest length", &[0xff; 4]),
        raw("the end in a length", &[0, 0]),
        raw("the end in a frame", b"\0\0\0\x10{\"v\":1"),
        bad("no JSON", b"hello"),
        bad("half of JSON", b"{\"v\":1,\"id\":7"),
        bad("two values", b"{} {}"),
        bad("invalid UTF-8", b"{\"v\":1,\"id\":7,\"x\":\"\xff\"}"),
        bad("a byte order mark", b"\xef\xbb\xbf{\"v\":1,\"id\":7}"),
        bad("a comment", b"{\"v\":1,/*x*/\"id\":7}"),
        bad("a lone NUL", b"\0"),
    ]
}

fn request(body: &str) -> String {
    format!(
        "{{\"v\":1,\"id\":7,\"final\":true,\"msg\":{{\"kind\":\"tool_request\",\"body\":{body}}}}}"
    )
}

/// What is JSON, but nothing that any role may say.
fn no_messages() -> Vec<Bad> {
    let good = request(r#"{"session":"s","call":1,"tool":"read","arguments":"{}"}"#);
    let bad = |name, said: String| frame(name, "bad_message", 7, said);
    let deep = format!("{{\"session\":{}1{}}}", "[".repeat(14), "]".repeat(14));
    let ones = |count: usize| format!("{{\"session\":[1{}]}}", ",1".repeat(count - 1));
    let version = good.replace("\"v\":1", "\"v\":2");
    let bodiless = "{\"v\":2,\"final\":true}".to_owned();
    vec![
        frame("another version", "bad_version", 7, version),
        frame("another version without an id", "bad_version", 0, bodiless),
        frame("an empty object", "bad_message", 0, "{}"),
        frame("an array", "bad_message", 0, "[1,7,true,{}]"),
        frame(
            "an id of text",
            "bad_message",
            0,
            good.replace("7", "\"7\""),
        ),
        frame(
            "an id twice",
            "bad_message",
            0,
            good.replace("\"id\":7", "\"id\":7,\"id\":7"),
        ),
        bad("an unknown kind", good.replace("tool_request", "tool_wish")),
        bad(
            "an unknown field",
            good.replace("\"final\"", "\"extra\":1,\"final\""),
        ),
        bad(
            "an unknown field of a body",
            good.replace("\"call\"", "\"extra\":1,\"call\""),
        ),
        bad("a missing field", good.replace("\"final\":true,", "")),
        bad(
            "a field twice",
            good.replace("\"call\"", "\"session\":\"s\",\"call\""),
        ),
        bad("a body of an array", request(r#"["s",1,"read","{}"]"#)),
        bad("null for text", good.replace("\"read\"", "null")),
        bad(
            "a number with a point",
            good.replace("\"call\":1", "\"call\":1.0"),
        ),
        bad(
            "a session's name that is none",
            good.replace("\"s\"", "\"../s\""),
        ),
        bad("17 levels", request(&deep)),
        bad("70,000 values", request(&ones(70_000))),
        bad("four million values", request(&ones(4_000_000))),
    ]
}

/// A reply under an id that is not open, and another role's requests.
fn not_this_roles(role: &str) -> Vec<Bad> {
    let call = json!({"session": "s", "call": 1, "tool": "read", "arguments": "{}"});
    let answer = json!({"approval": "a", "digest": "00".repeat(32), "answer": "approve",
        "scope": "once", "comment": ""});
    let mut bad = Vec::new();
    for (name, owner, kind, body) in [
        ("a tool_request", "bot", "tool_request", call),
        (
            "a cancel",
            "bot",
            "cancel",
            json!({"session": "s", "call": 1}),
        ),
        ("an offer", "files", "offer", json!({"tools": []})),
        ("an approval_reply", "boss", "approval_reply", answer),
        ("a control", "admin", "control", json!({"op": "status"})),
    ] {
        if owner != role {
            bad.push(frame(
                name,
                "bad_message",
                7,
                envelope(7, true, kind, &body),
            ));
        }
    }
    if role != "files" {
        let reply = envelope(7, true, "tool_response", &result("x"));
        bad.push(frame(
            "a reply that nobody waits for",
            "bad_message",
            0,
            reply,
        ));
    }
    let hello = json!({"software": "e2e", "features": []});
    let unasked = envelope(0, true, "hello", &hello);
    bad.push(frame("a request under id 0", "bad_message", 0, unasked));
    let more = envelope(7, false, "hello", &hello);
    bad.push(frame("a request that is not final", "bad_message", 7, more));
    bad
}

/// Another agent's view of the daemon.
pub(crate) struct Bystander {
    agent: Peer,
    call: u64,
    _echo: EchoRunner,
}

impl Bystander {
    pub(crate) fn of(daemon: &Daemon) -> Self {
        Self {
            agent: daemon.connect("other"),
            call: 0,
            _echo: daemon.echo(),
        }
    }

    #[track_caller]
    pub(crate) fn is_served(&mut self) {
        self.call += 1;
        let arguments = format!(r#"{{"n":{}}}"#, self.call);
        let answer = self.agent.called("o", self.call, "echo", &arguments);
        assert_eq!(answer["content"], arguments, "{answer}");
    }
}

/// The peer is told so, and nothing of what it sent comes back.
#[track_caller]
pub(crate) fn assert_told(peer: &mut Peer, what: &str, code: &str, id: u64) {
    let told = peer
        .next()
        .unwrap_or_else(|| panic!("{what}: closed without a word"));
    assert_eq!(told["msg"]["kind"], "error", "{what}: {told}");
    assert_eq!(told["msg"]["body"]["code"], code, "{what}: {told}");
    assert_eq!(
        (&told["id"], &told["final"]),
        (&json!(id), &json!(true)),
        "{what}: {told}"
    );
}

/// The connection is still there: a hello is answered, if only with an error.
#[track_caller]
pub(crate) fn assert_kept(peer: &mut Peer) {
    let id = peer.ask("hello", &json!({"software": "e2e", "features": []}));
    peer.answer(id);
}

#[track_caller]
fn assert_bad(mut peer: Peer, bad: &Bad, what: &str) {
    if bad.raw {
        peer.bytes(&bad.said);
    } else {
        peer.frame(&bad.said);
    }
    if bad.name.starts_with("the end") {
        peer.half_close();
    }
    assert_told(&mut peer, what, bad.code, bad.id);
    if bad.closes() {
        assert_eq!(peer.closed(), Vec::<Value>::new(), "{what}");
    } else {
        assert_kept(&mut peer);
    }
}

#[test]
fn bad_input_at_any_socket_gets_its_answer_and_costs_nobody_else_anything() {
    let daemon = Place::new().start();
    let mut bystander = Bystander::of(&daemon);
    bystander.is_served();
    let (files, memory) = (daemon.files(), daemon.memory());
    for role in ROLES {
        let bad = no_frames().into_iter().chain(no_messages());
        for bad in bad.chain(not_this_roles(role)) {
            let what = format!("{} at {role}", bad.name);
            assert_bad(daemon.connect(role), &bad, &what);
            assert_bad(daemon.join(role), &bad, &format!("{what}, after hello"));
            bystander.is_served();
        }
    }
    daemon.settles_at(files, || bystander.is_served());
    let grown = daemon.memory().saturating_sub(memory);
    assert!(grown < MAX_GROWTH, "the daemon has grown by {grown} KiB");
}

#[test]
fn a_begun_frame_that_is_not_completed_in_frame_timeout_ends_its_connection_only() {
    let daemon = Place::new().setting("frame_timeout = \"300ms\"").start();
    let mut bystander = Bystander::of(&daemon);
    bystander.is_served();
    let files = daemon.files();
    let begun = [
        &b"\0\0"[..],
        b"\0\0\0\x10",
        b"\0\0\0\x10{\"v\":",
        b"\0\x10\0\0{",
    ];
    let mut peers = Vec::new();
    for role in ROLES {
        for begun in begun {
            let mut peer = daemon.connect(role);
            peer.bytes(begun);
            peers.push((role, peer));
        }
    }
    bystander.is_served();
    for (role, mut peer) in peers {
        assert_told(&mut peer, role, "bad_frame", 0);
        assert_eq!(peer.closed(), Vec::<Value>::new());
        bystander.is_served();
    }
    // One that waits without having begun a frame may wait.
    let mut idle = daemon.connect("bot");
    assert_kept(&mut idle);
    drop(idle);
    daemon.settles_at(files, || bystander.is_served());
}

#[test]
fn a_frame_that_trickles_in_does_not_push_frame_timeout_out() {
    let daemon = Place::new().setting("frame_timeout = \"200ms\"").start();
    let mut peer = daemon.connect("bot");
    let mut stream = peer.stream();
    peer.bytes(&MAX_FRAME.to_be_bytes());
    let mut sent = 0;
    while std::io::Write::write(&mut stream, b" ").is_ok() {
        sent += 1;
        assert!(sent < MAX_FRAME, "the whole frame was taken");
    }
    assert_told(&mut peer, "a trickle", "bad_frame", 0);
    assert_eq!(peer.closed(), Vec::<Value>::new());
}

#[test]
fn a_peer_that_goes_in_the_middle_of_anything_leaves_nothing_open() {
    let daemon = Place::new().start();
    let mut bystander = Bystander::of(&daemon);
    bystander.is_served();
    let files = daemon.files();
    for role in ROLES {
        for part in [
            &b""[..],
            b"\0",
            b"\0\0\0\x10",
            b"\0\0\0\x10{",
            b"\0\x10\0\0{\"v\":1",
        ] {
            daemon.connect(role).bytes(part);
        }
        bystander.is_served();
    }
    daemon.settles_at(files, || bystander.is_served());
}
