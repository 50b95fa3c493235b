//! Calls over lost runners, lost agents, many agents and much content.

use serde_json::json;

use crate::commands::{printed, rolebroker};
use crate::harness::{Peer, Place, Program, finished, program};

/// The tool of `rolebroker-runner`, for the role `files`.
pub(crate) const READ_FILE: &str = "\n[[tool]]\nname = \"read_file\"\nrunner = \"files\"\n\
    class = \"public\"\nuntrusted = false\neffects = \"read\"\negress = false\n\n[[grant]]\n\
    id = \"read-file\"\nroles = [\"*\"]\nsessions = [\"*\"]\ntools = [\"read_file\"]\n\
    effect = \"allow\"\n";

#[test]
fn a_once_call_whose_runner_is_killed_is_unknown_and_never_runs_again() {
    let daemon = Place::new().start();
    let mut agent = daemon.connect("bot");
    let id = agent.call("s", 1, "order", "{}");
    let mut first = daemon.connect("files");
    first.request();
    drop(first);
    let answer = agent.ends(id);
    let message = answer["message"].as_str().expect("a message");
    assert!(message.starts_with("unknown_outcome: "), "{answer}");
    let mut second = daemon.join("files");
    assert_eq!(agent.called("s", 1, "order", "{}"), answer);
    second.is_silent();
}

#[test]
fn a_read_call_whose_runner_is_killed_runs_again_on_another() {
    for tool in ["read", "put"] {
        let daemon = Place::new().start();
        let mut agent = daemon.connect("bot");
        let id = agent.call("s", 1, tool, r#"{"path":"/a"}"#);
        let mut first = daemon.connect("files");
        let (_, lost) = first.request();
        let mut second = daemon.join("files");
        drop(first);
        let (request, again) = second.request();
        assert_eq!(again, lost);
        second.result(request, "from the second");
        assert_eq!(agent.ends(id)["content"], "from the second");
    }
}

#[test]
fn a_call_of_which_a_part_was_released_does_not_run_again() {
    let daemon = Place::new().start();
    let mut agent = daemon.join("bot");
    let id = agent.call("s", 1, "read", "{}");
    let mut first = daemon.join("files");
    let (request, _) = first.request();
    first.say(
        request,
        false,
        "tool_response",
        &crate::harness::result("half"),
    );
    assert_eq!(agent.answer(id)["msg"]["body"]["content"], "half");
    let mut second = daemon.join("files");
    drop(first);
    let answer = agent.ends(id);
    let message = answer["message"].as_str().expect("a message");
    assert!(message.starts_with("runner_failed: "), "{answer}");
    second.is_silent();
}

#[test]
fn two_runners_of_a_role_share_its_calls_within_their_concurrency() {
    let daemon = Place::new().role("files", "concurrency = 2").start();
    let mut runners = [daemon.join("files"), daemon.join("files")];
    let mut agent = daemon.connect("bot");
    let ids: Vec<u64> = (1..=6).map(|n| agent.call("s", n, "read", "{}")).collect();
    let mut held = [Vec::new(), Vec::new()];
    for (runner, held) in runners.iter_mut().zip(&mut held) {
        held.push(runner.request().0);
        held.push(runner.request().0);
    }
    // All six are there, and what could be sent was sent before this was told.
    daemon.has_in_flight("bot", 6);
    runners[0].is_silent();
    runners[1].is_silent();
    // Each gets another call for the one that it has answered.
    for (runner, held) in runners.iter_mut().zip(&mut held) {
        runner.result(held[0], "done");
        held.push(runner.request().0);
    }
    for (runner, held) in runners.iter_mut().zip(held) {
        runner.result(held[1], "done");
        runner.result(held[2], "done");
    }
    for id in ids {
        assert_eq!(agent.ends(id)["content"], "done");
    }
}

#[test]
fn an_agent_that_hangs_up_gets_the_stored_answer_of_one_run() {
    for tool in ["read", "put", "order"] {
        let daemon = Place::new().start();
        let mut runner = daemon.join("files");
        let mut agent = daemon.connect("bot");
        agent.call("s", 1, tool, r#"{"n":1}"#);
        let (request, _) = runner.request();
        drop(agent);
        runner.result(request, "the only run");
        let mut agent = daemon.connect("bot");
        assert_eq!(
            agent.called("s", 1, tool, r#"{"n":1}"#)["content"],
            "the only run"
        );
        // The same number with other arguments never gets it.
        let other = agent.call("s", 1, tool, r#"{"n":2}"#);
        let refused = agent.answer(other);
        assert_eq!(refused["msg"]["kind"], "error", "{refused}");
        assert_eq!(refused["msg"]["body"]["code"], "bad_message");
        runner.is_silent();
    }
}

#[test]
fn many_connections_that_ask_the_same_get_the_one_answer() {
    let daemon = Place::new().start();
    let mut runner = daemon.join("files");
    let mut agents: Vec<Peer> = (0..8).map(|_| daemon.connect("bot")).collect();
    let ask = |agent: &mut Peer| agent.call("s", 1, "order", "{}");
    let ids: Vec<u64> = agents.iter_mut().map(ask).collect();
    let (request, _) = runner.request();
    runner.result(request, "one run");
    for (agent, id) in agents.iter_mut().zip(ids) {
        assert_eq!(agent.ends(id)["content"], "one run");
    }
    runner.is_silent();
}

#[test]
fn two_hundred_agents_at_once_each_get_their_own_answers() {
    const AGENTS: u64 = 200;
    const CALLS: u64 = 3;
    let quota = "quota = { connections = 256, in_flight = 1024, requests_per_second = 100000 }";
    let place = Place::new()
        .role("bot", quota)
        .role("echo", "concurrency = 64");
    let daemon = place.start();
    let runners = [daemon.echo(), daemon.echo()];
    let mut agents: Vec<Peer> = (0..AGENTS).map(|_| daemon.connect("bot")).collect();
    let marker = |agent: u64, call: u64| format!(r#"{{"marker":"{agent}-{call}"}}"#);
    for (agent, n) in agents.iter_mut().zip(0..) {
        for call in 1..=CALLS {
            let id = agent.call(&format!("s{n}"), call, "echo", &marker(n, call));
            assert_eq!(id, call);
        }
    }
    for (agent, n) in agents.iter_mut().zip(0..) {
        for call in 1..=CALLS {
            assert_eq!(agent.ends(call)["content"], marker(n, call));
        }
        agent.is_silent();
    }
    let served: u64 = runners.map(|runner| runner.served()).iter().sum();
    assert_eq!(served, AGENTS * CALLS);
}

#[test]
fn six_mebibytes_travel_whole_both_ways() {
    let daemon = Place::new().start();
    let mut runner = daemon.connect("files");
    let mut agent = daemon.connect("bot");
    // Characters of two, three and four bytes, and one that JSON escapes.
    let unit = "\u{e9}\u{2603}\u{1f980}\n 0123456789";
    let text = unit.repeat((6 << 20) / unit.len());
    let arguments = format!(r#"{{"text":"{}"}}"#, text.replace('\n', " "));
    let id = agent.call("s", 1, "put", &arguments);
    let (request, body) = runner.request();
    assert!(
        body["arguments"] == arguments.as_str(),
        "the arguments changed"
    );
    runner.result(request, &text);
    let answer = agent.ends(id);
    assert!(answer["content"] == text.as_str(), "the content changed");
    assert_eq!(answer["truncated"], false);
}

#[test]
fn a_call_that_is_approved_while_its_agent_is_gone_waits_for_the_repeat() {
    let daemon = Place::new().start();
    let mut runner = daemon.join("files");
    let mut agent = daemon.connect("bot");
    let id = agent.call("ask-1", 1, "order", r#"{"what":"tea"}"#);
    let pending = agent.answer(id);
    assert_eq!(pending["final"], false);
    let approval = pending["msg"]["body"]["approval"].clone();
    let shown = printed(&daemon, "boss", &["approvals"], 0);
    let digest = shown["pending"][0]["digest"].as_str().expect("a digest");
    drop(agent);
    daemon.wait_for_line("the agent has gone", |line| {
        line["event"] == "disconnected" && line["role"] == "bot"
    });
    let approve = [
        "approve",
        approval.as_str().expect("a name"),
        "--digest",
        digest,
        "--wait",
        "0",
    ];
    finished(&mut rolebroker(&daemon, "boss", &approve), 0);
    let (request, _) = runner.request();
    runner.result(request, "tea is coming");
    let mut agent = daemon.connect("bot");
    let answer = agent.called("ask-1", 1, "order", r#"{"what":"tea"}"#);
    assert_eq!(answer["content"], "tea is coming");
    runner.is_silent();
}

#[test]
fn a_call_that_waits_for_the_workspaces_own_runner_is_served_once_it_comes() {
    let place = Place::new().setting("runner_wait = \"1h\"");
    let daemon = place.and(READ_FILE).start();
    let file = daemon.place.path().join("note.txt");
    std::fs::write(&file, "a note").expect("writes");
    let mut agent = daemon.connect("bot");
    let ids: Vec<u64> = (1..=20)
        .map(|n| agent.call("s", n, "read_file", &json!({"path": file}).to_string()))
        .collect();
    let mut runner = std::process::Command::new(program("rolebroker-runner"));
    runner
        .arg("--socket")
        .arg(daemon.socket("files"))
        .arg("--folder");
    let _runner = Program::start(runner.arg(format!("{}:public", daemon.place.path().display())));
    for id in ids {
        assert_eq!(agent.ends(id)["content"], "a note");
    }
}

#[test]
fn a_large_frame_keeps_its_place_before_the_small_ones_behind_it() {
    let daemon = Place::new().start();
    let mut runner = daemon.connect("files");
    let mut agent = daemon.connect("bot");
    let large = format!(r#"{{"text":"{}"}}"#, "x".repeat(2 << 20));
    for call in 1..=4 {
        let arguments = if call % 2 == 1 { large.as_str() } else { "{}" };
        agent.call("s", call, "read", arguments);
    }
    for call in 1..=4 {
        let (request, body) = runner.request();
        assert_eq!(body["call"], call);
        runner.result(request, "read");
    }
}

#[test]
fn an_agent_with_many_calls_waiting_does_not_make_another_wait_for_all_of_them() {
    let daemon = Place::new().role("files", "concurrency = 1").start();
    let mut runner = daemon.connect("files");
    let mut many = daemon.connect("bot");
    for call in 1..=40 {
        many.call(&format!("s{}", call % 5), call, "read", "{}");
    }
    let (mut request, _) = runner.request();
    daemon.has_in_flight("bot", 40);
    let mut one = daemon.connect("other");
    let id = one.call("o", 1, "read", "{}");
    daemon.has_in_flight("other", 1);
    let mut before = 0;
    loop {
        runner.result(request, "read");
        let (next, body) = runner.request();
        request = next;
        if body["session"] == "o" {
            break;
        }
        before += 1;
        assert!(before < 3, "the other agent's call stands behind the many");
    }
    runner.result(request, "read");
    assert_eq!(one.ends(id)["content"], "read");
}

#[test]
fn large_calls_that_waited_for_a_runner_reach_it_one_after_another() {
    let daemon = Place::new().setting("runner_wait = \"1h\"").start();
    let _echo = daemon.echo();
    let mut agent = daemon.connect("bot");
    // Together far more than is on its way to one connection at a time.
    let large = format!(r#"{{"text":"{}"}}"#, "x".repeat(600 << 10));
    let ids: Vec<u64> = (1..=6).map(|n| agent.call("s", n, "put", &large)).collect();
    daemon.has_in_flight("bot", 6);
    let mut runner = daemon.connect("files");
    let mut other = daemon.connect("other");
    assert_eq!(other.called("o", 1, "echo", "{}")["content"], "{}");
    for call in 1..=6 {
        let (request, body) = runner.request();
        assert_eq!(body["call"], call);
        runner.result(request, "put");
    }
    for id in ids {
        assert_eq!(agent.ends(id)["content"], "put");
    }
}
