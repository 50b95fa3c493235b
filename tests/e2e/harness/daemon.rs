//! A running rolebrokerd.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::log::Log;
use super::{EchoRunner, PATIENCE, Peer, Place};

/// A running daemon; killed when the test ends, and its log printed if that fails.
pub(crate) struct Daemon {
    pub(crate) place: Place,
    child: Child,
    log: Arc<Log>,
}

impl Daemon {
    pub(crate) fn start(place: Place) -> Self {
        let (child, log) = spawn(&place);
        let daemon = Self { place, child, log };
        daemon.wait_for("ready");
        daemon
    }

    /// One that this command starts, or becomes. It may not be ready yet, nor even started.
    pub(crate) fn of(place: Place, command: &mut Command) -> Self {
        let (child, log) = run(command);
        Self { place, child, log }
    }

    /// Starts another one in the same place; the one before must have ended.
    pub(crate) fn restart(&mut self) {
        self.restart_as(&mut self.place.daemon());
    }

    /// Starts another one with this command; the one before must have ended.
    pub(crate) fn restart_as(&mut self, command: &mut Command) {
        (self.child, self.log) = run(command);
        self.wait_for("ready");
    }

    /// The next log line of this event.
    #[track_caller]
    pub(crate) fn wait_for(&self, event: &str) -> Value {
        self.log.wait_for(event, |line| line["event"] == event)
    }

    /// The next log line that `fits`.
    #[track_caller]
    pub(crate) fn wait_for_line(&self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        self.log.wait_for(what, fits)
    }

    pub(crate) fn log(&self) -> String {
        self.log.text()
    }

    pub(crate) fn socket(&self, role: &str) -> PathBuf {
        self.place.socket(role)
    }

    /// A peer on a role's socket that says nothing yet.
    pub(crate) fn connect(&self, role: &str) -> Peer {
        Peer::connect(&self.socket(role))
    }

    /// A peer that has said hello with every feature.
    #[track_caller]
    pub(crate) fn join(&self, role: &str) -> Peer {
        let mut peer = self.connect(role);
        peer.hello(&["parts", "progress", "tools"]);
        peer
    }

    /// What a peer of this role is welcomed as.
    #[track_caller]
    pub(crate) fn join_as(&self, role: &str) -> Value {
        self.connect(role).hello(&[])
    }

    /// A runner of the role `echo` that gives its arguments back.
    pub(crate) fn echo(&self) -> EchoRunner {
        EchoRunner::start(self.connect("echo"))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).expect("kill");
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).expect("a pid"))
    }

    /// Ends it as a power cut would, but for what the kernel holds.
    #[track_caller]
    pub(crate) fn crash(&mut self) {
        self.signal(Signal::SIGKILL);
        self.end();
    }

    /// Waits until it ends by itself.
    #[track_caller]
    pub(crate) fn end(&mut self) -> ExitStatus {
        assert!(self.log.ends(), "the daemon did not end");
        self.child.wait().expect("wait")
    }

    /// Files that it has open.
    pub(crate) fn files(&self) -> usize {
        let folder = format!("/proc/{}/fd", self.child.id());
        fs::read_dir(folder).expect("its open files").count()
    }

    /// Memory that it has, in KiB.
    pub(crate) fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.expect("its status");
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().nth(1));
        number.expect("VmRSS").parse().expect("a number")
    }

    /// Waits until a role has so many calls in flight. What different peers send has no order between them.
    #[track_caller]
    pub(crate) fn has_in_flight(&self, role: &str, count: u64) {
        let deadline = Instant::now() + PATIENCE;
        let mut admin = self.join("admin");
        loop {
            let id = admin.ask("control", &json!({"op": "status"}));
            let status = admin.ends(id);
            // One that asks too often is told so; it asks again.
            let roles = status["roles"].as_array().into_iter().flatten();
            let mut of_role = roles.filter(|status| status["role"] == role);
            if of_role.any(|status| status["in_flight"] == count) {
                return;
            }
            assert!(Instant::now() < deadline, "not {count} in flight: {status}");
        }
    }

    /// Makes calls on another peer until the daemon has no more files open than `at_most`.
    #[track_caller]
    pub(crate) fn settles_at(&self, at_most: usize, mut turn: impl FnMut()) {
        let deadline = Instant::now() + PATIENCE;
        while self.files() > at_most {
            assert!(Instant::now() < deadline, "{} files stay", self.files());
            turn();
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // One that has ended already needs neither.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            self.log.ends();
            eprintln!("--- the daemon's log\n{}\n---", self.log());
        }
    }
}

fn spawn(place: &Place) -> (Child, Arc<Log>) {
    run(&mut place.daemon())
}

fn run(command: &mut Command) -> (Child, Arc<Log>) {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let log = Log::of(child.stderr.take().expect("its standard error"));
    (child, log)
}
