//! A program on a pseudo-terminal, and what that would show.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZero;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use nix::pty::{Winsize, openpty};

use super::PATIENCE;

/// A terminal of so many rows and columns with a program on it; killed when the test ends.
pub(crate) struct Terminal {
    keys: File,
    child: Child,
    seen: Arc<(Mutex<Seen>, Condvar)>,
    /// Of what was written, so much was waited for.
    read: usize,
}

struct Seen {
    screen: vt100::Parser,
    bytes: Vec<u8>,
    ended: bool,
}

impl Terminal {
    /// Starts a program; `ahead` was typed before it could read.
    pub(crate) fn start(command: &mut Command, rows: u16, columns: u16, ahead: &str) -> Self {
        let size = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let pair = openpty(&size, None).expect("a pseudo-terminal");
        let mut keys = File::from(pair.master);
        keys.write_all(ahead.as_bytes()).expect("typed");
        let end = || Stdio::from(pair.slave.try_clone().expect("a handle"));
        let child = command
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        // Its copies keep the terminal open in this process until they are closed, and the command goes with them.
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        drop(pair.slave);
        let seen = Arc::new((
            Mutex::new(Seen {
                screen: vt100::Parser::new(some(rows), some(columns), 0),
                bytes: Vec::new(),
                ended: false,
            }),
            Condvar::new(),
        ));
        let reader = keys.try_clone().expect("a handle");
        let shared = Arc::clone(&seen);
        std::thread::spawn(move || watch(reader, &shared));
        Self {
            keys,
            child,
            seen,
            read: 0,
        }
    }

    /// Types this.
    pub(crate) fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("typed");
    }

    /// The terminal gets another size.
    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        let mut size = rustix::termios::tcgetwinsize(&self.keys).expect("a size");
        (size.ws_row, size.ws_col) = (rows, columns);
        rustix::termios::tcsetwinsize(&self.keys, size).expect("resized");
        let mut seen = self.seen.0.lock().expect("no panic");
        seen.screen.screen_mut().set_size(some(rows), some(columns));
    }

    /// Waits until one of these was written, behind what was waited for before: which one, and the screen then.
    #[track_caller]
    pub(crate) fn shows(&mut self, any: &[&str]) -> (usize, String) {
        let deadline = Instant::now() + PATIENCE;
        let mut seen = self.seen.0.lock().expect("no panic");
        loop {
            let new = seen.bytes.get(self.read..).unwrap_or_default();
            let found = any.iter().enumerate().filter_map(|(which, text)| {
                let at = new
                    .windows(text.len())
                    .position(|it| it == text.as_bytes())?;
                Some((at + text.len(), which))
            });
            if let Some((end, which)) = found.min() {
                self.read += end;
                return (which, screen(&seen));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero() && !seen.ended,
                "none of {any:?} came, but:\n{}",
                String::from_utf8_lossy(&seen.bytes)
            );
            (seen, _) = self.seen.1.wait_timeout(seen, left).expect("no panic");
        }
    }

    /// All that was written.
    pub(crate) fn written(&self) -> String {
        let seen = self.seen.0.lock().expect("no panic");
        String::from_utf8(seen.bytes.clone()).expect("text")
    }

    /// Waits for the program's end: its exit code, and all that was written.
    #[track_caller]
    pub(crate) fn end(&mut self) -> (Option<i32>, String) {
        let code = self.child.wait().expect("wait").code();
        let deadline = Instant::now() + PATIENCE;
        let mut seen = self.seen.0.lock().expect("no panic");
        while !seen.ended {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "the terminal did not end");
            (seen, _) = self.seen.1.wait_timeout(seen, left).expect("no panic");
        }
        drop(seen);
        (code, self.written())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // One that has ended already needs neither.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn some(count: u16) -> NonZero<u16> {
    NonZero::new(count).expect("rows and columns")
}

fn watch(mut reader: File, shared: &(Mutex<Seen>, Condvar)) {
    let mut some = [0; 4096];
    loop {
        // The end of a pseudo-terminal is told as an error.
        let read = reader.read(&mut some).unwrap_or(0);
        let mut seen = shared.0.lock().expect("no panic");
        let some = some.get(..read).unwrap_or_default();
        seen.screen.process(some);
        seen.bytes.extend(some);
        seen.ended = read == 0;
        shared.1.notify_all();
        if seen.ended {
            return;
        }
    }
}

/// The rows of the screen, without the spaces at their ends.
fn screen(seen: &Seen) -> String {
    let screen = seen.screen.screen();
    let (_, columns) = screen.size();
    let rows: Vec<String> = screen
        .rows(0, columns.get())
        .map(|row| row.trim_end().to_owned())
        .collect();
    rows.join("\n")
}
