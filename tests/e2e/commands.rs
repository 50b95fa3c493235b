//! `rolebroker`, the command, against the daemon: exit codes and what `--json` prints.

use std::process::Command;

use serde_json::Value;

use crate::harness::{Daemon, Peer, Place, Program, finished, program};

pub(crate) fn rolebroker(daemon: &Daemon, role: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program("rolebroker"));
    command.arg("--runtime-dir").arg(daemon.place.runtime());
    command.args(["--as", role]).args(args);
    command
}

/// Runs it with `--json` to its end: what it printed.
#[track_caller]
pub(crate) fn printed(daemon: &Daemon, role: &str, args: &[&str], code: i32) -> Value {
    let output = finished(rolebroker(daemon, role, args).arg("--json"), code);
    let text = String::from_utf8(output.stdout).expect("text");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Starts a call that a person is asked about: the command, and the approval's name.
pub(crate) fn asking(daemon: &Daemon, number: &str) -> (Program, String) {
    let args = [
        "call",
        "--session",
        "ask-1",
        "--call",
        number,
        "order",
        "what=tea",
        "--json",
    ];
    let call = Program::start(&mut rolebroker(daemon, "bot", &args));
    let asked = daemon.wait_for("approval_asked");
    let approval = asked["approval"].as_str().expect("a name").to_owned();
    (call, approval)
}

fn ended(call: &mut Program) -> (Option<i32>, Value) {
    let (code, out, err) = call.end();
    let said = serde_json::from_str(&out);
    (
        code,
        said.unwrap_or_else(|error| panic!("{error}: {out} {err}")),
    )
}

pub(crate) fn world() -> (Daemon, Peer) {
    let daemon = Place::new().start();
    let runner = daemon.join("files");
    (daemon, runner)
}

#[test]
fn call_prints_the_content_and_exits_0() {
    let (daemon, mut runner) = world();
    let args = [
        "call",
        "--session",
        "s",
        "--call",
        "1",
        "read",
        "path=/a",
        "n:=1",
    ];
    let mut call = Program::start(&mut rolebroker(&daemon, "bot", &args));
    let (request, body) = runner.request();
    let arguments: Value = serde_json::from_str(body["arguments"].as_str().expect("text"))
        .expect("the arguments are JSON");
    assert_eq!(arguments, serde_json::json!({"path": "/a", "n": 1}));
    runner.result(request, "a\nb \u{2603}");
    let (code, out, err) = call.end();
    assert_eq!((code, out.as_str()), (Some(0), "a\nb \u{2603}"), "{err}");
    let again = printed(&daemon, "bot", &args, 0);
    assert_eq!(again["status"], "result");
    assert_eq!(again["content"], "a\nb \u{2603}");
    assert_eq!(again["class"], "public");
}

#[test]
fn call_exits_3_when_denied_and_4_when_failed_and_says_which() {
    let (daemon, mut runner) = world();
    let denied = [
        "call",
        "--session",
        "s",
        "--call",
        "1",
        "read",
        "path=/a.pem",
    ];
    let said = printed(&daemon, "bot", &denied, 3);
    assert_eq!(
        (&said["status"], &said["reason"]),
        (&"denied".into(), &"denied_by_grant".into())
    );
    let failing = ["call", "--session", "s", "--call", "2", "order", "what=tea"];
    let mut call = Program::start(rolebroker(&daemon, "bot", &failing).arg("--json"));
    let (request, _) = runner.request();
    runner.fails(request, "no tea");
    let (code, said) = ended(&mut call);
    assert_eq!(code, Some(4));
    assert_eq!(
        (&said["code"], &said["text"]),
        (&"runner_failed".into(), &"no tea".into())
    );
    for (args, code) in [(&denied, 3), (&failing, 4)] {
        let output = finished(&mut rolebroker(&daemon, "bot", args), code);
        assert_eq!(output.stdout, b"", "only content goes to standard output");
        assert!(!output.stderr.is_empty(), "it says why");
    }
}

#[test]
fn approve_lets_the_call_run() {
    let (daemon, mut runner) = world();
    let (mut call, approval) = asking(&daemon, "1");
    let shown = printed(&daemon, "boss", &["approvals"], 0);
    assert_eq!(shown["pending"][0]["approval"], approval);
    assert_eq!(shown["pending"][0]["tool"], "order");
    let digest = shown["pending"][0]["digest"].as_str().expect("a digest");
    let comment = ["--comment", "for the guests", "--wait", "0"];
    let approve = [&["approve", &approval, "--digest", digest], &comment[..]].concat();
    let said = printed(&daemon, "boss", &approve, 0);
    assert_eq!(said["settled"]["outcome"], "approved");
    let (request, _) = runner.request();
    runner.result(request, "ordered");
    let (code, said) = ended(&mut call);
    assert_eq!((code, &said["content"]), (Some(0), &"ordered".into()));
    let shown = printed(&daemon, "boss", &["approvals", "--settled"], 0);
    assert_eq!(shown["pending"], serde_json::json!([]));
    assert_eq!(shown["settled"][0]["approval"], approval);
    finished(&mut rolebroker(&daemon, "boss", &["approve", &approval]), 1);
}

#[test]
fn refuse_ends_the_call_with_3() {
    let (daemon, mut runner) = world();
    let (mut call, approval) = asking(&daemon, "1");
    let text = finished(&mut rolebroker(&daemon, "boss", &["approvals"]), 0);
    assert!(String::from_utf8_lossy(&text.stdout).contains(&approval));
    let said = printed(&daemon, "boss", &["refuse", &approval], 0);
    assert_eq!(said["settled"]["outcome"], "refused");
    let (code, said) = ended(&mut call);
    assert_eq!(
        (code, &said["reason"]),
        (Some(3), &"approval_refused".into())
    );
    runner.is_silent();
}

#[test]
fn status_tells_how_the_broker_is() {
    let (daemon, mut runner) = world();
    let mut agent = daemon.connect("bot");
    agent.call("s", 1, "read", "{}");
    runner.request();
    let status = printed(&daemon, "admin", &["status"], 0);
    let roles = status["roles"].as_array().expect("roles");
    let of = |name| roles.iter().find(|role| role["role"] == name).expect("it");
    assert_eq!(of("bot")["in_flight"], 1);
    assert_eq!(of("files")["connections"], 1);
    assert_eq!(status["draining"], false);
    // One uid is everyone here, and that is said.
    assert!(
        status["warnings"].to_string().contains("not separated"),
        "{status}"
    );
    let text = finished(&mut rolebroker(&daemon, "admin", &["status"]), 0);
    assert!(String::from_utf8_lossy(&text.stdout).contains("files"));
}

#[test]
fn mistakes_have_exit_codes_of_their_own() {
    let (mut daemon, _runner) = world();
    let call = ["call", "read"];
    finished(&mut rolebroker(&daemon, "bot", &["no-such-command"]), 64);
    finished(
        &mut rolebroker(&daemon, "bot", &["call", "read", "not an argument"]),
        64,
    );
    finished(&mut rolebroker(&daemon, "boss", &call), 64);
    finished(
        &mut rolebroker(&daemon, "boss", &["approve", "no-such"]),
        64,
    );
    finished(&mut rolebroker(&daemon, "nobody", &call), 69);
    daemon.signal(nix::sys::signal::Signal::SIGTERM);
    daemon.end();
    finished(&mut rolebroker(&daemon, "bot", &call), 69);
}

#[test]
fn demo_shows_what_it_says_and_leaves_nothing_behind() {
    let folder = Place::new();
    let temporary = folder.path().join("tmp");
    std::fs::create_dir(&temporary).expect("mkdir");
    let mut demo = Command::new(program("rolebroker"));
    let output = finished(demo.arg("demo").env("TMPDIR", &temporary), 0);
    assert!(!output.stdout.is_empty());
    let left = std::fs::read_dir(&temporary).expect("the folder").count();
    assert_eq!(left, 0, "the demo left something in its temporary folder");
}

#[test]
fn a_program_is_told_in_json_what_was_wrong_with_the_line_and_what_the_demo_showed() {
    let mut mistaken = Command::new(program("rolebroker"));
    let output = finished(mistaken.args(["no-such-command", "--json"]), 64);
    let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(said["status"], "error");
    assert!(
        said["message"].to_string().contains("no-such-command"),
        "{said}"
    );
    assert_eq!(output.stderr, b"");

    let output = finished(
        Command::new(program("rolebroker")).args(["demo", "--json"]),
        0,
    );
    let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(said, serde_json::json!({"happened": true, "missing": []}));
}

#[test]
fn reload_takes_a_good_file_and_says_what_is_wrong_with_a_bad_one() {
    let (daemon, _runner) = world();
    let bad = daemon
        .place
        .text()
        .replace("effect = \"deny\"", "efect = \"deny\"");
    daemon.place.write(&bad);
    let said = printed(&daemon, "admin", &["reload"], 1);
    assert!(
        said["message"]
            .as_str()
            .is_some_and(|why| why.contains("efect")),
        "{said}"
    );
    let stop = daemon
        .place
        .text()
        .replace("\"order\", \"send\"", "\"send\"");
    daemon.place.write(&stop);
    assert_eq!(printed(&daemon, "admin", &["reload"], 0)["op"], "reloaded");
    let said = printed(&daemon, "bot", &["call", "order"], 3);
    assert_eq!(said["reason"], "no_grant");
}

#[test]
fn drain_ends_the_daemon_once_its_calls_have_ended() {
    let (mut daemon, mut runner) = world();
    let mut agent = daemon.connect("bot");
    let id = agent.call("s", 1, "order", "{}");
    let (request, _) = runner.request();
    assert_eq!(printed(&daemon, "admin", &["drain"], 0)["op"], "draining");
    assert_eq!(
        printed(&daemon, "bot", &["call", "read"], 4)["code"],
        "shutting_down"
    );
    runner.result(request, "ordered");
    assert_eq!(agent.ends(id)["content"], "ordered");
    assert_eq!(daemon.end().code(), Some(0));
}

#[test]
fn declassify_and_endorse_lower_a_session() {
    let (daemon, mut runner) = world();
    let mut agent = daemon.connect("bot");
    let id = agent.call("s", 1, "diary", "{}");
    let (request, _) = runner.request();
    runner.result(request, "dear diary");
    agent.ends(id);
    assert_eq!(
        agent.called("s", 2, "send", "{}")["reason"],
        "taint_too_high"
    );
    let why = ["--reason", "it was a drill"];
    printed(
        &daemon,
        "admin",
        &[&["declassify", "bot", "s", "public"], &why[..]].concat(),
        0,
    );
    printed(
        &daemon,
        "admin",
        &[&["endorse", "bot", "s"], &why[..]].concat(),
        0,
    );
    let id = agent.call("s", 2, "send", "{}");
    let (request, _) = runner.request();
    runner.result(request, "sent");
    assert_eq!(agent.ends(id)["content"], "sent");
}
