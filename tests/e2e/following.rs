//! `rolebroker audit --follow`: the record as it grows.

use std::process::{Child, Command};
use std::sync::mpsc::Receiver;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::commands::printed;
use crate::harness::{Daemon, Place, finished, program};
use crate::watching::{lines, next, piped};

fn audit(daemon: &Daemon, args: &[&str]) -> Command {
    let mut command = Command::new(program("rolebroker"));
    command.arg("audit").args(args);
    command
        .arg("--state-dir")
        .arg(daemon.place.path().join("state"));
    command
}

/// A running `audit --follow`; killed when the test ends.
struct Follow {
    child: Child,
    out: Receiver<String>,
}

impl Follow {
    fn start(daemon: &Daemon, args: &[&str]) -> Self {
        let mut child = piped(audit(daemon, args).arg("--follow"));
        let out = lines(child.stdout.take().expect("its output"));
        Self { child, out }
    }

    /// The next line, which has this in it.
    #[track_caller]
    fn shows(&self, text: &str) {
        let line = next(&self.out, "");
        assert!(line.contains(text), "no {text:?} in {line}");
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        // One that has ended already needs neither.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn deny(daemon: &Daemon, session: &str, call: u64) {
    daemon
        .connect("bot")
        .called(session, call, "no-such-tool", "{}");
}

#[test]
fn what_is_meant_is_shown_once_as_it_comes_over_a_restart_too() {
    let mut daemon = Place::new().start();
    deny(&daemon, "s", 1);
    let mut follow = Follow::start(&daemon, &["--decision", "deny"]);
    follow.shows("bot/s#1");
    for call in 2..5 {
        deny(&daemon, "s", call);
        follow.shows(&format!("bot/s#{call}"));
    }
    daemon.crash();
    daemon.restart();
    deny(&daemon, "t", 5);
    follow.shows("bot/t#5");
    let pid = i32::try_from(follow.child.id()).expect("a pid");
    kill(Pid::from_raw(pid), Signal::SIGINT).expect("kill");
    assert_eq!(follow.child.wait().expect("wait").code(), Some(0));
    assert!(follow.out.recv().is_err(), "nothing more is shown");
}

#[test]
fn the_last_lines_alone_are_shown_and_then_what_follows() {
    let daemon = Place::new().start();
    for call in 1..=4 {
        deny(&daemon, "s", call);
    }
    // An operator's list comes once every record before it is durable.
    printed(&daemon, "admin", &["sessions", "bot"], 0);
    let denied = |args: &[&str]| {
        let args = [&["--decision", "deny"], args].concat();
        let out = finished(&mut audit(&daemon, &args), 0).stdout;
        String::from_utf8(out).expect("text")
    };
    let all = denied(&[]);
    let (_, last) = all.split_at(all.match_indices('\n').nth(1).expect("lines").0 + 1);
    assert_eq!(denied(&["-n", "2"]), last);
    assert_eq!(denied(&["--lines", "9"]), all);
    assert_eq!(denied(&["-n", "0"]), "");
    let follow = Follow::start(&daemon, &["--json", "-n", "1", "--decision", "deny"]);
    let call = || {
        let row: Value = serde_json::from_str(&next(&follow.out, "")).expect("a line of JSON");
        row["record"]["call"]["call"].as_u64()
    };
    assert_eq!(call(), Some(4));
    deny(&daemon, "s", 5);
    assert_eq!(call(), Some(5));
}

#[test]
fn it_ends_when_nobody_reads_any_more() {
    let daemon = Place::new().start();
    let mut child = piped(audit(&daemon, &[]).arg("--follow"));
    drop(child.stdout.take());
    let done = child.wait().expect("wait");
    assert_eq!(done.code(), Some(0));
}

#[test]
fn a_record_that_was_changed_meanwhile_ends_it_with_its_number() {
    let mut daemon = Place::new().start();
    deny(&daemon, "s", 1);
    let mut follow = Follow::start(&daemon, &["--decision", "deny"]);
    follow.shows("bot/s#1");
    daemon.crash();
    let file = daemon.place.path().join("state").join("rolebroker.db");
    let sqlite = rusqlite::Connection::open(file).expect("opens");
    let cut = "DELETE FROM record WHERE id = (SELECT max(id) FROM record)";
    sqlite.execute(cut, []).expect("cuts");
    assert_eq!(follow.child.wait().expect("wait").code(), Some(1));
    let errors = lines(follow.child.stderr.take().expect("its errors"));
    next(&errors, "damaged or was changed at record ");
}
