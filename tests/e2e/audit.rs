//! The record, as an auditor reads it: whole, in order, and not to be changed unseen.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::commands::printed;
use crate::harness::{Daemon, Place, finished, program};

fn audit(daemon: &Daemon, args: &[&str], code: i32) -> String {
    let mut command = Command::new(program("rolebroker"));
    command.arg("audit").args(args);
    command
        .arg("--state-dir")
        .arg(daemon.place.path().join("state"));
    let done = finished(&mut command, code);
    let both = [done.stdout, done.stderr].concat();
    String::from_utf8(both).expect("text")
}

fn verified(daemon: &Daemon) -> (u64, String) {
    let said: Value = serde_json::from_str(&audit(daemon, &["verify", "--json"], 0)).expect("JSON");
    assert_eq!(said["status"], "consistent");
    let head = said["head"].as_str().expect("a head");
    (said["records"].as_u64().expect("a number"), head.to_owned())
}

/// A daemon that has denied one call and let one through.
fn audited() -> Daemon {
    let daemon = Place::new().start();
    let mut runner = daemon.join("files");
    let mut agent = daemon.connect("bot");
    agent.called("t", 2, "no-such-tool", "{}");
    // Its answer waits for its own record, and so for those before it.
    let id = agent.call("s", 1, "order", r#"{"what":"canary"}"#);
    let (request, _) = runner.request();
    runner.result(request, "the content");
    agent.ends(id);
    daemon
}

fn ended(daemon: &mut Daemon) {
    daemon.signal(Signal::SIGTERM);
    assert_eq!(daemon.end().code(), Some(0));
}

#[test]
fn the_record_tells_what_was_decided_while_the_daemon_runs_and_filters_narrow_it() {
    let daemon = audited();
    let all = audit(&daemon, &[], 0);
    for told in [
        "dispatched",
        "bot/s#1",
        "answered",
        "denied",
        "bot/t#2",
        "configured",
    ] {
        assert!(all.contains(told), "no {told}:\n{all}");
    }
    assert!(
        !all.contains("canary") && !all.contains("the content"),
        "{all}"
    );
    let denied = audit(&daemon, &["--decision", "deny"], 0);
    assert_eq!(denied.lines().count(), 1, "{denied}");
    assert!(denied.contains("no_grant"), "{denied}");
    let one = audit(&daemon, &["--session", "s", "--json"], 0);
    for line in one.lines() {
        let row: Value = serde_json::from_str(line).expect("JSON");
        assert!(row.to_string().contains("\"s\""), "{row}");
    }
    assert!(audit(&daemon, &["--since", "2099-01-01"], 0).is_empty());
    assert_eq!(audit(&daemon, &["--since", "1h"], 0), all);
}

#[test]
fn requests_over_a_roles_rate_are_one_record_of_that_role() {
    let mut daemon = Place::new()
        .role("bot", "quota = { requests_per_second = 1 }")
        .start();
    let mut agent = daemon.connect("bot");
    let mut calls = 1..;
    let mut told = || agent.called("s", calls.next().expect("a number"), "no-such-tool", "{}");
    let busy = |told: Value| u64::from(told["message"] == "busy: requests_per_second");
    let mut over = 0;
    while over < 3 {
        over += busy(told());
    }
    ended(&mut daemon);
    let told = audit(&daemon, &["--role", "bot", "--json"], 0);
    let rows = told
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    let refused: Vec<Value> = rows
        .map(|row: Value| row["record"].clone())
        .filter(|record| record["record"] == "refused")
        .collect();
    assert_eq!(refused.len(), 1, "{told}");
    assert_eq!(refused[0]["count"], over, "{told}");
    let line = audit(&daemon, &["--role", "bot"], 0);
    assert!(line.contains("refused     bot  count="), "{line}");
    assert!(!audit(&daemon, &["--role", "files"], 0).contains("refused"));
}

#[test]
fn a_shell_and_sha256sum_compute_the_head_that_verify_tells() {
    let daemon = audited();
    let (records, head) = verified(&daemon);
    let export = daemon.place.path().join("export.jsonl");
    fs::write(&export, audit(&daemon, &["export"], 0)).expect("writes");
    let page = include_str!("../../docs/operations.md");
    let (_, script) = page
        .split_once("head=$(printf '%064d' 0)")
        .expect("the loop");
    let (script, _) = script.split_once("```").expect("its end");
    let script = format!("head=$(printf '%064d' 0){script}");
    let said = finished(
        Command::new("bash")
            .args(["-c", &script])
            .current_dir(daemon.place.path()),
        0,
    );
    assert_eq!(String::from_utf8(said.stdout).expect("text").trim(), head);
    let lines = fs::read_to_string(&export).expect("reads").lines().count();
    assert_eq!(lines as u64, records);
}

#[test]
fn status_shows_the_head_that_verify_tells() {
    let mut daemon = Place::new().start();
    let status = |daemon: &Daemon| {
        let said = printed(daemon, "admin", &["status"], 0);
        let head = said["head"].as_str().expect("a head").to_owned();
        (said["records"].as_u64().expect("a number"), head)
    };
    let at_start = status(&daemon);
    assert_eq!(at_start, verified(&daemon));
    daemon.connect("bot").called("t", 1, "no-such-tool", "{}");
    // An operator's list comes once every record before it is durable.
    printed(&daemon, "admin", &["sessions", "bot"], 0);
    let after = status(&daemon);
    assert_eq!(after, verified(&daemon));
    assert!(after.0 > at_start.0, "{after:?}");
    daemon.crash();
    daemon.restart();
    let again = status(&daemon);
    assert_eq!(again, verified(&daemon));
    assert!(again.0 > after.0, "a start records its configuration");
}

#[test]
fn a_changed_removed_or_inserted_record_is_found_and_named() {
    for (what, sql) in [
        (
            "changed",
            "UPDATE record SET text = replace(text, 'no_grant', 'no_gramt') WHERE text LIKE '%no_grant%'",
        ),
        ("removed", "DELETE FROM record WHERE id = 2"),
        (
            "inserted",
            "INSERT INTO record SELECT 1000000, text, hash FROM record WHERE id = 1",
        ),
        (
            "reordered",
            "UPDATE record SET text = (SELECT text FROM record WHERE id = 3) WHERE id = 2",
        ),
        ("content", "UPDATE content SET text = 'x'"),
    ] {
        let mut daemon = audited();
        ended(&mut daemon);
        let sqlite =
            rusqlite::Connection::open(daemon.place.path().join("state").join("rolebroker.db"));
        let changed = sqlite.expect("opens").execute(sql, []).expect(what);
        assert!(changed > 0, "{what}");
        let said = audit(&daemon, &["verify"], 1);
        assert!(
            said.contains("damaged or was changed at record "),
            "{what}: {said}"
        );
    }
}

#[test]
fn what_was_cut_off_shows_against_a_head_that_was_kept_elsewhere() {
    let mut daemon = audited();
    let (records, head) = verified(&daemon);
    ended(&mut daemon);
    let whole = audit(&daemon, &["verify", "--head", &head], 0);
    assert!(whole.starts_with("complete"), "{whole}");
    let sqlite =
        rusqlite::Connection::open(daemon.place.path().join("state").join("rolebroker.db"));
    let cut = format!(
        "DELETE FROM record WHERE id >= {records}; DELETE FROM content WHERE id >= {records}"
    );
    sqlite.expect("opens").execute_batch(&cut).expect("cuts");
    verified(&daemon);
    let said = audit(&daemon, &["verify", "--head", &head], 1);
    assert!(said.contains("cut off"), "{said}");
}

#[test]
fn who_may_not_read_the_store_is_told_what_to_name() {
    let daemon = Place::new().start();
    let mut command = Command::new(program("rolebroker"));
    command.args(["audit", "--state-dir", "/nonexistent", "--json"]);
    let done = finished(&mut command, 1);
    let said: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert_eq!(said["status"], json!("error"));
    assert!(
        said["message"].to_string().contains("--state-dir"),
        "{said}"
    );
    drop(daemon);
}

#[test]
fn a_backup_is_whole_is_its_owners_alone_and_overwrites_nothing() {
    let daemon = audited();
    let copy = daemon.place.path().join("copy.db");
    let name = copy.to_str().expect("text").to_owned();
    let backup = |code| {
        let mut command = Command::new(program("rolebroker"));
        command.args(["backup", &name]);
        command
            .arg("--state-dir")
            .arg(daemon.place.path().join("state"));
        finished(&mut command, code)
    };
    let said = String::from_utf8(backup(0).stdout).expect("text");
    assert!(said.contains(&verified(&daemon).1), "{said}");
    let mode = fs::metadata(&copy).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    backup(1);
}
