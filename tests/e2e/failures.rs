//! Each failure code, from its own cause.

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::harness::{Peer, Place};

#[track_caller]
fn assert_failed(answer: &Value, code: &str) {
    assert_eq!(answer["status"], "failed", "{answer}");
    let message = answer["message"].as_str().expect("a message");
    assert!(message.starts_with(&format!("{code}: ")), "{answer}");
}

/// The same call again gets the same answer.
#[track_caller]
fn assert_kept(agent: &mut Peer, answer: &Value, call: u64, tool: &str) {
    assert_eq!(agent.called("s", call, tool, "{}"), *answer);
}

#[test]
fn no_runner_is_for_a_call_whose_runner_does_not_come() {
    let daemon = Place::new().setting("runner_wait = \"100ms\"").start();
    let mut agent = daemon.connect("bot");
    assert_failed(&agent.called("s", 1, "read", "{}"), "no_runner");
    // It may be asked again, once the runner is there.
    let mut runner = daemon.connect("files");
    let id = agent.call("s", 1, "read", "{}");
    let (request, _) = runner.request();
    runner.result(request, "read");
    assert_eq!(agent.ends(id)["content"], "read");
}

#[test]
fn busy_is_for_a_call_over_a_quota() {
    let daemon = Place::new()
        .role("bot", "quota = { in_flight = 1 }")
        .start();
    let mut runner = daemon.connect("files");
    let mut agent = daemon.connect("bot");
    let first = agent.call("s", 1, "read", "{}");
    let (request, _) = runner.request();
    let second = agent.called("s", 2, "read", "{}");
    assert_failed(&second, "busy");
    assert_eq!(second["message"], "busy: in_flight");
    runner.result(request, "read");
    assert_eq!(agent.ends(first)["content"], "read");
    let again = agent.call("s", 2, "read", "{}");
    let (request, _) = runner.request();
    runner.result(request, "read later");
    assert_eq!(agent.ends(again)["content"], "read later");
}

#[test]
fn timed_out_is_for_a_runner_that_is_silent_for_too_long() {
    let daemon = Place::new().setting("call_timeout = \"200ms\"").start();
    let mut runner = daemon.join("files");
    let mut agent = daemon.connect("bot");
    let id = agent.call("s", 1, "put", "{}");
    let (request, _) = runner.request();
    let answer = agent.ends(id);
    assert_failed(&answer, "timed_out");
    // The runner is told, and what it says late is not released.
    assert_eq!(runner.answer(request)["msg"]["kind"], "cancel");
    runner.result(request, "late");
    assert_kept(&mut agent, &answer, 1, "put");
}

#[test]
fn cancelled_is_for_a_call_that_was_cancelled_before_its_runner_had_it() {
    let daemon = Place::new().setting("runner_wait = \"1h\"").start();
    let mut agent = daemon.join("bot");
    let id = agent.call("s", 1, "read", "{}");
    let cancel = agent.ask("cancel", &serde_json::json!({"session": "s", "call": 1}));
    let answer = agent.ends(id);
    assert_failed(&answer, "cancelled");
    assert_eq!(agent.ends(cancel), answer);
    let mut runner = daemon.join("files");
    assert_kept(&mut agent, &answer, 1, "read");
    runner.is_silent();
}

#[test]
fn unknown_outcome_is_for_a_call_whose_end_nobody_knows() {
    let daemon = Place::new().setting("call_timeout = \"200ms\"").start();
    let mut runner = daemon.connect("files");
    let mut agent = daemon.connect("bot");
    let id = agent.call("s", 1, "order", "{}");
    runner.request();
    let answer = agent.ends(id);
    assert_failed(&answer, "unknown_outcome");
    assert_kept(&mut agent, &answer, 1, "order");
    runner.is_silent();
}

#[test]
fn too_large_is_for_arguments_that_no_person_could_read() {
    let daemon = Place::new().start();
    let mut boss = daemon.join("boss");
    let mut agent = daemon.connect("bot");
    let long = format!(r#"{{"what":"{}"}}"#, "tea ".repeat(20_000));
    assert_failed(&agent.called("ask-1", 1, "order", &long), "too_large");
    boss.is_silent();
}

#[test]
fn too_large_is_for_an_mcp_result_over_a_frame_and_text_is_cut() {
    let daemon = Place::new().setting("max_frame = \"64KiB\"").start();
    let mut runner = daemon.join("files");
    let mut agent = daemon.connect("bot");
    for (call, tool) in [(1, "lines"), (2, "read")] {
        let id = agent.call("s", call, tool, "{}");
        let (request, _) = runner.request();
        let part = crate::harness::result(&"\u{e9}".repeat(20_000));
        runner.say(request, false, "tool_response", &part);
        runner.say(request, true, "tool_response", &part);
        let answer = agent.ends(id);
        if tool == "lines" {
            assert_failed(&answer, "too_large");
        } else {
            let content = answer["content"].as_str().expect("content");
            assert_eq!(answer["truncated"], true);
            assert!(content.len() > 60_000 && content.chars().all(|c| c == '\u{e9}'));
        }
    }
}

#[test]
fn runner_failed_is_for_whatever_a_runner_says_that_is_no_result() {
    let daemon = Place::new().start();
    let mut runner = daemon.connect("files");
    let mut agent = daemon.connect("bot");
    let denied = serde_json::json!({"status": "denied", "reason": "no_grant"});
    let pending = serde_json::json!({"status": "pending_approval", "approval": "a", "expires": 1});
    let error = serde_json::json!({"code": "internal", "detail": "busy: memory"});
    let failed = serde_json::json!({"status": "failed", "message": "busy: no paper"});
    for (call, kind, body, text) in [
        (1, "tool_response", &denied, "it answered `denied`"),
        (
            2,
            "tool_response",
            &pending,
            "it answered `pending_approval`",
        ),
        (3, "error", &error, "busy: memory"),
        (4, "tool_response", &failed, "busy: no paper"),
    ] {
        let id = agent.call("s", call, "order", "{}");
        let (request, _) = runner.request();
        runner.say(request, true, kind, body);
        assert_eq!(agent.ends(id)["message"], format!("runner_failed: {text}"));
    }
}

#[test]
fn shutting_down_is_for_a_call_that_comes_during_a_drain() {
    let mut daemon = Place::new().start();
    let mut runner = daemon.connect("files");
    let mut agent = daemon.connect("bot");
    let first = agent.call("s", 1, "read", "{}");
    let (request, _) = runner.request();
    daemon.signal(Signal::SIGTERM);
    daemon.wait_for("draining");
    assert_failed(&agent.called("s", 2, "read", "{}"), "shutting_down");
    runner.result(request, "read");
    assert_eq!(agent.ends(first)["content"], "read");
    assert_eq!(daemon.end().code(), Some(0));
}

#[test]
fn busy_is_also_for_a_call_over_the_rate_and_other_requests_are_told_so_as_errors() {
    let daemon = Place::new()
        .role("bot", "quota = { requests_per_second = 1 }")
        .start();
    let mut agent = daemon.join("bot");
    let ids: Vec<u64> = (1..=30)
        .map(|n| agent.call("s", n, "ungranted", "{}"))
        .collect();
    let answers: Vec<Value> = ids.into_iter().map(|id| agent.ends(id)).collect();
    let busy = |answer: &&Value| answer["message"] == "busy: requests_per_second";
    assert!(answers.iter().filter(busy).count() > 10, "{answers:?}");
    let ids: Vec<u64> = (1..=30)
        .map(|_| agent.ask("list_tools", &serde_json::json!({"session": "s"})))
        .collect();
    let refused = ids.into_iter().map(|id| agent.answer(id)).filter(|answer| {
        let body = &answer["msg"]["body"];
        body["code"] == "internal" && body["detail"] == "busy: requests_per_second"
    });
    assert!(refused.count() > 10);
}

#[test]
fn connections_over_the_quota_are_closed_and_those_within_it_are_served() {
    let daemon = Place::new()
        .role("bot", "quota = { connections = 4 }")
        .start();
    let _echo = daemon.echo();
    let mut within: Vec<Peer> = (0..4).map(|_| daemon.join("bot")).collect();
    for _ in 0..100 {
        let told = daemon.connect("bot").closed();
        assert_eq!(told.len(), 1, "{told:?}");
        let error = serde_json::json!({"code": "internal", "detail": "busy: connections"});
        assert_eq!(told[0]["msg"]["body"], error);
    }
    let mut other = daemon.connect("other");
    assert_eq!(other.called("s", 1, "echo", "{}")["content"], "{}");
    for (agent, call) in within.iter_mut().zip(1..) {
        assert_eq!(agent.called("s", call, "echo", "{}")["content"], "{}");
    }
    // A place that was given up is another one's.
    within.pop();
    daemon.wait_for_line("the end", |line| {
        line["event"] == "disconnected" && line["role"] == "bot"
    });
    daemon.join("bot");
}
