//! A command whose two outputs are a terminal: it prints what a person would see.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

use nix::fcntl::OFlag;
use nix::pty::{grantpt, posix_openpt, ptsname_r, unlockpt};

use crate::harness::PATIENCE;

/// A command on a terminal of its own. It reads nothing; it is killed when the test ends.
pub(super) struct Terminal {
    child: Child,
    lines: Receiver<String>,
}

impl Terminal {
    pub(super) fn start(mut command: Command) -> Self {
        // Nothing that another test starts meanwhile may keep it open.
        let flags = OFlag::O_RDWR | OFlag::O_NOCTTY;
        let screen = posix_openpt(flags | OFlag::O_CLOEXEC).expect("a pseudo-terminal");
        grantpt(&screen).expect("grantpt");
        unlockpt(&screen).expect("unlockpt");
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        options.custom_flags(OFlag::O_NOCTTY.bits());
        let terminal = options.open(ptsname_r(&screen).expect("its name"));
        let terminal = terminal.expect("its other side");
        let child = command
            .stdin(Stdio::null())
            .stdout(terminal.try_clone().expect("a clone"))
            .stderr(terminal)
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            // Once nobody has the other side any more, reading is an error.
            for line in BufReader::new(screen).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self { child, lines }
    }

    /// The next line; `None` once it has ended.
    #[track_caller]
    fn next(&mut self) -> Option<String> {
        match self.lines.recv_timeout(PATIENCE) {
            // A terminal ends lines with two characters.
            Ok(line) => Some(line.trim_end_matches('\r').to_owned()),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("the command neither prints nor ends"),
        }
    }

    /// The next line; nothing once it has ended.
    #[track_caller]
    pub(super) fn line(&mut self) -> String {
        self.next().unwrap_or_default()
    }

    /// All that it still shows, and its exit code.
    #[track_caller]
    pub(super) fn end(mut self) -> (String, Option<i32>) {
        let mut rest = String::new();
        while let Some(line) = self.next() {
            assert!(
                !line.starts_with("waiting for a person"),
                "nobody was to be asked, and the command waits: {line}"
            );
            rest.extend([&line, "\n"]);
        }
        (rest, self.child.wait().expect("wait").code())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // One that has ended already needs neither.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
