//! `rolebroker suggest --past`: grants for the calls of the record, appended, loaded, and no wider than what was seen.

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;

use crate::commands::printed;
use crate::harness::{Daemon, EchoRunner, Peer, Place, finished, program};

/// Two tools that no grant is for.
const TOOLS: &str = r#"
[[tool]]
name = "find"
runner = "echo"
class = "public"
untrusted = false
effects = "read"
egress = false

[[tool]]
name = "post"
runner = "echo"
class = "public"
untrusted = false
effects = "once"
egress = true"#;

const SEEN: [(&str, &str); 5] = [
    ("s", "{\"path\":\"/a\"}"),
    ("s", "{\"path\":\"/b\"}"),
    ("t", "{\"path\":\"/a\"}"),
    ("t", "{\"path\":\"/b\"}"),
    ("t", "{\"path\":\"/b\",\"deep\":true}"),
];

/// A daemon that has denied what was SEEN, and a call of each tool in the untrusted session `u`.
fn denied() -> (Daemon, Peer, EchoRunner) {
    let daemon = Place::new().and(TOOLS).start();
    let echo = daemon.echo();
    let mut runner = daemon.join("files");
    let mut agent = daemon.join("bot");
    let id = agent.call("u", 1, "diary", "{}");
    let (request, _) = runner.request();
    runner.result(request, "Dear diary");
    agent.ends(id);
    for (number, (session, arguments)) in (1..).zip(SEEN) {
        assert_eq!(
            asked(&mut agent, session, number, "find", arguments),
            "no_grant"
        );
    }
    assert_eq!(
        asked(&mut agent, "u", 2, "find", "{\"path\":\"/c\"}"),
        "no_grant"
    );
    assert_eq!(
        asked(&mut agent, "u", 3, "post", "{\"text\":\"hi\"}"),
        "no_grant"
    );
    (daemon, agent, echo)
}

/// `result`, or why it is denied.
#[track_caller]
fn asked(agent: &mut Peer, session: &str, call: u64, tool: &str, arguments: &str) -> String {
    let answer = agent.called(session, call, tool, arguments);
    let said = answer.get("reason").unwrap_or(&answer["status"]);
    said.as_str().expect("text").to_owned()
}

#[track_caller]
fn suggest(daemon: &Daemon, more: &[&str], code: i32) -> Output {
    // It is answered once its record is durable, and so is all before it.
    printed(daemon, "admin", &["reload"], 0);
    let mut command = Command::new(program("rolebroker"));
    let state = daemon.place.path().join("state");
    command.args(["suggest", "bot", "--past"]).args(more);
    finished(command.arg("--state-dir").arg(state), code)
}

#[track_caller]
fn suggested(daemon: &Daemon, more: &[&str]) -> String {
    String::from_utf8(suggest(daemon, more, 0).stdout).expect("text")
}

#[track_caller]
fn told(daemon: &Daemon, more: &[&str]) -> Value {
    let all = [&["--json"], more].concat();
    serde_json::from_str(&suggested(daemon, &all)).expect("JSON")
}

/// Appends to the configuration, has it checked, and loads it.
#[track_caller]
fn append(daemon: &Daemon, lines: &str) {
    let held = fs::read_to_string(daemon.place.config()).expect("reads");
    daemon.place.write(&(held + lines));
    let mut check = Command::new(program("rolebrokerd"));
    check.arg("--check-config").arg("--config");
    finished(check.arg(daemon.place.config()), 0);
    printed(daemon, "admin", &["reload"], 0);
}

#[test]
fn what_was_denied_runs_once_the_lines_are_appended_and_nothing_else_does() {
    let (daemon, mut agent, _echo) = denied();
    let lines = suggested(&daemon, &[]);
    assert!(lines.contains("(session `u`)"), "{lines}");
    assert!(lines.contains("of them 0 would change"), "{lines}");
    append(&daemon, &lines);
    for (number, (session, arguments)) in (11..).zip(SEEN) {
        assert_eq!(
            asked(&mut agent, session, number, "find", arguments),
            "result",
            "{lines}"
        );
    }
    for (number, (session, arguments)) in (21..).zip([
        ("s", "{\"path\":\"/c\"}"),
        ("s", "{\"path\":\"/b\",\"deep\":true}"),
        ("t", "{\"path\":\"/a\",\"deep\":true}"),
        ("t", "{}"),
        ("new", "{\"path\":\"/a\"}"),
        ("u", "{\"path\":\"/c\"}"),
    ]) {
        assert_eq!(
            asked(&mut agent, session, number, "find", arguments),
            "no_grant",
            "{arguments}"
        );
    }
    let seen = told(&daemon, &[]);
    assert_eq!(
        seen["covered"], 5,
        "the calls that were not seen before: {seen}"
    );
}

#[test]
fn an_untrusted_session_counts_where_it_is_named_and_is_asked_about() {
    let (daemon, mut agent, _echo) = denied();
    let seen = told(&daemon, &[]);
    let left = seen["left"].as_array().expect("a list");
    let untrusted = |it: &&Value| it["why"] == "untrusted";
    assert_eq!(left.iter().filter(untrusted).count(), 2, "{seen}");
    let lines = suggested(&daemon, &["--session", "u"]);
    assert!(lines.contains("untrusted = \"ask\""), "{lines}");
    assert!(lines.contains("max_class = \"secret\""), "{lines}");
    append(&daemon, &lines);
    assert_eq!(
        asked(&mut agent, "u", 12, "find", "{\"path\":\"/c\"}"),
        "result"
    );
    assert_eq!(
        asked(&mut agent, "s", 12, "find", "{\"path\":\"/c\"}"),
        "no_grant"
    );
}

#[test]
fn grants_for_any_session_are_for_trusted_ones() {
    let (daemon, mut agent, _echo) = denied();
    append(
        &daemon,
        &suggested(&daemon, &["--any-session", "--tool", "find"]),
    );
    assert_eq!(
        asked(&mut agent, "new", 1, "find", "{\"path\":\"/a\"}"),
        "result"
    );
    assert_eq!(
        asked(&mut agent, "u", 11, "find", "{\"path\":\"/a\"}"),
        "taint_too_high"
    );
}

#[test]
fn grants_are_written_for_another_configuration_and_its_faults_are_told() {
    let (daemon, _agent, _echo) = denied();
    let file = daemon.place.path().join("other.toml");
    let name = file.display().to_string();
    let own = "\n[[grant]]\nid = \"own\"\nroles = [\"bot\"]\nsessions = [\"*\"]\ntools = [\"find\"]\neffect = \"allow\"\n";
    fs::write(&file, format!("{}{own}", daemon.place.text())).expect("writes");
    let seen = told(&daemon, &["--config", &name]);
    assert_eq!(
        (&seen["status"], &seen["left"][0]["why"]),
        (&"nothing".into(), &"permitted".into())
    );
    fs::write(&file, "[[grant]]\n").expect("writes");
    let output = suggest(&daemon, &["--config", &name], 78);
    let why = String::from_utf8(output.stderr).expect("text");
    assert!(output.stdout.is_empty() && why.lines().count() > 2, "{why}");
    let more =
        own.replace("\n[[grant]]\n", "") + "expires = \"2100-01-01T00:00:00Z\"\nmax_uses = 2\n";
    let grant = daemon.place.path().join("grant.toml");
    fs::write(&grant, more).expect("writes");
    let grant = grant.display().to_string();
    printed(&daemon, "admin", &["grant", &grant, "--reason", "r"], 0);
    fs::write(&file, format!("{}{own}", daemon.place.text())).expect("writes");
    let output = suggest(&daemon, &["--config", &name], 78);
    let why = String::from_utf8(output.stderr).expect("text");
    assert!(
        output.stdout.is_empty() && why.contains("grant own, added at run time"),
        "{why}"
    );
}

#[test]
fn what_cannot_be_read_is_no_suggestion() {
    let daemon = Place::new().start();
    suggest(&daemon, &["--config", "/nonexistent.toml"], 66);
    let mut nowhere = Command::new(program("rolebroker"));
    nowhere.args(["suggest", "bot", "--past", "--state-dir", "/nonexistent"]);
    assert!(finished(&mut nowhere, 66).stdout.is_empty());
}
