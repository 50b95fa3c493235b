//! rolebroker-runner behind a real daemon, with a configuration of its own, declared to the daemon as the runner
//! prints it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::harness::{Daemon, Log, PATIENCE, Peer, Place, finished, program};

const WORLD: &str = r#"
[broker]
runtime_dir = "RUNTIME"
state_dir = "STATE"
allow_shared_uid = true
cancel_grace = "10s"

[roles.bot]
kind = "agent"
users = ["SELF"]
label_scope = "session"

[roles.files]
kind = "runner"
users = ["SELF", "65533"]

[roles.admin]
kind = "operator"
users = ["SELF"]

"#;

/// A daemon, a runner, and a folder `work` that it serves.
pub(crate) struct Stage {
    pub(crate) daemon: Daemon,
    pub(crate) bot: Peer,
    runner: Child,
    pub(crate) log: Arc<Log>,
    last_call: u64,
}

impl Stage {
    /// WORK in the runner's configuration is replaced by a folder that exists.
    pub(crate) fn start(config: &str) -> Self {
        Self::start_by(config, |command| command)
    }

    /// As [`Self::start`], with the runner's command changed.
    pub(crate) fn start_by(config: &str, change: impl FnOnce(Command) -> Command) -> Self {
        let place = Place::with(WORLD);
        let work = work(&place);
        fs::create_dir(&work).expect("a folder");
        let file = place.path().join("runner.toml");
        fs::write(&file, config.replace("WORK", work.to_str().expect("text"))).expect("writes");
        let mut printing = Command::new(program("rolebroker-runner"));
        printing.arg("--config").arg(&file);
        printing.args(["--role", "files", "--print-tools"]);
        let blocks = String::from_utf8(finished(&mut printing, 0).stdout).expect("text");
        let names: Vec<&str> = blocks
            .lines()
            .filter_map(|l| l.strip_prefix("name = "))
            .collect();
        let grant = format!(
            "[[grant]]\nid = \"all\"\nroles = [\"bot\"]\nsessions = [\"*\"]\ntools = [{}]\neffect = \"allow\"\n\
             max_class = \"secret\"\nuntrusted = \"allow\"\n",
            names.join(", ")
        );
        let daemon = place.and(&blocks).and(&grant).start();
        let mut command = Command::new(program("rolebroker-runner"));
        command.arg("--config").arg(&file);
        command.arg("--socket").arg(daemon.socket("files"));
        command.env("ROLEBROKER_LOG", "debug");
        let mut runner = change(command)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts rolebroker-runner");
        let log = Log::of(runner.stderr.take().expect("its standard error"));
        log.wait_for("serving", |line| line["event"] == "serving");
        let bot = daemon.join("bot");
        Self {
            daemon,
            bot,
            runner,
            log,
            last_call: 0,
        }
    }

    pub(crate) fn work(&self) -> PathBuf {
        work(&self.daemon.place)
    }

    pub(crate) fn outside(&self) -> &Path {
        self.daemon.place.path()
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(self.runner.id().cast_signed())
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).expect("kill");
    }

    /// Waits for the runner's end.
    #[track_caller]
    pub(crate) fn end(&mut self) -> ExitStatus {
        assert!(self.log.ends(), "the runner did not end");
        self.runner.wait().expect("wait")
    }

    /// Asks for a call, and does not wait for its answer: the id of the request, and the call's number.
    #[track_caller]
    pub(crate) fn ask(&mut self, tool: &str, arguments: &Value) -> (u64, u64) {
        self.last_call += 1;
        let id = self
            .bot
            .call("s", self.last_call, tool, &arguments.to_string());
        (id, self.last_call)
    }

    /// Asks for a call in a session, and gives its answer's body.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let (id, _) = self.ask(tool, arguments);
        self.bot.ends(id)
    }

    /// As [`Self::call`], for one that fails, with what it says.
    #[track_caller]
    pub(crate) fn fails(&mut self, tool: &str, arguments: &Value) -> String {
        let body = self.call(tool, arguments);
        assert_eq!(body["status"], "failed", "{body}");
        body["message"].as_str().expect("a message").to_owned()
    }

    #[track_caller]
    pub(crate) fn cancel(&mut self, call: u64) {
        self.bot
            .ask("cancel", &json!({"session": "s", "call": call}));
    }

    /// Waits until commands have written so many lines with their numbers, and gives those.
    #[track_caller]
    pub(crate) fn pids(&self, count: usize) -> Vec<i32> {
        let begun = Instant::now();
        loop {
            let text = fs::read_to_string(self.work().join("pids")).unwrap_or_default();
            let pids: Vec<i32> = text
                .lines()
                .filter_map(|line| line.trim().parse().ok())
                .collect();
            if pids.len() >= count {
                return pids;
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "the command did not get there: {pids:?}"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // One that has ended already needs neither.
        let _ = self.runner.kill();
        let _ = self.runner.wait();
        if std::thread::panicking() {
            self.log.ends();
            eprintln!("--- the runner's log\n{}\n---", self.log.text());
        }
    }
}

fn work(place: &Place) -> PathBuf {
    place.path().canonicalize().expect("a path").join("work")
}

/// Whether a process runs.
pub(crate) fn alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Waits until none of them runs any more.
#[track_caller]
pub(crate) fn all_end(pids: &[i32]) {
    let begun = Instant::now();
    while let Some(pid) = pids.iter().find(|pid| alive(**pid)) {
        assert!(begun.elapsed() < PATIENCE, "process {pid} still runs");
        std::thread::sleep(Duration::from_millis(5));
    }
}
