//! A store that cannot be written, read or trusted: the broker says so and ends with 74, and tells nobody what is not
//! stored.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use nix::sys::signal::Signal;
use nix::unistd::geteuid;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::harness::{Daemon, EchoRunner, Peer, Place, Program, finished};

pub(crate) const STORE: i32 = 74;
pub(crate) const TEA: &str = r#"{"what":"tea"}"#;

pub(crate) fn file(place: &Place) -> PathBuf {
    place.path().join("state/rolebroker.db")
}

/// A broker that has ended, and whose store holds the answer of one call.
pub(crate) fn used() -> Daemon {
    let mut daemon = Place::new().start();
    let mut runner = daemon.join("files");
    let mut agent = daemon.connect("bot");
    let id = agent.call("a-session-of-its-own", 1, "order", TEA);
    let (request, _) = runner.request();
    runner.result(request, "ordered");
    agent.ends(id);
    daemon.signal(Signal::SIGTERM);
    assert_eq!(daemon.end().code(), Some(0));
    daemon
}

/// Why a broker does not start, which ends with this code. It was never ready.
#[track_caller]
pub(crate) fn not_started(command: &mut Command, code: i32) -> String {
    let output = finished(command, code);
    let log = String::from_utf8(output.stderr).expect("text");
    let lines = log
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    let lines: Vec<Value> = lines.collect();
    assert!(lines.iter().all(|line| line["event"] != "ready"), "{log}");
    let why = lines.iter().find(|line| line["event"] == "not_started");
    let why = why.and_then(|line| line["detail"].as_str());
    why.unwrap_or_else(|| panic!("no reason: {log}")).to_owned()
}

/// The message names the file and has this in it: what happened, and what to do.
#[track_caller]
pub(crate) fn says(place: &Place, why: &str, words: &[&str]) {
    let path = file(place).display().to_string();
    assert!(why.contains(&path), "{why}");
    for word in words {
        assert!(why.contains(word), "no {word:?} in: {why}");
    }
}

/// The broker ends by itself because of its store; the message.
#[track_caller]
pub(crate) fn fails(daemon: &mut Daemon) -> String {
    let line = daemon.wait_for("store_failed");
    assert_eq!(daemon.end().code(), Some(STORE));
    line["detail"].as_str().expect("a detail").to_owned()
}

pub(crate) fn within(mut outer: Command, inner: &Command) -> Command {
    outer.arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
    outer
}

pub(crate) fn can(command: &mut Command) -> bool {
    command.output().is_ok_and(|it| it.status.success())
}

pub(crate) fn skipped(what: &str) {
    // Past the capture of what passing tests print.
    let _ = writeln!(std::io::stderr(), "skipped: {what}");
}

/// Mounts that end with the test; what is mounted is seen by what starts within.
struct Mounts {
    _keeper: Program,
    pid: String,
}

impl Mounts {
    /// `None`, with one line that says so, where there can be none.
    fn new(place: &Place, script: &str) -> Option<Self> {
        let mut tried = Command::new("unshare");
        tried.args(["--mount", "mount", "-t", "tmpfs", "none", "/mnt"]);
        if !geteuid().is_root() || !can(&mut tried) || !can(Command::new("nsenter").arg("-V")) {
            skipped("a store on another file system (needs root, unshare --mount, nsenter)");
            return None;
        }
        let pid = place.path().join("pid");
        let script = format!(
            "set -e; cd {}; echo $$ > pid; {script}\necho made >&2; exec sleep infinity",
            place.path().display()
        );
        let mut keeper = Command::new("unshare");
        keeper.args(["--mount", "sh", "-c", &script]);
        let mut keeper = Program::start(&mut keeper);
        keeper.says("made");
        let pid = fs::read_to_string(pid).expect("a pid").trim().to_owned();
        Some(Self {
            _keeper: keeper,
            pid,
        })
    }

    fn enter(&self) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--mount=/proc/{}/ns/mnt", self.pid));
        command
    }

    fn daemon(&self, place: &Place) -> Command {
        within(self.enter(), &place.daemon())
    }

    fn run(&self, script: &str) {
        finished(self.enter().args(["sh", "-c", script]), 0);
    }
}

/// No broker starts with this file, and none touches it; why, in these words.
#[track_caller]
fn is_left_alone(place: &Place, words: &[&str]) {
    let before = fs::read(file(place)).expect("reads");
    let why = not_started(&mut place.daemon(), STORE);
    says(place, &why, words);
    assert!(fs::read(file(place)).expect("reads") == before);
}

#[test]
fn a_store_of_a_later_version_is_left_alone() {
    let used = used();
    let place = &used.place;
    let sql = Connection::open(file(place)).expect("opens");
    sql.pragma_update(None, "user_version", 1_000).expect("set");
    drop(sql);
    is_left_alone(place, &["layout 1000", "start the version that wrote it"]);
}

#[test]
fn a_store_of_another_program_is_left_alone() {
    let used = used();
    let place = &used.place;
    fs::remove_file(file(place)).expect("removed");
    let sql = Connection::open(file(place)).expect("opens");
    sql.execute_batch("CREATE TABLE mine (a)").expect("made");
    drop(sql);
    is_left_alone(
        place,
        &["not a store of rolebroker", "configure another state_dir"],
    );
}

#[test]
fn a_byte_that_was_changed_is_noticed() {
    let used = used();
    let place = &used.place;
    let mut bytes = fs::read(file(place)).expect("reads");
    let name = b"a-session-of-its-own";
    let at = bytes.windows(name.len()).position(|it| it == name);
    *bytes.get_mut(at.expect("in a record")).expect("there") = b'b';
    fs::write(file(place), bytes).expect("writes");
    let why = not_started(&mut place.daemon(), STORE);
    says(
        place,
        &why,
        &["damaged or was changed at record ", "put a backup back"],
    );
}

#[test]
fn a_record_that_was_taken_out_is_noticed() {
    let used = used();
    let place = &used.place;
    let sql = Connection::open(file(place)).expect("opens");
    sql.execute("DELETE FROM record WHERE id = 3", [])
        .expect("deleted");
    drop(sql);
    let why = not_started(&mut place.daemon(), STORE);
    says(
        place,
        &why,
        &[
            "damaged or was changed at record 3",
            "the next one is record 4",
        ],
    );
}

#[test]
fn a_file_that_is_no_database_or_the_half_of_one_is_left_alone() {
    let used = used();
    let place = &used.place;
    let whole = fs::read(file(place)).expect("reads");
    let half = whole.get(..whole.len() / 2 + 100).expect("long enough");
    for bytes in [&b"a note that was saved under this name"[..], half] {
        fs::write(file(place), bytes).expect("writes");
        is_left_alone(place, &["put a backup back"]);
    }
}

#[test]
fn a_file_that_another_program_holds_is_waited_for_and_then_said() {
    let mut daemon = used();
    let sql = Connection::open(file(&daemon.place)).expect("opens");
    sql.execute_batch("BEGIN EXCLUSIVE").expect("held");
    let why = not_started(&mut daemon.place.daemon(), STORE);
    says(
        &daemon.place,
        &why,
        &[
            "database is locked",
            "another program holds it",
            "end that one",
        ],
    );
    sql.execute_batch("ROLLBACK").expect("let go");
    drop(sql);

    daemon.restart();
    let mut agent = daemon.connect("bot");
    let sql = Connection::open(file(&daemon.place)).expect("opens");
    sql.execute_batch("BEGIN EXCLUSIVE").expect("held");
    let mut runner = daemon.join("files");
    agent.call("s", 1, "order", TEA);
    let why = fails(&mut daemon);
    says(&daemon.place, &why, &["another program holds it"]);
    assert_eq!(agent.closed(), Vec::<Value>::new());
    assert!(runner.closed().is_empty(), "it was dispatched");
    drop(sql);
    daemon.restart();
    runner = daemon.join("files");
    let mut agent = daemon.connect("bot");
    let id = agent.call("s", 1, "order", TEA);
    let (request, _) = runner.request();
    runner.result(request, "ordered");
    assert_eq!(agent.ends(id)["content"], "ordered");
}

#[test]
fn a_second_broker_on_the_same_state_does_not_start() {
    let daemon = Place::new().start();
    let place = Place::new();
    let own = place.path().join("state").display().to_string();
    let theirs = daemon.place.path().join("state").display().to_string();
    place.write(&place.text().replace(&own, &theirs));
    let why = not_started(&mut place.daemon(), 78);
    assert_eq!(
        why,
        format!("another broker runs on {theirs}: stop it, or configure another folder")
    );
    let _echo = daemon.echo();
    assert_eq!(
        daemon.connect("bot").called("s", 1, "echo", "{}")["content"],
        "{}"
    );
}

#[test]
fn a_file_or_a_folder_that_cannot_be_written_is_said_before_ready() {
    let used = used();
    let place = &used.place;
    let bound = |what| format!("mount --bind {what} {what}; mount -o remount,bind,ro {what}");
    let Some(mounts) = Mounts::new(place, &bound("state/rolebroker.db")) else {
        return;
    };
    let why = not_started(&mut mounts.daemon(place), STORE);
    says(
        place,
        &why,
        &["readonly", "let the broker's user write the file"],
    );
    let mounts = Mounts::new(place, &bound("state")).expect("as before");
    let why = not_started(&mut mounts.daemon(place), 77);
    for word in [
        "/state/.lock",
        "Read-only file system",
        "mount it for writing",
    ] {
        assert!(why.contains(word), "{why}");
    }
}

#[test]
fn a_disk_that_is_full_at_the_start_is_said() {
    let place = Place::new();
    place.write(place.text());
    for (size, says) in [
        ("size=64k", "make room on its disk"),
        ("size=1m,nr_inodes=1", "make room there"),
    ] {
        let mount = format!(
            "mkdir -p state; mount -t tmpfs -o mode=0700,{size} none state; \
             head -c 1m /dev/zero > state/.lock 2>&1 || true"
        );
        let Some(mounts) = Mounts::new(&place, &mount) else {
            return;
        };
        let why = not_started(&mut mounts.daemon(&place), STORE);
        assert!(why.contains("/state/") && why.contains(says), "{why}");
    }
}

/// A `once` tool of the runner that gives its arguments back.
pub(crate) const NOTE: &str = "\n[[tool]]\nname = \"note\"\nrunner = \"echo\"\nclass = \"public\"\nuntrusted = false\n\
    effects = \"once\"\negress = false\n\n[[grant]]\nid = \"note\"\nroles = [\"*\"]\nsessions = [\"*\"]\n\
    tools = [\"note\"]\neffect = \"allow\"\n";

#[test]
fn a_disk_that_gets_full_ends_the_broker_and_loses_no_answer_that_was_told() {
    let place = Place::new().and(NOTE);
    place.write(place.text());
    let mount = "mkdir state; mount -t tmpfs -o mode=0700,size=1m none state";
    let Some(mounts) = Mounts::new(&place, mount) else {
        return;
    };
    let state = place.path().join("state").display().to_string();
    let mut command = mounts.daemon(&place);
    let mut daemon = Daemon::of(place, &mut command);
    daemon.wait_for("ready");
    let echo = daemon.echo();
    let arguments = json!({"text": "x".repeat(30_000)}).to_string();
    let mut agent = daemon.connect("bot");
    let mut told = 0;
    loop {
        agent.call("s", told + 1, "note", &arguments);
        let Some(answer) = agent.next() else { break };
        assert_eq!(answer["msg"]["body"]["content"], arguments);
        told += 1;
    }
    let why = fails(&mut daemon);
    says(
        &daemon.place,
        &why,
        &["disk is full", "make room on its disk"],
    );
    let ran = echo.served();
    assert!(
        told > 0 && (told..=told + 1).contains(&ran),
        "{told} told, {ran} ran"
    );

    mounts.run(&format!("mount -o remount,size=8m {state}"));
    daemon.restart_as(&mut command);
    let echo = daemon.echo();
    let mut agent = daemon.connect("bot");
    for call in 1..=told {
        assert_eq!(
            agent.called("s", call, "note", &arguments)["content"],
            arguments
        );
    }
    not_twice(
        &mut agent,
        ("s", told + 1, "note", &arguments),
        echo,
        ran > told,
    );
}

/// A call that was not answered, once it is repeated: unknown, or not run before.
#[track_caller]
pub(crate) fn not_twice(
    agent: &mut Peer,
    (session, call, tool, arguments): (&str, u64, &str, &str),
    echo: EchoRunner,
    ran: bool,
) {
    let answer = agent.called(session, call, tool, arguments);
    let message = answer["message"].as_str().unwrap_or_default();
    if message.starts_with("unknown_outcome: ") {
        assert_eq!(echo.served(), 0);
    } else {
        assert_eq!(answer["content"], arguments);
        // Its answer was on the disk after all, or it runs for the first time.
        assert_eq!(echo.served(), u64::from(!ran));
    }
}
