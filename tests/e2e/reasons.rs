//! Each deny reason, from its own cause.

use serde_json::{Value, json};

use crate::harness::{Daemon, Peer, Place};

fn denied(reason: &str) -> Value {
    json!({"status": "denied", "reason": reason})
}

/// Lets the session see what is secret.
fn tells_a_secret(agent: &mut Peer, runner: &mut Peer, session: &str) {
    let id = agent.call(session, 1, "diary", "{}");
    let (request, _) = runner.request();
    runner.result(request, "dear diary");
    let told = agent.ends(id);
    assert_eq!(
        (&told["class"], &told["untrusted"]),
        (&json!("secret"), &json!(true))
    );
}

fn refused(daemon: &Daemon, agent: &mut Peer) -> Value {
    let mut boss = daemon.join("boss");
    let id = agent.call("ask-1", 1, "order", "{}");
    boss.answers("refuse");
    agent.ends(id)
}

#[test]
fn no_grant_is_for_a_call_that_nothing_permits() {
    let daemon = Place::new().start();
    let mut runner = daemon.join("files");
    let mut agent = daemon.connect("bot");
    assert_eq!(agent.called("s", 1, "ungranted", "{}"), denied("no_grant"));
    assert_eq!(
        agent.called("s", 2, "never-heard-of", "{}"),
        denied("no_grant")
    );
    runner.is_silent();
}

#[test]
fn grant_expired_is_for_a_call_that_an_expired_grant_permitted() {
    let daemon = Place::new().start();
    let mut runner = daemon.join("files");
    let mut agent = daemon.connect("bot");
    assert_eq!(agent.called("s", 1, "late", "{}"), denied("grant_expired"));
    runner.is_silent();
}

#[test]
fn taint_too_high_is_for_a_session_that_has_seen_too_much_and_for_no_other() {
    let daemon = Place::new().start();
    let mut runner = daemon.join("files");
    let mut agent = daemon.connect("bot");
    tells_a_secret(&mut agent, &mut runner, "s");
    assert_eq!(agent.called("s", 2, "send", "{}"), denied("taint_too_high"));
    let id = agent.call("fresh", 1, "send", "{}");
    let (request, _) = runner.request();
    runner.result(request, "sent");
    assert_eq!(agent.ends(id)["content"], "sent");
}

#[test]
fn denied_by_grant_is_for_a_call_that_a_deny_forbids_whatever_permits_it() {
    let daemon = Place::new().start();
    let mut runner = daemon.join("files");
    let mut agent = daemon.connect("bot");
    let key = r#"{"path":"/home/key.pem"}"#;
    assert_eq!(agent.called("s", 1, "read", key), denied("denied_by_grant"));
    runner.is_silent();
}

#[test]
fn approval_refused_is_for_a_call_that_a_person_refused_and_answers_the_same_for_a_while() {
    let daemon = Place::new().start();
    let mut runner = daemon.join("files");
    let mut agent = daemon.connect("bot");
    assert_eq!(refused(&daemon, &mut agent), denied("approval_refused"));
    assert_eq!(
        agent.called("ask-1", 1, "order", "{}"),
        denied("approval_refused")
    );
    assert_eq!(
        agent.called("ask-1", 2, "order", "{}"),
        denied("approval_refused")
    );
    runner.is_silent();
}

#[test]
fn approval_expired_is_for_a_call_that_nobody_answered_in_time() {
    let daemon = Place::new().setting("approval_ttl = \"200ms\"").start();
    let mut boss = daemon.join("boss");
    let mut agent = daemon.connect("bot");
    let id = agent.call("ask-1", 1, "order", "{}");
    assert_eq!(
        agent.answer(id)["msg"]["body"]["status"],
        "pending_approval"
    );
    assert_eq!(agent.ends(id), denied("approval_expired"));
    assert_eq!(boss.pushed("approval_settled")["outcome"], "expired");
}

#[test]
fn approval_expired_is_also_for_a_call_that_nobody_may_be_shown() {
    let daemon = Place::new().start();
    let mut runner = daemon.join("files");
    let mut boss = daemon.join("boss");
    let mut agent = daemon.connect("bot");
    tells_a_secret(&mut agent, &mut runner, "ask-1");
    assert_eq!(
        agent.called("ask-1", 2, "order", "{}"),
        denied("approval_expired")
    );
    boss.is_silent();
}
