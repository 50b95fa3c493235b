//! The daemon's log as it is written: lines to wait for, and all of it.

use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde_json::Value;

use super::PATIENCE;

/// The lines so far.
#[derive(Default)]
pub(crate) struct Log {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    lines: Vec<String>,
    /// Lines before this were looked at by [`Log::wait_for`].
    seen: usize,
    ended: bool,
}

impl Log {
    /// Takes the lines of a process's standard error, until it ends.
    pub(crate) fn of(stderr: impl Read + Send + 'static) -> Arc<Self> {
        let log = Arc::new(Log::default());
        let filled = Arc::clone(&log);
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                filled.lock().lines.push(line);
                filled.changed.notify_all();
            }
            filled.lock().ended = true;
            filled.changed.notify_all();
        });
        log
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A test that fails while it waits here still prints what there is.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next line, after those that were waited for before, that `fits`.
    #[track_caller]
    pub(crate) fn wait_for(&self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        let mut state = self.lock();
        loop {
            while let Some(line) = state.lines.get(state.seen).cloned() {
                state.seen += 1;
                let value: Value = serde_json::from_str(&line)
                    .unwrap_or_else(|error| panic!("not a JSON line: {error}: {line}"));
                if fits(&value) {
                    return value;
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero() && !state.ended, "no line came: {what}");
            state = self.changed.wait_timeout(state, left).expect("no panic").0;
        }
    }

    /// Waits until the process has closed it; whether it did.
    pub(crate) fn ends(&self) -> bool {
        let waited = self
            .changed
            .wait_timeout_while(self.lock(), PATIENCE, |state| !state.ended);
        waited.unwrap_or_else(PoisonError::into_inner).0.ended
    }

    /// All of it.
    pub(crate) fn text(&self) -> String {
        self.lock().lines.join("\n")
    }
}
