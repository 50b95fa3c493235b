//! A copy that is put back, and an end that was cut off: no label is lower by either, and nothing runs again.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::commands::printed;
use crate::harness::{Daemon, Peer, Place, finished, program};
use crate::store_failures::not_started;

const STORE: i32 = 74;
const TEA: &str = r#"{"what":"tea"}"#;
const CUT: &str = "its end was cut off, or an older copy was put back";

fn state(daemon: &Daemon, name: &str) -> PathBuf {
    daemon.place.path().join("state").join(name)
}

/// A call that the runner gets and answers.
#[track_caller]
fn runs(agent: &mut Peer, runner: &mut Peer, (session, call, tool): (&str, u64, &str)) {
    let id = agent.call(session, call, tool, TEA);
    let (request, body) = runner.request();
    assert_eq!((&body["tool"], &body["call"]), (&json!(tool), &json!(call)));
    runner.result(request, "as you say");
    assert_eq!(agent.ends(id)["content"], "as you say");
}

#[track_caller]
fn on_the_store(daemon: &Daemon, args: &[&str], code: i32) -> Output {
    let mut command = Command::new(program("rolebroker"));
    let folder = daemon.place.path().join("state");
    finished(command.args(args).arg("--state-dir").arg(folder), code)
}

/// The command's own words, with its exit code.
#[track_caller]
fn restored(daemon: &Daemon, file: &Path, code: i32) -> Value {
    let file = file.to_str().expect("text");
    let args = ["restore", file, "--reason", "a drill", "--json"];
    let told = on_the_store(daemon, &args, code).stdout;
    serde_json::from_slice(&told).expect("JSON")
}

#[track_caller]
fn ended(daemon: &mut Daemon) {
    daemon.signal(Signal::SIGTERM);
    assert_eq!(daemon.end().code(), Some(0));
}

/// A broker that ran a call, was copied, and ran a call and read a secret after it; and the copy. It has ended.
fn outrun() -> (Daemon, PathBuf) {
    let mut daemon = Place::new().start();
    let copy = daemon.place.path().join("copy.db");
    let (mut runner, mut agent) = (daemon.join("files"), daemon.connect("bot"));
    runs(&mut agent, &mut runner, ("known", 1, "order"));
    let name = copy.to_str().expect("text").to_owned();
    on_the_store(&daemon, &["backup", &name], 0);
    runs(&mut agent, &mut runner, ("known", 2, "order"));
    runs(&mut agent, &mut runner, ("known", 3, "diary"));
    ended(&mut daemon);
    (daemon, copy)
}

#[track_caller]
fn label(daemon: &Daemon, session: &str) -> Value {
    let told = printed(daemon, "admin", &["session", "bot", session], 0);
    told["session"]["label"].clone()
}

fn top() -> Value {
    json!({"class": "secret", "untrusted": true})
}

/// The daemon does not start because of its store, whose message has this in it, and changes nothing about that.
#[track_caller]
fn is_refused(daemon: &Daemon, words: &[&str]) {
    for _ in 0..2 {
        let why = not_started(&mut daemon.place.daemon(), STORE);
        for word in words {
            assert!(why.contains(word), "no {word:?} in: {why}");
        }
    }
}

/// The daemon warned of this before it was ready.
#[track_caller]
fn warned(daemon: &Daemon, event: &str) {
    let log = daemon.log();
    let wanted = format!("\"level\":\"warn\",\"event\":\"{event}\"");
    assert!(log.contains(&wanted), "{log}");
}

/// What the daemon that just started does after a copy was put back.
#[track_caller]
fn takes_the_worst(daemon: &Daemon) {
    warned(daemon, "restored_copy");
    assert!(!state(daemon, "restored").exists());
    assert_eq!(label(daemon, "known"), top());
    let (mut runner, mut agent) = (daemon.join("files"), daemon.connect("bot"));
    for call in [1, 2, 3, 4] {
        let answer = agent.called("known", call, "order", TEA);
        let message = answer["message"].as_str().unwrap_or_default();
        assert!(message.starts_with("unknown_outcome: "), "{answer}");
    }
    let denied = json!({"status": "denied", "reason": "taint_too_high"});
    assert_eq!(agent.called("new", 1, "send", TEA), denied);
    runner.is_silent();
}

#[test]
fn a_copy_that_is_put_back_lowers_no_label_runs_nothing_again_and_is_lowered_by_an_operator_alone()
{
    let (mut daemon, copy) = outrun();
    let told = restored(&daemon, &copy, 0);
    assert!(told["next"].to_string().contains("secret and untrusted"));
    daemon.restart();
    takes_the_worst(&daemon);
    let audit = on_the_store(&daemon, &["audit"], 0).stdout;
    let audit = String::from_utf8(audit).expect("text");
    let line = audit.lines().find(|line| line.contains("restored"));
    let line = line.unwrap_or_else(|| panic!("{audit}"));
    assert!(
        line.contains("reason=a drill") && line.contains("uid="),
        "{line}"
    );
    for args in [
        &["declassify", "bot", "*", "public", "--reason", "looked"][..],
        &["endorse", "bot", "*", "--reason", "looked"],
    ] {
        printed(&daemon, "admin", args, 0);
    }
    for again in ["before", "after"] {
        let (mut runner, mut agent) = (daemon.join("files"), daemon.connect("bot"));
        runs(&mut agent, &mut runner, (again, 1, "send"));
        assert_eq!(label(&daemon, "known"), top());
        drop((runner, agent));
        ended(&mut daemon);
        daemon.restart();
    }
    assert!(!daemon.log().contains("restored_copy"), "once is enough");
}

#[test]
fn what_was_there_is_kept_under_the_names_that_are_told_and_the_copy_is_the_owners_alone() {
    let (mut daemon, copy) = outrun();
    daemon.restart();
    daemon.crash();
    let there = fs::metadata(state(&daemon, "rolebroker.db")).expect("there");
    let told = restored(&daemon, &copy, 0);
    let kept: Vec<PathBuf> = serde_json::from_value(told["kept"].clone()).expect("paths");
    assert!(kept.iter().all(|path| path.exists()), "{kept:?}");
    let old = rusqlite::Connection::open(&kept[0]).expect("opens");
    let records = old.query_row("SELECT max(id) FROM record", [], |row| row.get::<_, u64>(0));
    assert!(records.expect("reads") > told["records"].as_u64().expect("a number"));
    let now = fs::metadata(state(&daemon, "rolebroker.db")).expect("there");
    assert_eq!((now.uid(), now.mode()), (there.uid(), there.mode()));
    let marker = fs::metadata(state(&daemon, "restored")).expect("there");
    assert_eq!(marker.permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_copy_that_is_put_back_by_hand_is_not_started_with() {
    let (mut daemon, copy) = outrun();
    fs::copy(&copy, state(&daemon, "rolebroker.db")).expect("copies");
    is_refused(
        &daemon,
        &[CUT, "rolebroker.head", "rolebroker restore FILE"],
    );
    // What is left of it, as the message says.
    restored(&daemon, &state(&daemon, "rolebroker.db"), 0);
    daemon.restart();
    takes_the_worst(&daemon);
}

#[test]
fn a_wal_that_was_cut_is_not_started_with() {
    let (mut daemon, _) = outrun();
    daemon.restart();
    daemon.crash();
    let wal = state(&daemon, "rolebroker.db-wal");
    assert!(fs::metadata(&wal).expect("there").len() > 0);
    let file = OpenOptions::new().write(true).open(&wal).expect("opens");
    file.set_len(0).expect("cuts");
    is_refused(&daemon, &[CUT]);
    restored(&daemon, &state(&daemon, "rolebroker.db"), 0);
    daemon.restart();
    takes_the_worst(&daemon);
}

#[test]
fn a_database_that_was_emptied_or_taken_away_is_not_started_with() {
    let (mut daemon, copy) = outrun();
    fs::write(state(&daemon, "rolebroker.db"), "").expect("empties");
    is_refused(&daemon, &[CUT]);
    fs::remove_file(state(&daemon, "rolebroker.db")).expect("removes");
    is_refused(&daemon, &[CUT]);
    restored(&daemon, &copy, 0);
    daemon.restart();
    takes_the_worst(&daemon);
}

#[test]
fn without_its_files_and_the_head_it_begins_anew() {
    let (mut daemon, _) = outrun();
    for name in ["rolebroker.db", "rolebroker.head"] {
        fs::remove_file(state(&daemon, name)).expect("removes");
    }
    daemon.restart();
    let (mut runner, mut agent) = (daemon.join("files"), daemon.connect("bot"));
    runs(&mut agent, &mut runner, ("known", 2, "order"));
}

#[test]
fn the_head_beside_the_store_is_the_one_that_verify_tells_and_one_that_cannot_be_read_is_not_used()
{
    let (daemon, _) = outrun();
    let said = on_the_store(&daemon, &["audit", "verify", "--json"], 0).stdout;
    let said: Value = serde_json::from_slice(&said).expect("JSON");
    let head = said["head"].as_str().expect("a head");
    let file = state(&daemon, "rolebroker.head");
    let text = fs::read_to_string(&file).expect("reads");
    assert_eq!(text, format!("{} {head}\n", said["records"]));
    assert_eq!(fs::metadata(&file).expect("there").mode() & 0o777, 0o600);
    for other in [&text[..text.len() - 2], "", "0\n", "more"] {
        fs::write(&file, other).expect("writes");
        is_refused(&daemon, &["rolebroker.head"]);
    }
    let zeros = text.replace(head, &"0".repeat(64));
    fs::write(&file, zeros).expect("writes");
    is_refused(&daemon, &[CUT]);
}

#[test]
fn a_head_that_cannot_be_written_is_a_warning() {
    let daemon = Place::new();
    fs::create_dir_all(daemon.path().join("state/rolebroker.head.new")).expect("made");
    let state = daemon.path().join("state");
    fs::set_permissions(state, fs::Permissions::from_mode(0o700)).expect("chmod");
    let mut daemon = daemon.start();
    warned(&daemon, "head_not_kept");
    let (mut runner, mut agent) = (daemon.join("files"), daemon.connect("bot"));
    runs(&mut agent, &mut runner, ("s", 1, "order"));
    ended(&mut daemon);
}

#[test]
fn nothing_is_put_back_while_the_daemon_runs() {
    let (mut daemon, copy) = outrun();
    daemon.restart();
    let told = restored(&daemon, &copy, 1);
    assert!(
        told["message"].to_string().contains("a broker runs on"),
        "{told}"
    );
    assert!(!state(&daemon, "restored").exists());
    daemon.crash();
    daemon.restart();
    let answer = daemon.connect("bot").called("known", 2, "order", TEA);
    assert_eq!(answer["content"], "as you say");
}

#[test]
fn a_file_that_is_no_whole_copy_is_not_put_back_and_the_store_goes_on() {
    let (mut daemon, copy) = outrun();
    let bytes = fs::read(&copy).expect("reads");
    let absent = daemon.place.path().join("absent");
    let changed = daemon.place.path().join("changed");
    fs::write(&changed, &bytes[..bytes.len() / 2]).expect("writes");
    for file in [&absent, &changed] {
        restored(&daemon, file, 1);
    }
    on_the_store(&daemon, &["restore", "copy", "--reason", " "], 64);
    daemon.restart();
    let answer = daemon.connect("bot").called("known", 2, "order", TEA);
    assert_eq!(answer["content"], "as you say");
}

#[test]
fn a_restore_that_was_interrupted_leaves_what_was_there_or_what_is_not_started_with() {
    let (mut daemon, copy) = outrun();
    let beside = state(&daemon, "rolebroker.db.restoring");
    fs::copy(&copy, &beside).expect("copies");
    // Before the marker: as if nothing had been.
    daemon.restart();
    let answer = daemon.connect("bot").called("known", 2, "order", TEA);
    assert_eq!(answer["content"], "as you say");
    ended(&mut daemon);
    // After it, at each step up to the copy's name.
    let marker = r#"{"uid":0,"reason":"a drill"}"#;
    fs::write(state(&daemon, "restored"), marker).expect("writes");
    is_refused(&daemon, &["interrupted"]);
    for name in ["rolebroker.db", "rolebroker.head"] {
        fs::remove_file(state(&daemon, name)).expect("removes");
        is_refused(&daemon, &["interrupted"]);
    }
    restored(&daemon, &beside, 0);
    assert!(!beside.exists());
    daemon.restart();
    takes_the_worst(&daemon);
}

#[test]
fn a_marker_counts_until_its_record_is_durable_and_one_that_cannot_be_read_is_not_passed_over() {
    let (mut daemon, copy) = outrun();
    restored(&daemon, &copy, 0);
    let marker = fs::read(state(&daemon, "restored")).expect("reads");
    fs::write(state(&daemon, "restored"), "{").expect("writes");
    is_refused(&daemon, &["restored"]);
    fs::write(state(&daemon, "restored"), &marker).expect("writes");
    daemon.restart();
    takes_the_worst(&daemon);
    // A crash before it was taken away.
    daemon.crash();
    fs::write(state(&daemon, "restored"), &marker).expect("writes");
    daemon.restart();
    takes_the_worst(&daemon);
}

#[test]
fn a_head_that_was_kept_elsewhere_is_asked_for_on_the_command_line() {
    let (daemon, copy) = outrun();
    let text = fs::read_to_string(state(&daemon, "rolebroker.head")).expect("reads");
    let head = text.trim().replace(' ', ":");
    let start = |daemon: &Daemon| {
        let mut command = daemon.place.daemon();
        command.args(["--require-head", &head]);
        command
    };
    let mut daemon = daemon;
    daemon.restart_as(&mut start(&daemon));
    ended(&mut daemon);
    // Whoever can write the folder can put both back.
    fs::copy(&copy, state(&daemon, "rolebroker.db")).expect("copies");
    fs::remove_file(state(&daemon, "rolebroker.head")).expect("removes");
    let why = not_started(&mut start(&daemon), STORE);
    assert!(why.contains(CUT) && why.contains("--require-head"), "{why}");
}
