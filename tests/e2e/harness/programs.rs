//! Other programs: those of the workspace, scripts, and either as another user.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::sync::OnceLock;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};

/// One of the workspace's programs, as cargo built it beside this test.
pub(crate) fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let folder = test.parent().and_then(|deps| deps.parent());
    let path = folder.expect("target/debug/deps").join(name);
    assert!(
        path.exists(),
        "{} is missing; type: cargo build -p broker -p ctl -p runner",
        path.display()
    );
    path
}

/// python3 with a script's text and its arguments.
pub(crate) fn python<S: AsRef<OsStr>>(script: &str, args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new("python3");
    command.args(["-c", script]).args(args);
    command
}

/// The command as another uid, with that uid as its only group. `None`, with one line that says so, where
/// that cannot be done.
pub(crate) fn as_user(uid: u32, command: &Command) -> Option<Command> {
    if !can_be_others() {
        return None;
    }
    let mut other = setpriv(uid);
    other.arg(command.get_program()).args(command.get_args());
    // Another user may not have what this one has.
    other.env_clear().env("PATH", "/usr/bin:/bin");
    Some(other)
}

/// Whether this process can start others as other users.
pub(crate) fn can_be_others() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| {
        let can = geteuid().is_root() && {
            let tried = setpriv(1).arg("true").output();
            tried.is_ok_and(|output| output.status.success())
        };
        if !can {
            // Past the capture of what passing tests print.
            let _ = writeln!(
                std::io::stderr(),
                "skipped: what needs several users (needs root, and setpriv)"
            );
        }
        can
    })
}

fn setpriv(uid: u32) -> Command {
    let uid = uid.to_string();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", &uid, "--regid", &uid, "--clear-groups", "--"]);
    command
}

/// Runs a command to its end, and asserts how it ended.
#[track_caller]
pub(crate) fn finished(command: &mut Command, code: i32) -> Output {
    let output = command
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert_eq!(
        output.status.code(),
        Some(code),
        "{command:?}\n{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// A program that runs beside the test; killed when the test ends.
pub(crate) struct Program {
    child: Child,
    errors: BufReader<ChildStderr>,
}

impl Program {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let errors = BufReader::new(child.stderr.take().expect("its standard error"));
        Self { child, errors }
    }

    /// Reads its standard error up to a line with `text` in it, and no further.
    #[track_caller]
    pub(crate) fn says(&mut self, text: &str) {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            let read = self.errors.read_line(&mut line).expect("text");
            assert_ne!(read, 0, "it ended without a line with {text}");
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).expect("a pid");
        kill(Pid::from_raw(pid), signal).expect("kill");
    }

    /// Waits for its end: its exit code, and what it said on both outputs.
    pub(crate) fn end(&mut self) -> (Option<i32>, String, String) {
        let (mut out, mut err) = (String::new(), String::new());
        let mut stdout = self.child.stdout.take().expect("its standard output");
        stdout.read_to_string(&mut out).expect("text");
        self.errors.read_to_string(&mut err).expect("text");
        (self.child.wait().expect("wait").code(), out, err)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // One that has ended already needs neither.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
