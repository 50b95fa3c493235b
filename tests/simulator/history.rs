//! The last lines of what happened, for whoever reads a violation. Off in ordinary runs: a seed
//! that fails is run again with it on, which costs nothing elsewhere and gives the same run.

use std::cell::RefCell;
use std::collections::VecDeque;

use crate::seeds::number;

/// Lines that are kept; `RB_LINES` says otherwise.
const KEPT: u64 = 60;

thread_local! {
    static HISTORY: RefCell<Option<VecDeque<String>>> = const { RefCell::new(None) };
}

/// Begins anew, with or without lines.
pub(crate) fn start(on: bool) {
    HISTORY.with_borrow_mut(|history| *history = on.then(VecDeque::new));
}

/// Adds a line, if anybody listens.
pub(crate) fn note(line: impl FnOnce() -> String) {
    HISTORY.with_borrow_mut(|history| {
        if let Some(lines) = history {
            if lines.len() as u64 >= number("RB_LINES").unwrap_or(KEPT) {
                lines.pop_front();
            }
            let mut line = line();
            if line.len() > 1200 {
                let mut end = 1200;
                while !line.is_char_boundary(end) {
                    end -= 1;
                }
                line.truncate(end);
                line.push('…');
            }
            lines.push_back(line);
        }
    });
}

/// The lines so far, oldest first.
pub(crate) fn dump() -> String {
    HISTORY.with_borrow(|history| match history {
        None => String::new(),
        Some(lines) => lines.iter().map(|line| format!("  {line}\n")).collect(),
    })
}
