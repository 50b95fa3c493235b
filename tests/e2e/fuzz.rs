//! Frames that are good but for some values or bytes, thousands of them in no order, at every socket. `RB_FUZZ_SEED` repeats a run.

use std::io::Write;

use serde_json::{Value, json};

use crate::harness::{Chance, Place, envelope, result, seed_of};

const CONNECTIONS: usize = 400;
const FRAMES: usize = 25;

/// What every kind of peer says, as kind and body.
fn good() -> Vec<(&'static str, Value)> {
    let call = json!({"session": "s", "call": 1, "tool": "read", "arguments": "{\"path\":\"/a\"}"});
    let order = json!({"session": "ask-1", "call": 2, "tool": "order", "arguments": "{}"});
    let vote = json!({"approval": "a-1", "digest": "0a".repeat(32), "answer": "refuse",
        "scope": "once", "comment": "c"});
    let tool = json!({"name": "t", "description": "d", "input_schema": "{}", "class": "public",
        "untrusted": false, "effects": "read", "egress": false, "content": "text"});
    vec![
        (
            "hello",
            json!({"software": "e2e", "features": ["parts", "progress", "tools"]}),
        ),
        ("tool_request", call),
        ("tool_request", order),
        ("tool_response", result("content")),
        ("cancel", json!({"session": "s", "call": 1})),
        ("progress", json!({"done": 1, "total": 2, "note": "n"})),
        ("offer", json!({"tools": [tool]})),
        ("list_tools", json!({"session": "s"})),
        (
            "join_session",
            json!({"from": "s", "into": "t", "close": true}),
        ),
        ("approval_reply", vote),
        ("list_approvals", json!({"settled": true})),
        ("control", json!({"op": "sessions", "role": "bot"})),
        (
            "control",
            json!({"op": "close_session", "role": "bot", "session": "s"}),
        ),
        ("control", json!({"op": "status"})),
    ]
}

/// A good frame; often with other values in it, sometimes with other bytes.
fn frame(good: &[(&str, Value)], chance: &mut Chance) -> Vec<u8> {
    let (kind, mut body) = good[chance.below(good.len())].clone();
    for _ in 0..chance.below(3) {
        tamper(&mut body, chance);
    }
    let id = u64::try_from(chance.below(5)).expect("small");
    let mut frame = envelope(id, chance.below(4) > 0, kind, &body).into_bytes();
    if chance.below(8) == 0 {
        scratch(&mut frame, chance);
    }
    // Most lengths are right: else little would be looked at behind them.
    let length = match chance.below(80) {
        0 => u32::try_from(chance.below(1 << 24)).expect("24 bits"),
        _ => u32::try_from(frame.len()).expect("a length"),
    };
    [&length.to_be_bytes(), &frame[..]].concat()
}

/// Puts another value somewhere into this one.
fn tamper(value: &mut Value, chance: &mut Chance) {
    let stop = chance.below(4) == 0;
    match value {
        Value::Object(map) if !stop && !map.is_empty() => {
            let at = chance.below(map.len());
            let key = map.keys().nth(at).expect("a key").clone();
            match chance.below(8) {
                0 => drop(map.remove(&key)),
                1 => drop(map.insert("other".to_owned(), json!(1))),
                _ => tamper(&mut map[&key], chance),
            }
        }
        Value::Array(items) if !stop && !items.is_empty() => {
            let at = chance.below(items.len());
            tamper(&mut items[at], chance);
        }
        other => *other = odd(chance),
    }
}

fn odd(chance: &mut Chance) -> Value {
    match chance.below(12) {
        0 => json!(null),
        1 => json!(0),
        2 => json!(u64::MAX),
        3 => json!(-1),
        4 => json!(1.5),
        5 => json!(true),
        6 => json!([]),
        7 => json!({"a": [1, {"b": "c"}]}),
        8 => json!(""),
        9 => json!("x".repeat(1 << chance.below(18))),
        10 => json!("\u{0}\u{1f980}\u{202e}\"\\\n"),
        _ => json!(["s", "t", "*", "ask-1", "bot", "files", "read", "diary"][chance.below(8)]),
    }
}

/// Changes some bytes.
fn scratch(frame: &mut Vec<u8>, chance: &mut Chance) {
    let at = chance.below(frame.len());
    let end = (at + chance.below(12)).min(frame.len());
    match chance.below(5) {
        0 => frame[at..end].fill(chance.next().to_le_bytes()[0]),
        1 => drop(frame.drain(at..end)),
        2 => frame.extend_from_within(at..end),
        3 => frame.insert(at, b"\"{}[],:\0\x80"[chance.below(9)]),
        _ => frame[at] ^= 1 << chance.below(8),
    }
}

#[test]
fn no_bytes_from_any_peer_end_the_daemon_or_anothers_calls() {
    let mut chance = Chance::new(seed_of("RB_FUZZ_SEED"));
    let daemon = Place::new().start();
    let _echo = daemon.echo();
    let mut other = daemon.connect("other");
    assert_eq!(other.called("o", 1, "echo", "{}")["content"], "{}");
    let (files, good) = (daemon.files(), good());
    let mut call = 1;
    for _ in 0..CONNECTIONS {
        let role = ["bot", "files", "boss", "admin"][chance.below(4)];
        let peer = daemon.connect(role);
        let mut stream = peer.stream();
        for _ in 0..FRAMES {
            // The daemon closes after what is no frame.
            if stream.write_all(&frame(&good, &mut chance)).is_err() {
                break;
            }
        }
        call += 1;
        assert_eq!(other.called("o", call, "echo", "{}")["content"], "{}");
    }
    daemon.settles_at(files, || {
        call += 1;
        other.called("o", call, "echo", "{}");
    });
    assert!(!daemon.log().contains("\"panic\""));
}
