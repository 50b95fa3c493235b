//! `rolebroker explain`, `suggest`, `tail` and `reload`, as an operator reads them.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::commands::{printed, rolebroker, world};
use crate::harness::{Daemon, Place, finished};
use crate::operators::{refused, shown};

/// A key that nobody may read, asked for by `bot` in session `s` as call 7.
#[track_caller]
fn deny_a_key(daemon: &Daemon) {
    let mut agent = daemon.connect("bot");
    let denied = agent.called("s", 7, "read", r#"{"path":"/a/canary.pem"}"#);
    assert_eq!(denied["reason"], "denied_by_grant");
}

#[test]
fn explain_says_of_a_past_call_which_grants_had_a_say_and_which_fell() {
    let (daemon, _runner) = world();
    deny_a_key(&daemon);
    let text = shown(&daemon, &["explain", "bot", "s", "7"]);
    assert!(
        text.starts_with("denied (denied_by_grant): grant `no-keys`"),
        "{text}"
    );
    let had_a_say = text.find("these had a say:").expect("a heading");
    assert!(
        text[had_a_say..].contains("no-keys: it says deny"),
        "{text}"
    );
    assert!(
        text.contains("for other roles, sessions or tools: seen-first, was"),
        "{text}"
    );
    assert!(!text.contains("canary"), "an argument is told: {text}");
    let object = printed(&daemon, "admin", &["explain", "bot", "s", "7"], 0);
    assert_eq!(object["judgement"]["decided"], "deny");
    assert_eq!(object["judgement"]["grant"], "no-keys");
    assert_eq!(object["trace"].as_array().map(Vec::len), Some(4));
    let why = refused(&daemon, &["explain", "bot", "s", "8"], 1);
    assert!(why.contains("no decision about it is remembered"), "{why}");
}

#[test]
fn explain_says_of_a_call_that_was_never_made_what_it_would_get() {
    let (daemon, _runner) = world();
    let about = |arguments: &[&str]| {
        let args = [&["explain", "bot", "ask-1", "--tool"], arguments].concat();
        shown(&daemon, &args)
    };
    let asked = about(&["order", "what=tea"]);
    assert!(
        asked.contains("a person is asked: grant `seen-first`"),
        "{asked}"
    );
    let late = about(&["late"]);
    assert!(late.contains("expired"), "{late}");
    let unknown = about(&["no-such-tool"]);
    assert!(unknown.contains("no tool of that name"), "{unknown}");
    let sessions = printed(&daemon, "admin", &["sessions", "bot"], 0);
    assert_eq!(sessions["sessions"], json!([]), "it opened a session");
    let why = refused(&daemon, &["explain", "boss", "s", "--tool", "read"], 1);
    assert!(why.contains("no such agent role"), "{why}");
    refused(&daemon, &["explain", "bot", "s"], 64);
    refused(&daemon, &["explain", "bot", "s", "x"], 64);
}

#[test]
fn what_suggest_writes_can_be_granted_and_lets_just_that_call_through() {
    let (daemon, mut runner) = world();
    let mut agent = daemon.connect("bot");
    let tea = r#"{"what":"tea","cups":2}"#;
    let denied = agent.called("s", 1, "ungranted", tea);
    assert_eq!(denied["reason"], "no_grant");
    let written = shown(&daemon, &["suggest", "bot", "s", "1"]);
    let args = ["grant", "-", "--reason", "it asked nicely"];
    let mut grant = rolebroker(&daemon, "admin", &args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("rolebroker");
    let mut stdin = grant.stdin.take().expect("a pipe");
    stdin.write_all(written.as_bytes()).expect("written");
    drop(stdin);
    assert!(grant.wait().expect("an end").success(), "{written}");
    let other = agent.called("s", 2, "ungranted", r#"{"what":"tea","cups":3}"#);
    assert_eq!(other["reason"], "no_grant");
    let id = agent.call("s", 3, "ungranted", tea);
    let (request, _) = runner.request();
    runner.result(request, "two cups");
    assert_eq!(agent.ends(id)["content"], "two cups");
    let again = agent.called("s", 4, "ungranted", tea);
    assert_eq!(again["reason"], "no_grant", "it was for once");
}

#[test]
fn suggest_names_the_deny_that_no_grant_overrides() {
    let (daemon, _runner) = world();
    deny_a_key(&daemon);
    let object = printed(&daemon, "admin", &["suggest", "bot", "s", "7"], 0);
    assert_eq!(object["grant"], "");
    let notes = object["notes"].to_string();
    assert!(notes.contains("no-keys"), "{notes}");
}

#[test]
fn tail_follows_what_happens_until_it_is_interrupted() {
    let (daemon, mut runner) = world();
    let mut tail = rolebroker(&daemon, "admin", &["tail", "--json", "--role", "bot"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("rolebroker");
    let mut lines = BufReader::new(tail.stdout.take().expect("a pipe")).lines();
    let mut next = || -> Value {
        let line = lines.next().expect("a line").expect("text");
        serde_json::from_str(&line).expect("an object")
    };
    // It follows once the broker has its request, which nothing tells: denials until one is heard.
    let mut agent = daemon.connect("bot");
    let heard = std::thread::scope(|scope| {
        let heard = scope.spawn(&mut next);
        let mut call = 1000;
        while !heard.is_finished() {
            agent.called("s", call, "no-such-tool", "{}");
            call += 1;
        }
        heard.join().expect("an event")
    });
    assert_eq!(
        (&heard["event"], &heard["reason"]),
        (&json!("denied"), &json!("no_grant"))
    );
    let id = agent.call("s", 1, "read", r#"{"what":"canary"}"#);
    let (request, _) = runner.request();
    runner.result(request, "canary");
    agent.ends(id);
    let mut seen = Vec::new();
    while seen.last() != Some(&json!("answered")) {
        let event = next();
        assert_eq!(event["role"], "bot", "{event}");
        assert!(!event.to_string().contains("canary"), "{event}");
        if event["call"] == 1 {
            seen.push(event["event"].clone());
        }
    }
    assert_eq!(seen, ["dispatched", "answered"]);
    let pid = nix::unistd::Pid::from_raw(tail.id().try_into().expect("a pid"));
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).expect("a signal");
    assert_eq!(tail.wait().expect("an end").code(), Some(0));
}

#[test]
fn tail_ends_when_nobody_reads_it_any_more() {
    let (daemon, _runner) = world();
    let mut tail = rolebroker(&daemon, "admin", &["tail"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("rolebroker");
    drop(tail.stdout.take());
    let mut agent = daemon.connect("bot");
    let mut call = 1000;
    let mut ended = None;
    // At the first event that it hears; the last call is far away.
    while ended.is_none() && call < 100_000 {
        agent.called("s", call, "no-such-tool", "{}");
        call += 1;
        ended = tail.try_wait().expect("rolebroker");
    }
    if ended.is_none() {
        tail.kill().expect("rolebroker");
    }
    tail.wait().expect("an end");
    assert_eq!(ended.map(|status| status.code()), Some(Some(0)));
}

#[test]
fn a_result_that_nobody_reads_is_no_fault_of_the_call() {
    let (daemon, mut runner) = world();
    let mut call = rolebroker(&daemon, "bot", &["call", "read", "{}"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("rolebroker");
    drop(call.stdout.take());
    let (request, _) = runner.request();
    runner.result(request, "the content");
    let ended = call.wait_with_output().expect("an end");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "{said}");
    assert!(said.is_empty(), "{said}");
}

#[test]
fn a_reload_says_what_it_changed() {
    let daemon = Place::new().start();
    let nothing = shown(&daemon, &["reload"]);
    assert!(nothing.contains("nothing changed"), "{nothing}");
    let text = daemon.place.text().replace("id = \"was\"", "id = \"is\"");
    daemon.place.write(&text);
    let changed = shown(&daemon, &["reload"]);
    assert!(
        changed.contains("`is`") && changed.contains("`was`"),
        "{changed}"
    );
    let line = daemon.wait_for_line("what changed", |line| {
        line["event"] == "configuration_changed" && line.to_string().contains("was")
    });
    assert!(line["detail"].is_string(), "{line}");
}

#[test]
fn a_call_that_was_approved_tells_its_approver_how_it_ended() {
    let (daemon, mut runner) = world();
    let mut boss = daemon.join("boss");
    let mut agent = daemon.connect("bot");
    agent.call("ask-1", 1, "order", r#"{"what":"tea"}"#);
    boss.approves();
    let (request, _) = runner.request();
    runner.fails(request, "the canary is out of tea");
    let ended = boss.pushed("call_settled");
    assert_eq!(ended["end"], "failed");
    assert_eq!(ended["detail"], "runner_failed");
    assert!(!ended.to_string().contains("canary"), "{ended}");
    let mut listed = rolebroker(&daemon, "boss", &["approvals", "--settled"]);
    let text = String::from_utf8(finished(&mut listed, 0).stdout).expect("text");
    assert!(text.contains("runner_failed"), "{text}");
}
