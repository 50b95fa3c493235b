//! Past decisions, from the record: judged again, explained, and told with the rules of their time.

use std::fs;
use std::process::{Command, Output};

use nix::sys::signal::Signal::SIGTERM;
use serde_json::{Value, json};

use crate::commands::printed;
use crate::harness::{Daemon, Peer, Place, finished, program};
use crate::operators::refused;

const MORE: &str = "id = \"more\"\nroles = [\"bot\"]\nsessions = [\"*\"]\ntools = [\"ungranted\"]\neffect = \"allow\"\n\
    expires = \"2100-01-01T00:00:00Z\"\nmax_uses = 2\nwhy = \"for the move\"\n";
const NO_PUTS: &str = "\n[[grant]]\nid = \"no-puts\"\nroles = [\"*\"]\nsessions = [\"*\"]\ntools = [\"put\"]\neffect = \"deny\"\n";

/// Decisions that [`lived`] makes.
const DECISIONS: u64 = 14;
/// One call of each that is decided by the rules alone or by a person, before the rules change.
const CALLS: &[(&str, u64)] = &[
    ("s", 1),
    ("s", 2),
    ("s", 3),
    ("s", 4),
    ("s", 5),
    ("s", 6),
    ("s", 7),
    ("ask-1", 1),
    ("ask-1", 2),
    ("t", 1),
    ("t", 2),
    ("t", 3),
];

/// A call that the runner gets and answers.
#[track_caller]
fn runs(agent: &mut Peer, runner: &mut Peer, (session, call, tool): (&str, u64, &str)) {
    let id = agent.call(session, call, tool, "{}");
    let (request, _) = runner.request();
    runner.result(request, "as you say");
    assert_eq!(agent.ends(id)["content"], "as you say");
}

#[track_caller]
fn is_denied(agent: &mut Peer, (session, call, tool): (&str, u64, &str), why: &str) {
    let arguments = match tool {
        "read" => "{\"path\":\"/a/b.pem\"}",
        _ => "{\"path\":\"/a\"}",
    };
    let denied = agent.called(session, call, tool, arguments);
    assert_eq!(denied["reason"], why, "{session}#{call}");
}

#[track_caller]
fn done(daemon: &Daemon, op: &Value) {
    let mut admin = daemon.join("admin");
    let id = admin.ask("control", op);
    assert_eq!(admin.ends(id), json!({"op": "done"}));
}

/// A daemon that has made each kind of decision under one configuration.
fn decided(place: Place) -> (Daemon, Peer) {
    let daemon = place.start();
    let mut runner = daemon.join("files");
    let mut boss = daemon.join("boss");
    let mut agent = daemon.connect("bot");
    runs(&mut agent, &mut runner, ("s", 1, "read"));
    is_denied(&mut agent, ("s", 2, "read"), "denied_by_grant");
    is_denied(&mut agent, ("s", 3, "ungranted"), "no_grant");
    is_denied(&mut agent, ("s", 4, "late"), "grant_expired");
    runs(&mut agent, &mut runner, ("s", 5, "diary"));
    is_denied(&mut agent, ("s", 6, "send"), "taint_too_high");
    is_denied(&mut agent, ("s", 7, "no-such-tool"), "no_grant");
    let asked = agent.call("ask-1", 1, "order", "{\"what\":\"tea\"}");
    boss.approves();
    let (request, _) = runner.request();
    runner.result(request, "ordered");
    assert_eq!(agent.ends(asked)["content"], "ordered");
    let asked = agent.call("ask-1", 2, "order", "{\"what\":\"milk\"}");
    boss.answers("refuse");
    assert_eq!(agent.ends(asked)["reason"], "approval_refused");
    done(
        &daemon,
        &json!({"op": "grant", "grant": MORE, "reason": "for the move"}),
    );
    runs(&mut agent, &mut runner, ("t", 1, "ungranted"));
    runs(&mut agent, &mut runner, ("t", 2, "ungranted"));
    is_denied(&mut agent, ("t", 3, "ungranted"), "no_grant");
    (daemon, runner)
}

/// The same, and then a reload that takes a tool away, and a restart.
fn lived() -> Daemon {
    let (mut daemon, runner) = decided(Place::new());
    let mut agent = daemon.connect("bot");
    daemon
        .place
        .write(&format!("{}{NO_PUTS}", daemon.place.text()));
    printed(&daemon, "admin", &["reload"], 0);
    is_denied(&mut agent, ("t", 4, "put"), "denied_by_grant");
    drop((agent, runner));
    daemon.signal(SIGTERM);
    assert_eq!(daemon.end().code(), Some(0));
    daemon
}

fn reads(daemon: &Daemon, args: &[&str], code: i32) -> Output {
    let state = daemon.place.path().join("state");
    let mut command = Command::new(program("rolebroker"));
    command.args(args).arg("--state-dir").arg(state);
    finished(&mut command, code)
}

/// What `replay` says to a program, under another configuration if there is one.
#[track_caller]
fn replayed(daemon: &Daemon, other: Option<&str>, more: &[&str], code: i32) -> Value {
    let file = daemon.place.path().join("other.toml");
    let name = file.display().to_string();
    let mut args = [&["replay", "--json"], more].concat();
    if let Some(text) = other {
        fs::write(&file, text).expect("writes");
        args.extend(["--config", &name]);
    }
    let output = reads(daemon, &args, code);
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn configured(daemon: &Daemon) -> String {
    fs::read_to_string(daemon.place.config()).expect("reads")
}

/// A configuration without one of its grants.
fn without(text: &str, grant: &str) -> String {
    let all: Vec<&str> = text.split("[[grant]]").collect();
    let named = format!("\nid = \"{grant}\"\n");
    let kept: Vec<&str> = all
        .iter()
        .copied()
        .filter(|it| !it.starts_with(&named))
        .collect();
    assert_eq!(kept.len() + 1, all.len(), "no {grant}");
    kept.join("[[grant]]")
}

#[test]
fn under_the_rules_of_their_time_no_decision_changes() {
    let daemon = lived();
    let said = replayed(&daemon, None, &[], 0);
    assert_eq!(said["status"], "unchanged");
    assert_eq!(said["judged"], DECISIONS, "{said}");
    assert_eq!(said["not_judged"], json!([]));
}

#[test]
fn under_the_same_configuration_no_decision_changes() {
    let daemon = lived();
    let said = replayed(&daemon, Some(&configured(&daemon)), &[], 0);
    assert_eq!(
        (&said["judged"], &said["changed"]),
        (&json!(DECISIONS), &json!(0))
    );
    let text = reads(&daemon, &["replay"], 0).stdout;
    assert_eq!(
        String::from_utf8(text).expect("text"),
        format!("judged     {DECISIONS}\nunchanged  {DECISIONS}\nchanged    0\n")
    );
}

#[test]
fn another_configuration_shows_exactly_what_it_changes_most_frequent_first() {
    let daemon = lived();
    let no_diary = NO_PUTS.replace("puts", "diary").replace("put", "diary");
    let other = without(&configured(&daemon), "seen-first") + &no_diary;
    let said = replayed(&daemon, Some(&other), &[], 1);
    assert_eq!(said["status"], "changed");
    assert_eq!(
        (&said["judged"], &said["changed"]),
        (&json!(DECISIONS), &json!(4))
    );
    let changes = said["changes"].as_array().expect("a list");
    let told: Vec<Value> = changes
        .iter()
        .map(|it| json!([it["count"], it["tool"], it["from"], it["to"]]))
        .collect();
    let answer = |answer: &str, reason: &str, grant: &str| json!({"answer": answer, "reason": reason, "grants": [grant]});
    let (ask, permit) = (answer("ask", "", "seen-first"), answer("permit", "", "use"));
    let deny = answer("deny", "denied_by_grant", "no-diary");
    assert_eq!(
        told,
        [
            json!([3, "order", ask, permit]),
            json!([1, "diary", permit, deny])
        ]
    );
    let newest = &changes[0]["newest"];
    assert_eq!(
        (&newest["session"], &newest["call"]),
        (&json!("ask-1"), &json!(2))
    );
    assert_eq!(newest["arguments"], "{\"what\":\"milk\"}");
    let fewer = replayed(&daemon, Some(&other), &["--tool", "diary"], 1);
    assert_eq!(
        (&fewer["judged"], &fewer["changed"]),
        (&json!(1), &json!(1))
    );
}

#[test]
fn a_grant_of_run_time_keeps_its_word_and_its_uses() {
    let daemon = lived();
    let own = configured(&daemon);
    let allowed = MORE.replace("more", "own").replace("max_uses = 2\n", "");
    let other = format!("{own}\n[[grant]]\n{allowed}");
    let said = replayed(&daemon, Some(&other), &["--session", "t"], 1);
    assert_eq!(
        (&said["judged"], &said["changed"]),
        (&json!(4), &json!(1)),
        "{said}"
    );
    assert_eq!(said["changes"][0]["from"]["reason"], "no_grant");
    assert_eq!(said["changes"][0]["to"]["grants"], json!(["own"]));
}

#[test]
fn a_configuration_that_a_grant_of_run_time_does_not_fit_is_said_to_be_refused() {
    let daemon = lived();
    let other = format!("{}\n[[grant]]\n{MORE}", configured(&daemon));
    let said = replayed(&daemon, Some(&other), &[], 78);
    let missed = &said["not_judged"][0];
    assert_eq!(
        (&missed["why"], &missed["count"]),
        (&json!("grant"), &json!(4))
    );
    assert!(
        missed["words"].to_string().contains("the id is taken"),
        "{said}"
    );
    let faulty = replayed(&daemon, Some("[[grant]]\n"), &[], 78);
    assert_eq!(faulty["status"], "faults");
}

#[test]
fn what_cannot_be_read_is_no_difference() {
    let daemon = Place::new().start();
    reads(&daemon, &["replay", "--config", "/nonexistent.toml"], 66);
    let mut nowhere = Command::new(program("rolebroker"));
    nowhere.args(["replay", "--state-dir", "/nonexistent"]);
    let said = String::from_utf8(finished(&mut nowhere, 66).stderr).expect("text");
    assert!(said.contains("--state-dir"), "{said}");
}

#[test]
fn decisions_of_which_the_arguments_were_forgotten_are_counted() {
    let daemon = lived();
    let database = daemon.place.path().join("state").join("rolebroker.db");
    // As the daemon forgets them when their time is over.
    let forgotten = rusqlite::Connection::open(database).expect("opens").execute_batch(
        "UPDATE forgotten SET before = 253402300799000;
         DELETE FROM content WHERE id IN (SELECT id FROM record WHERE text LIKE '%\"record\":\"asked\"%'
         OR text LIKE '%\"record\":\"denied\"%')",
    );
    forgotten.expect("forgets");
    let said = replayed(&daemon, None, &[], 0);
    assert_eq!(said["judged"], 5, "{said}");
    let why = |it: &Value| json!([it["why"], it["count"]]);
    let missed: Vec<Value> = said["not_judged"]
        .as_array()
        .expect("a list")
        .iter()
        .map(why)
        .collect();
    assert_eq!(missed, [json!(["arguments", 9])]);
    let output = reads(&daemon, &["explain", "bot", "s", "3"], 1);
    let told = String::from_utf8(output.stderr).expect("text");
    assert!(told.contains("audit_arguments_ttl"), "{told}");
}

#[test]
fn arguments_that_are_never_kept_leave_nothing_to_judge() {
    let (mut daemon, _runner) = decided(Place::new().setting("audit_arguments_ttl = \"0s\""));
    daemon.signal(SIGTERM);
    assert_eq!(daemon.end().code(), Some(0));
    let said = replayed(&daemon, None, &[], 0);
    let missed = said["not_judged"][0]["count"].as_u64().expect("a number");
    assert_eq!(
        said["judged"].as_u64().expect("a number") + missed,
        DECISIONS - 1
    );
    assert!(missed >= 11, "{said}");
}

#[test]
fn the_record_explains_each_decision_as_the_daemon_did_and_after_a_restart_too() {
    let (mut daemon, runner) = decided(Place::new());
    let from_record = |daemon: &Daemon, session: &str, call: &str| -> Value {
        let output = reads(daemon, &["explain", "bot", session, call, "--json"], 0);
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let mut told = Vec::new();
    for (session, call) in CALLS {
        let call = call.to_string();
        let said = printed(&daemon, "admin", &["explain", "bot", session, &call], 0);
        assert_eq!(from_record(&daemon, session, &call), said);
        told.push((session, call, said));
    }
    drop(runner);
    daemon.signal(SIGTERM);
    daemon.end();
    daemon
        .place
        .write(&format!("{}{NO_PUTS}", daemon.place.text()));
    daemon.restart();
    for (session, call, said) in &told {
        let why = refused(&daemon, &["explain", "bot", session, call], 1);
        assert!(why.contains("rolebroker explain --record"), "{why}");
        assert_eq!(from_record(&daemon, session, call), *said);
    }
    let missing = reads(&daemon, &["explain", "bot", "s", "99"], 1);
    let missing = String::from_utf8(missing.stderr).expect("text");
    assert!(
        missing.contains("has no decision about bot/s#99"),
        "{missing}"
    );
}

#[test]
fn suggest_writes_a_grant_for_a_decision_from_before_the_restart() {
    let daemon = lived();
    let output = reads(&daemon, &["suggest", "bot", "s", "3", "--json"], 0);
    let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let grant = said["grant"].as_str().expect("text");
    assert!(grant.contains("\"ungranted\""), "{said}");
    assert!(
        said["notes"].to_string().contains("from the record"),
        "{said}"
    );
    // Under the rules of now nothing is put.
    let output = reads(&daemon, &["suggest", "bot", "t", "4", "--json"], 0);
    let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(said["notes"].to_string().contains("no-puts"), "{said}");
}
