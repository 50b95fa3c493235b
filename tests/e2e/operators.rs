//! What an operator types, against the daemon: sessions, grants, approvals beforehand.

use std::io::Write;
use std::process::Stdio;

use serde_json::json;

use crate::commands::{printed, rolebroker, world};
use crate::harness::{Daemon, Peer, Place, finished};

/// One more allow, as an operator writes it.
const MORE: &str = "id = \"more\"\nroles = [\"bot\"]\nsessions = [\"*\"]\ntools = [\"ungranted\"]\n\
    effect = \"allow\"\nexpires = \"2100-01-01T00:00:00Z\"\nmax_uses = 2\nwhy = \"for the move\"\n";

/// What a command prints for a person.
#[track_caller]
pub(crate) fn shown(daemon: &Daemon, args: &[&str]) -> String {
    let output = finished(&mut rolebroker(daemon, "admin", args), 0);
    String::from_utf8(output.stdout).expect("text")
}

/// Why a command was not done, as it says to a person.
#[track_caller]
pub(crate) fn refused(daemon: &Daemon, args: &[&str], code: i32) -> String {
    let output = finished(&mut rolebroker(daemon, "admin", args), code);
    String::from_utf8(output.stderr).expect("text")
}

/// Session `s` of `bot` reads the diary: it is secret and untrusted from now on.
#[track_caller]
fn read_the_diary(daemon: &Daemon, runner: &mut Peer) -> Peer {
    let mut agent = daemon.connect("bot");
    served(&mut agent, runner, ("s", 1, "diary"));
    agent
}

/// A call, by session, number and tool, that the runner serves.
#[track_caller]
fn served(agent: &mut Peer, runner: &mut Peer, (session, call, tool): (&str, u64, &str)) {
    let id = agent.call(session, call, tool, "{\"what\":\"tea\"}");
    let (request, body) = runner.request();
    assert_eq!(body["tool"], tool);
    runner.result(request, "as you say");
    assert_eq!(agent.ends(id)["content"], "as you say");
}

#[test]
fn a_session_shows_its_label_and_the_call_that_raised_it() {
    let (daemon, mut runner) = world();
    let _agent = read_the_diary(&daemon, &mut runner);
    let all = printed(&daemon, "admin", &["sessions", "bot"], 0);
    let label = json!({"class": "secret", "untrusted": true});
    assert_eq!(all["op"], "sessions");
    assert_eq!(all["sessions"][0]["session"], "s");
    assert_eq!(all["sessions"][0]["label"], label);
    let one = printed(&daemon, "admin", &["session", "bot", "s"], 0);
    let raise = json!({"call": 1, "tool": "diary", "label": label});
    assert_eq!(one["raised_by"], json!([raise]));
    assert_eq!(one["session"], all["sessions"][0]);
    let text = shown(&daemon, &["session", "bot", "s"]);
    assert!(
        text.contains("raised by  call 1 of diary: secret, untrusted"),
        "{text}"
    );
    let text = shown(&daemon, &["sessions", "bot"]);
    assert!(text.contains("secret, untrusted"), "{text}");
    let text = shown(&daemon, &["sessions", "other"]);
    assert!(text.starts_with("no sessions"), "{text}");
}

#[test]
fn a_session_that_is_not_there_says_where_to_look() {
    let (daemon, _runner) = world();
    for args in [
        &["session", "bot", "x"][..],
        &["close", "bot", "x"],
        &["join", "bot", "x", "y"],
        &["endorse", "bot", "x", "--reason", "known"],
    ] {
        let why = refused(&daemon, args, 1);
        assert!(
            why.contains("there is no such session; next: `rolebroker sessions bot`"),
            "{args:?}: {why}"
        );
    }
}

#[test]
fn a_long_list_is_one_object_for_programs() {
    let daemon = Place::new().setting("max_frame = \"4KiB\"").start();
    let mut runner = daemon.join("files");
    let mut agent = daemon.connect("bot");
    // More than fit a frame of 4 KiB, by their names alone.
    let names: Vec<String> = (10..60)
        .map(|n| format!("{n}-{}", "s".repeat(100)))
        .collect();
    for name in &names {
        served(&mut agent, &mut runner, (name, 1, "read"));
    }
    let all = printed(&daemon, "admin", &["sessions", "bot"], 0);
    let listed = all["sessions"].as_array().expect("sessions");
    let listed: Vec<&str> = listed
        .iter()
        .filter_map(|s| s["session"].as_str())
        .collect();
    assert_eq!(listed, names);
}

#[test]
fn join_carries_a_label_over_and_close_ends_a_session() {
    let (daemon, mut runner) = world();
    let mut agent = read_the_diary(&daemon, &mut runner);
    let joined = printed(&daemon, "admin", &["join", "bot", "s", "t"], 0);
    assert_eq!(
        joined["label"],
        json!({"class": "secret", "untrusted": true})
    );
    assert_eq!(
        agent.called("t", 1, "send", "{}")["reason"],
        "taint_too_high"
    );
    let went = |session| {
        let one = printed(&daemon, "admin", &["session", "bot", session], 0);
        one["session"]["went_into"].clone()
    };
    assert_eq!(went("s"), "");
    let text = shown(&daemon, &["join", "bot", "s", "u", "--close"]);
    assert_eq!(text, "joined; the label is now secret, untrusted\n");
    assert_eq!(went("s"), "u");
    let text = shown(&daemon, &["sessions", "bot"]);
    assert!(text.contains("went into u"), "{text}");
    assert_eq!(
        printed(&daemon, "admin", &["close", "bot", "u"], 0),
        json!({"op": "done"})
    );
}

#[test]
fn a_grant_that_is_added_counts_until_it_is_revoked() {
    let (daemon, mut runner) = world();
    let mut agent = daemon.connect("bot");
    assert_eq!(
        agent.called("s", 1, "ungranted", "{}")["reason"],
        "no_grant"
    );
    let file = daemon.place.path().join("more.toml");
    std::fs::write(&file, MORE).expect("the file");
    let file = file.to_str().expect("a path");
    let add = ["grant", file, "--reason", "the move"];
    assert_eq!(printed(&daemon, "admin", &add, 0), json!({"op": "done"}));
    served(&mut agent, &mut runner, ("s", 2, "ungranted"));

    let all = printed(&daemon, "admin", &["grants"], 0);
    let all = all["grants"].as_array().expect("grants");
    let more = all.last().expect("a grant");
    assert_eq!(
        (
            &more["grant"],
            &more["runtime"],
            &more["uses"],
            &more["max_uses"]
        ),
        (&json!("more"), &json!(true), &json!(1), &json!(2))
    );
    let text = shown(&daemon, &["grants"]);
    assert!(
        text.contains("1 of 2") && text.contains("    for the move\n"),
        "{text}"
    );

    let why = refused(&daemon, &["revoke", "use", "--reason", "no"], 1);
    assert!(why.contains("next: `rolebroker grants`"), "{why}");
    let done = printed(
        &daemon,
        "admin",
        &["revoke", "more", "--reason", "moved"],
        0,
    );
    assert_eq!(done, json!({"op": "done"}));
    assert_eq!(
        agent.called("s", 3, "ungranted", "{}")["reason"],
        "no_grant"
    );
}

#[test]
fn a_grant_is_read_from_standard_input_too() {
    let (daemon, _runner) = world();
    let deny = "id = \"stop\"\nroles = [\"*\"]\nsessions = [\"*\"]\ntools = [\"read\"]\n\
        effect = \"deny\"\n";
    let mut grant = rolebroker(&daemon, "admin", &["grant", "-", "--reason", "stop it"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdin = grant.stdin.take().expect("its standard input");
    stdin.write_all(deny.as_bytes()).expect("it reads");
    drop(stdin);
    let output = grant.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "done\n");
    let mut agent = daemon.connect("bot");
    assert_eq!(
        agent.called("s", 1, "read", "{}")["reason"],
        "denied_by_grant"
    );
}

#[test]
fn a_grant_with_a_mistake_changes_nothing_and_says_what_is_wrong() {
    let (daemon, _runner) = world();
    let before = printed(&daemon, "admin", &["grants"], 0);
    let file = daemon.place.path().join("more.toml");
    let name = file.to_str().expect("a path");
    let add = ["grant", name, "--reason", "the move"];
    let why = refused(&daemon, &add, 64);
    assert!(why.contains("cannot read the grant"), "{why}");
    for (good, bad, said) in [
        ("max_uses = 2\n", "", "max_uses"),
        ("why =", "wy =", "wy"),
        ("id = \"more\"", "id = \"use\"", "taken"),
    ] {
        std::fs::write(&file, MORE.replace(good, bad)).expect("the file");
        let why = refused(&daemon, &add, 1);
        assert!(why.contains(said) && why.contains("next: "), "{why}");
    }
    std::fs::write(&file, MORE).expect("the file");
    refused(&daemon, &["grant", name, "--reason", " "], 1);
    assert_eq!(printed(&daemon, "admin", &["grants"], 0), before);
}

#[test]
fn a_preapproved_call_is_not_asked_about_and_the_next_one_is() {
    let asks = "\n[[grant]]\nid = \"standing\"\nroles = [\"*\"]\nsessions = [\"std-*\"]\n\
        tools = [\"order\"]\neffect = \"ask\"\nuntrusted = \"ask\"\nmax_class = \"secret\"\n\
        standing_ttl = \"1h\"\nstanding_uses = 5\n";
    let daemon = Place::new().and(asks).start();
    let mut runner = daemon.join("files");
    let mut agent = daemon.connect("bot");
    served(&mut agent, &mut runner, ("std-1", 1, "read"));
    let args = |uses| {
        let words = "preapprove bot std-1 order --grant standing --label internal --ttl 10m \
            --reason guests --arguments {\"what\":\"tea\"} --uses";
        words
            .split_whitespace()
            .chain([uses])
            .collect::<Vec<&str>>()
    };
    let why = refused(&daemon, &args("6"), 1);
    assert!(
        why.contains("at most 5 calls") && why.contains("next: "),
        "{why}"
    );
    let made = printed(&daemon, "admin", &args("1"), 0);
    assert_eq!(made["op"], "preapproved", "{made}");
    let one = printed(&daemon, "admin", &["session", "bot", "std-1"], 0);
    let standing = &one["standing"][0];
    assert_eq!(
        (
            &standing["approval"],
            &standing["uses_left"],
            &standing["by"]
        ),
        (&made["approval"], &json!(1), &json!("admin"))
    );
    let text = shown(&daemon, &["session", "bot", "std-1"]);
    assert!(
        text.contains("order where standing asks, up to internal, trusted; calls left: 1"),
        "{text}"
    );

    served(&mut agent, &mut runner, ("std-1", 2, "order"));
    agent.call("std-1", 3, "order", "{\"what\":\"tea\"}");
    assert_eq!(daemon.wait_for("approval_asked")["call"], 3);
}
