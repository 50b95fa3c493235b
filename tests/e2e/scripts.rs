//! Programs of other languages: scripts that know the seed's three kinds only, and the example of the
//! documents.

use serde_json::{Value, json};

use crate::harness::{Daemon, Place, Program, finished, python};

const PLAIN_AGENT: &str = include_str!("plain_agent.py");
const PLAIN_RUNNER: &str = include_str!("plain_runner.py");
const EXAMPLE: &str = include_str!("../../docs/examples/rolebroker.py");

/// Each line as JSON.
fn lines(text: &str) -> Vec<Value> {
    let line = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {text}"));
    text.lines().map(line).collect()
}

fn plain_agent(daemon: &Daemon) -> Program {
    let mut args = vec![daemon.socket("bot").display().to_string(), "ask-1".into()];
    for (call, tool, arguments) in [
        ("1", "read", r#"{"path":"/a"}"#),
        ("2", "read", r#"{"path":"/a.pem"}"#),
        ("3", "ungranted", "{}"),
        ("4", "order", r#"{"what":"tea"}"#),
    ] {
        args.extend([call.into(), tool.into(), arguments.into()]);
    }
    Program::start(&mut python(PLAIN_AGENT, args))
}

#[test]
fn an_agent_that_knows_the_seeds_three_kinds_only_gets_every_answer() {
    let daemon = Place::new().start();
    let mut runner = daemon.connect("files");
    let mut boss = daemon.join("boss");
    let mut agent = plain_agent(&daemon);
    let (id, request) = runner.request();
    assert_eq!(request["arguments"], r#"{"path":"/a"}"#);
    runner.result(id, "a \u{2603}");
    boss.approves();
    let (id, request) = runner.request();
    assert_eq!(request["tool"], "order");
    runner.result(id, "ordered");
    let (code, out, err) = agent.end();
    assert_eq!(code, Some(0), "{err}");
    let answer = |content| {
        json!({"status": "result", "content": content, "class": "public",
        "untrusted": false, "truncated": false})
    };
    let answers = [
        answer("a \u{2603}"),
        json!({"status": "denied", "reason": "denied_by_grant"}),
        json!({"status": "denied", "reason": "no_grant"}),
        answer("ordered"),
    ];
    assert_eq!(lines(&out), answers);
    assert_eq!(lines(&err)[0]["status"], "pending_approval");
    // Asked again it gets the same, and nothing runs.
    let (code, out, err) = plain_agent(&daemon).end();
    assert_eq!((code, lines(&out)), (Some(0), answers.to_vec()), "{err}");
    runner.is_silent();
}

#[test]
fn a_runner_that_knows_the_seeds_three_kinds_only_serves_what_is_declared() {
    let mut daemon = Place::new().start();
    let mut runner = Program::start(&mut python(PLAIN_RUNNER, [daemon.socket("files")]));
    let mut agent = daemon.connect("bot");
    let read = agent.call("s", 1, "read", r#"{"path":"/a"}"#);
    let put = agent.call("s", 2, "put", "{}");
    assert_eq!(
        agent.ends(read),
        json!({"status": "result", "content": "content of /a \u{2603}", "class": "internal",
            "untrusted": false, "truncated": false})
    );
    let failed = json!({"status": "failed", "message": "runner_failed: this runner cannot put"});
    assert_eq!(agent.ends(put), failed);
    daemon.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(daemon.end().code(), Some(0));
    let (code, _, err) = runner.end();
    assert_eq!((code, err.as_str()), (Some(0), ""));
}

#[test]
fn the_documents_example_calls_serves_and_approves() {
    let daemon = Place::new().start();
    let example = |role: &str, command: &str, more: &[&str]| {
        let mut python = python(EXAMPLE, [command]);
        python.arg(daemon.socket(role)).args(more);
        python
    };
    let _runner = Program::start(&mut example("files", "serve", &["read", "order"]));
    let call = |session: &str, number: &str, tool: &str, arguments: &str| {
        example("bot", "call", &[session, number, tool, arguments])
    };
    let done = finished(&mut call("s", "1", "read", r#"{"path":"/a"}"#), 0);
    let answer = lines(&String::from_utf8_lossy(&done.stdout)).remove(0);
    assert_eq!(answer["content"], r#"{"path":"/a"}"#);
    finished(&mut call("s", "2", "read", r#"{"path":"/a.pem"}"#), 3);
    finished(&mut call("s", "3", "put", "{}"), 4);

    let mut asking = Program::start(&mut call("ask-1", "1", "order", r#"{"what":"tea"}"#));
    let asked = daemon.wait_for("approval_asked");
    let approval = asked["approval"].as_str().expect("an approval");
    let shown = finished(&mut example("boss", "approvals", &[]), 0);
    let shown = lines(&String::from_utf8_lossy(&shown.stdout)).remove(0);
    assert_eq!(shown["approval"], approval);
    assert_eq!(shown["arguments"], r#"{"what":"tea"}"#);
    finished(
        &mut example("boss", "approve", &[approval, "for", "the", "guests"]),
        0,
    );
    let (code, out, err) = asking.end();
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(lines(&out)[0]["content"], r#"{"what":"tea"}"#);
    finished(&mut example("boss", "approve", &[approval]), 1);
}
