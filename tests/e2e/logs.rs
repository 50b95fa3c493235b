//! The log: JSON lines with stable fields, and nothing in them that a peer said in confidence.

use std::collections::BTreeSet;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::harness::{Place, envelope};

const CANARY: &str = "c4n4ry";
/// Of calls and decisions (DESIGN 10), and of every line.
const STABLE: [&str; 13] = [
    "ts",
    "level",
    "event",
    "role",
    "session",
    "call",
    "tool",
    "decision",
    "reason",
    "grant",
    "approval",
    "elapsed_us",
    "detail",
];
/// Of the process around them.
const PROCESS: [&str; 14] = [
    "address",
    "closed",
    "configuration",
    "conn",
    "count",
    "head",
    "limit",
    "records",
    "roles",
    "ruleset",
    "total",
    "uid",
    "version",
    "wanted",
];

/// Everything that a peer may say in confidence, said once.
fn said_everything() -> String {
    let mut daemon = Place::new().start();
    let mut runner = daemon.join("files");
    let mut boss = daemon.join("boss");
    let mut admin = daemon.join("admin");
    let mut agent = daemon.join("bot");
    let secret = json!({"text": CANARY}).to_string();

    let id = agent.call("s", 1, "read", &secret);
    let (request, _) = runner.request();
    let progress = json!({"done": 1, "total": 2, "note": CANARY});
    runner.say(request, false, "progress", &progress);
    runner.say(
        request,
        false,
        "tool_response",
        &crate::harness::result(CANARY),
    );
    runner.result(request, CANARY);
    agent.ends(id);
    let id = agent.call("s", 2, "order", &secret);
    let (request, _) = runner.request();
    runner.fails(request, CANARY);
    agent.ends(id);
    for (call, answer) in [(1, "approve"), (2, "refuse")] {
        let id = agent.call(
            "ask-1",
            call,
            "order",
            &json!({"text": CANARY, "n": call}).to_string(),
        );
        let asked = boss.pushed("approval_request");
        let body = json!({"approval": asked["approval"], "digest": asked["digest"],
            "answer": answer, "scope": "once", "comment": CANARY});
        let reply = boss.ask("approval_reply", &body);
        boss.ends(reply);
        if answer == "approve" {
            let (request, _) = runner.request();
            runner.result(request, CANARY);
        }
        agent.ends(id);
    }
    agent.called(
        "s",
        3,
        "read",
        &json!({"path": "/a.pem", "more": CANARY}).to_string(),
    );
    agent.called("s", 4, "read", &format!("not JSON {CANARY}"));
    let lower = json!({"op": "declassify", "role": "bot", "session": "s", "class": "public",
        "reason": CANARY});
    let id = admin.ask("control", &lower);
    admin.ends(id);

    // What does not decode.
    let request = json!({"session": "s", "call": 5, "tool": "read", "arguments": "{}", CANARY: 1});
    let id = agent.ask("tool_request", &request);
    agent.ends(id);
    let id = agent.ask(
        "tool_request",
        &json!({"session": format!("/{CANARY}"), "call": 6}),
    );
    agent.ends(id);
    let id = agent.ask(CANARY, &json!({}));
    agent.ends(id);
    let mut hello = daemon.connect("bot");
    let id = hello.ask("hello", &json!({"software": CANARY, "features": [CANARY]}));
    hello.answer(id);
    let late = envelope(9999, true, "tool_response", &crate::harness::result(CANARY));
    runner.frame(late.as_bytes());
    let mut bad = daemon.connect("bot");
    bad.frame(format!("{{\"{CANARY}\"").as_bytes());
    bad.closed();
    daemon.signal(Signal::SIGTERM);
    daemon.end();
    daemon.log()
}

#[test]
fn no_argument_content_failure_or_comment_is_ever_in_the_log() {
    let log = said_everything();
    assert!(
        log.contains("\"dispatched\""),
        "the log is not whole:\n{log}"
    );
    let leaks: Vec<_> = log.lines().filter(|line| line.contains(CANARY)).collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
}

#[test]
fn every_line_is_one_json_object_with_the_stable_fields() {
    let log = said_everything();
    let known: BTreeSet<&str> = STABLE.into_iter().chain(PROCESS).collect();
    let mut events = BTreeSet::new();
    for line in log.lines() {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        let object = value
            .as_object()
            .unwrap_or_else(|| panic!("no object: {line}"));
        for field in ["ts", "level", "event"] {
            assert!(value[field].is_string(), "no {field}: {line}");
        }
        for field in object.keys() {
            assert!(
                known.contains(field.as_str()),
                "unknown field {field}: {line}"
            );
        }
        let event = value["event"].as_str().expect("an event").to_owned();
        if ["dispatched", "answered", "denied", "approval_asked"].contains(&event.as_str()) {
            for field in ["role", "session", "tool"] {
                assert!(value[field].is_string(), "no {field}: {line}");
            }
            assert!(value["call"].is_u64(), "no call: {line}");
        }
        events.insert(event);
    }
    for event in [
        "ready",
        "dispatched",
        "answered",
        "denied",
        "approval_asked",
        "drained",
    ] {
        assert!(events.contains(event), "no {event} in {events:?}");
    }
}
