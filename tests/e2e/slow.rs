//! Peers that do not read or do not answer: others do not notice.

use serde_json::json;

use crate::harness::{Daemon, Peer, Place};

/// Content of which a few fill every buffer between a daemon and a peer that does not read.
fn much() -> String {
    "0123456789abcdef".repeat(24 << 10)
}

/// Another agent's calls are served.
#[track_caller]
fn assert_served(other: &mut Peer, from: u64) {
    for call in from..from + 20 {
        let arguments = format!(r#"{{"n":{call}}}"#);
        assert_eq!(
            other.called("o", call, "echo", &arguments)["content"],
            arguments
        );
    }
}

fn is_write_timeout(daemon: &Daemon, role: &str) {
    daemon.wait_for_line("write_timeout", |line| {
        let why = line["event"] == "write_timeout" || line["reason"] == "write_timeout";
        why && line["role"] == role
    });
}

#[test]
fn an_agent_that_never_reads_delays_nobody_and_is_closed_after_write_timeout() {
    let daemon = Place::new().setting("write_timeout = \"300ms\"").start();
    let _echo = daemon.echo();
    let mut runner = daemon.connect("files");
    let mut other = daemon.connect("other");
    let mut sleeper = daemon.connect("bot");
    for call in 1..=16 {
        sleeper.call("s", call, "read", "{}");
    }
    for _ in 1..=16 {
        let (request, _) = runner.request();
        runner.result(request, &much());
        assert_served(&mut other, request * 100);
    }
    is_write_timeout(&daemon, "bot");
    assert_served(&mut other, 10_000);
    // What it did not take is kept for a repeat.
    let mut back = daemon.connect("bot");
    assert!(back.called("s", 16, "read", "{}")["content"] == much().as_str());
    drop(sleeper);
}

#[test]
fn an_agent_that_reads_slowly_gets_everything_once_it_reads() {
    let daemon = Place::new().start();
    let _echo = daemon.echo();
    let mut runner = daemon.connect("files");
    let mut other = daemon.connect("other");
    let mut sleeper = daemon.connect("bot");
    let ids: Vec<u64> = (1..=16)
        .map(|n| sleeper.call("s", n, "read", "{}"))
        .collect();
    for n in 1..=16 {
        let (request, _) = runner.request();
        runner.result(request, &format!("{n} {}", much()));
    }
    assert_served(&mut other, 1);
    for id in ids {
        let content = sleeper.ends(id)["content"].clone();
        let number = content.as_str().and_then(|text| text.split_once(' '));
        assert!(
            number == Some((&id.to_string(), &much())),
            "answer {id} is another"
        );
    }
}

#[test]
fn a_runner_that_never_answers_blocks_no_other_runners_calls() {
    let daemon = Place::new().role("files", "concurrency = 1").start();
    let _echo = daemon.echo();
    let mut silent = daemon.connect("files");
    let mut agent = daemon.connect("bot");
    let mut other = daemon.connect("other");
    for call in 1..=10 {
        agent.call("s", call, "read", "{}");
    }
    silent.request();
    assert_served(&mut other, 1);
    // Nor the same agent's.
    assert_eq!(
        agent.called("s", 11, "echo", r#"{"a":1}"#)["content"],
        r#"{"a":1}"#
    );
    silent.is_silent();
}

#[test]
fn a_runner_that_never_reads_delays_nobody_and_its_calls_end() {
    let daemon = Place::new().setting("write_timeout = \"300ms\"").start();
    let _echo = daemon.echo();
    let sleeper = daemon.connect("files");
    let mut agent = daemon.connect("bot");
    let mut other = daemon.connect("other");
    let arguments = format!(r#"{{"text":"{}"}}"#, much());
    let ids: Vec<u64> = (1..=8)
        .map(|n| agent.call("s", n, "order", &arguments))
        .collect();
    assert_served(&mut other, 1);
    is_write_timeout(&daemon, "files");
    assert_served(&mut other, 100);
    drop(sleeper);
    // Those that were on their way are unknown; another runner gets the rest.
    let mut runner = daemon.connect("files");
    let first = agent.ends(ids[0]);
    let message = first["message"].as_str().expect("a message");
    assert!(message.starts_with("unknown_outcome: "), "{message}");
    let last = agent.call("s", 9, "order", "{}");
    let mut ended = None;
    while ended.is_none() {
        let (request, body) = runner.request();
        runner.result(request, "ordered");
        ended = (body["call"] == 9).then(|| agent.ends(last));
    }
    assert_eq!(ended.expect("it ended")["content"], "ordered");
}

#[test]
fn an_approver_that_never_reads_delays_nobody() {
    let place = Place::new().role("bot", "quota = { approvals = 64 }");
    let daemon = place.setting("write_timeout = \"300ms\"").start();
    let _echo = daemon.echo();
    let mut agent = daemon.connect("bot");
    let mut other = daemon.connect("other");
    let sleeper = daemon.join("boss");
    let arguments = |n| json!({"what": "tea ".repeat(15_000), "n": n}).to_string();
    for call in 1..=24 {
        let id = agent.call("ask-1", call, "order", &arguments(call));
        assert_eq!(
            agent.answer(id)["msg"]["body"]["status"],
            "pending_approval"
        );
    }
    assert_served(&mut other, 1);
    is_write_timeout(&daemon, "boss");
    drop(sleeper);
    // One that reads is shown every one.
    let mut boss = daemon.join("boss");
    for _ in 1..=24 {
        boss.answers("refuse");
    }
}

#[test]
fn an_agent_that_floods_with_bad_messages_and_never_reads_is_closed_and_costs_no_memory() {
    let daemon = Place::new().setting("write_timeout = \"300ms\"").start();
    let _echo = daemon.echo();
    let mut other = daemon.connect("other");
    assert_served(&mut other, 1);
    let memory = daemon.memory();
    let sleeper = daemon.connect("bot");
    let mut flood = sleeper.stream();
    let flooding = std::thread::spawn(move || {
        let bad = [&[0, 0, 0, 2][..], b"{}"].concat().repeat(1000);
        while std::io::Write::write_all(&mut flood, &bad).is_ok() {}
    });
    for round in 1..=20 {
        assert_served(&mut other, round * 100);
    }
    is_write_timeout(&daemon, "bot");
    flooding.join().expect("it did not panic");
    assert_served(&mut other, 10_000);
    let grown = daemon.memory().saturating_sub(memory);
    assert!(grown < 32 << 10, "the daemon has grown by {grown} KiB");
}

#[test]
fn agents_that_flood_with_large_frames_do_not_keep_another_from_being_served() {
    let daemon = Place::new().start();
    let _echo = daemon.echo();
    let mut other = daemon.connect("other");
    let memory = daemon.memory();
    // Each is denied, and costs its decoding only.
    let arguments = format!(r#"{{"text":"{}"}}"#, "x".repeat(1 << 20));
    let floods: Vec<_> = (0..4)
        .map(|n| {
            let mut agent = daemon.connect("bot");
            let arguments = arguments.clone();
            std::thread::spawn(move || {
                for call in 1..=4 {
                    let answer = agent.called(&format!("s{n}"), call, "ungranted", &arguments);
                    assert_eq!(answer["reason"], "no_grant");
                }
            })
        })
        .collect();
    for round in 1..=10 {
        assert_served(&mut other, round * 100);
    }
    for flood in floods {
        flood.join().expect("it did not panic");
    }
    let grown = daemon.memory().saturating_sub(memory);
    assert!(grown < 64 << 10, "the daemon has grown by {grown} KiB");
}
