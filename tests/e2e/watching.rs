//! `rolebroker approvals --watch`, and the program that it tells.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::commands::{asking, printed, rolebroker};
use crate::harness::{Daemon, PATIENCE, Place};

/// A running watch; killed when the test ends.
struct Watch {
    child: Child,
    out: Receiver<String>,
    err: Receiver<String>,
}

impl Watch {
    fn start(daemon: &Daemon, args: &[&str]) -> Self {
        let args = [&["approvals", "--watch"], args].concat();
        let mut child = piped(&mut rolebroker(daemon, "boss", &args));
        let out = lines(child.stdout.take().expect("its output"));
        let err = lines(child.stderr.take().expect("its errors"));
        Self { child, out, err }
    }

    /// The next line of its output with this in it.
    #[track_caller]
    fn says(&self, text: &str) -> String {
        next(&self.out, text)
    }

    /// The next line of its errors with this in it.
    #[track_caller]
    fn complains(&self, text: &str) -> String {
        next(&self.err, text)
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.says("")).expect("JSON")
    }

    /// As ^C does it.
    #[track_caller]
    fn interrupted(mut self) {
        let pid = i32::try_from(self.child.id()).expect("a pid");
        kill(Pid::from_raw(pid), Signal::SIGINT).expect("kill");
        assert_eq!(self.child.wait().expect("wait").code(), Some(0));
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // One that has ended already needs neither.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn piped(command: &mut Command) -> Child {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

pub(crate) fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (sent, received) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if sent.send(line).is_err() {
                return;
            }
        }
    });
    received
}

#[track_caller]
pub(crate) fn next(lines: &Receiver<String>, text: &str) -> String {
    let mut before = Vec::new();
    loop {
        match lines.recv_timeout(PATIENCE) {
            Ok(line) if line.contains(text) => return line,
            Ok(line) => before.push(line),
            Err(error) => panic!("no line with {text:?} ({error}), but {before:#?}"),
        }
    }
}

/// An executable script in the daemon's folder: its path.
fn script(daemon: &Daemon, name: &str, text: &str) -> String {
    let path = daemon.place.path().join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("writes");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("chmod");
    path.display().to_string()
}

fn approve(daemon: &Daemon, approval: &str) {
    let all = printed(daemon, "boss", &["approvals"], 0);
    let digest = all["pending"][0]["digest"].as_str().expect("a digest");
    let args = ["approve", approval, "--digest", digest, "--wait", "0"];
    printed(daemon, "boss", &args, 0);
}

#[test]
fn a_watch_tells_each_request_and_what_becomes_of_it() {
    let daemon = Place::new().start();
    let mut runner = daemon.join("files");
    let (mut call, first) = asking(&daemon, "1");
    let watch = Watch::start(&daemon, &[]);
    watch.says(&format!("{first}  bot asks for order"));
    watch.says("\"what\": \"tea\"");
    watch.says(&format!("rolebroker approve {first}"));
    approve(&daemon, &first);
    watch.says(&format!("{first}  approved, by boss"));
    let (id, _) = runner.request();
    runner.result(id, "ordered");
    watch.says(&format!("{first}  the call ran: result"));
    call.end();
    let (mut call, second) = asking(&daemon, "2");
    watch.says(&format!("{second}  bot asks for order"));
    printed(&daemon, "boss", &["refuse", &second], 0);
    watch.says(&format!("{second}  refused, by boss"));
    call.end();
    watch.interrupted();
}

#[test]
fn a_watch_for_a_program_tells_an_object_on_each_line() {
    let daemon = Place::new().start();
    let mut runner = daemon.join("files");
    let watch = Watch::start(&daemon, &["--json"]);
    let (mut call, approval) = asking(&daemon, "1");
    let request = watch.json();
    assert_eq!(
        (&request["kind"], &request["approval"], &request["tool"]),
        (
            &"request".into(),
            &approval.as_str().into(),
            &"order".into()
        )
    );
    approve(&daemon, &approval);
    let settled = watch.json();
    assert_eq!(
        (&settled["kind"], &settled["outcome"]),
        (&"settled".into(), &"approved".into())
    );
    let (id, _) = runner.request();
    runner.fails(id, "no tea");
    let ended = watch.json();
    assert_eq!(
        (&ended["kind"], &ended["end"], &ended["detail"]),
        (
            &"call_settled".into(),
            &"failed".into(),
            &"runner_failed".into()
        )
    );
    call.end();
}

#[test]
fn the_program_of_exec_is_told_and_cannot_answer() {
    let daemon = Place::new().start();
    let told = daemon.place.path().join("told");
    std::fs::create_dir(&told).expect("mkdir");
    let hook = script(
        &daemon,
        "hook",
        "cat > \"$1/part\"; mv \"$1/part\" \"$1/$2\"; echo y; echo approve; exit 0",
    );
    let folder = told.display().to_string();
    let args = ["--exec", &hook, "--", &folder, "a name; with $(spaces)"];
    let watch = Watch::start(&daemon, &args);
    let (_call, approval) = asking(&daemon, "1");
    // What it prints goes beside what the watch tells, not into it.
    watch.complains("approve");
    let text = std::fs::read_to_string(told.join("a name; with $(spaces)")).expect("it was told");
    assert_eq!(text.lines().count(), 1, "{text}");
    let request: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(
        (
            &request["kind"],
            &request["approval"],
            &request["arguments"]
        ),
        (
            &"request".into(),
            &approval.as_str().into(),
            &r#"{"what":"tea"}"#.into()
        )
    );
    let all = printed(&daemon, "boss", &["approvals"], 0);
    assert_eq!(
        all["pending"][0]["approval"], approval,
        "the hook answered: {all}"
    );
    watch.interrupted();
}

#[test]
fn a_program_of_exec_that_fails_is_reported_and_the_watch_goes_on() {
    for (text, says) in [
        (Some("exit 3"), "ended with exit status: 3"),
        (None, "cannot run: No such file"),
    ] {
        let daemon = Place::new().start();
        let hook = match text {
            Some(text) => script(&daemon, "hook", text),
            None => "/no/such/program".to_owned(),
        };
        let watch = Watch::start(&daemon, &["--exec", &hook]);
        let (_call, approval) = asking(&daemon, "1");
        let line = watch.complains(&format!("for {approval}, {says}"));
        assert!(line.ends_with("the watch goes on"), "{line}");
        printed(&daemon, "boss", &["refuse", &approval], 0);
        watch.says(&format!("{approval}  refused"));
    }
}

#[test]
fn a_watch_comes_back_when_the_broker_does() {
    let mut daemon = Place::new().start();
    let watch = Watch::start(&daemon, &[]);
    let (call, first) = asking(&daemon, "1");
    watch.says(&format!("{first}  bot asks"));
    drop(call);
    daemon.signal(Signal::SIGKILL);
    daemon.end();
    watch.complains("trying again in 1 s");
    daemon.restart();
    watch.complains("connected again");
    let (_call, second) = asking(&daemon, "2");
    watch.says(&format!("{second}  bot asks"));
    watch.interrupted();
}

#[test]
fn a_watch_whose_reader_went_away_ends() {
    let daemon = Place::new().start();
    let mut child = piped(&mut rolebroker(&daemon, "boss", &["approvals", "--watch"]));
    drop(child.stdout.take());
    let (_call, _approval) = asking(&daemon, "1");
    assert_eq!(child.wait().expect("wait").code(), Some(0));
}

#[test]
fn arguments_of_a_watch_that_make_no_sense_are_refused() {
    let daemon = Place::new().start();
    for args in [
        &["--exec", "true"][..],
        &["--watch", "--settled"],
        &["--watch", "--", "x"],
    ] {
        let args = [&["approvals"], args].concat();
        let done = rolebroker(&daemon, "boss", &args).output().expect("runs");
        assert_eq!(done.status.code(), Some(64), "{args:?}");
    }
}
