//! How far a call is, on the terminal of whoever waits: lines on standard error that are drawn over, and erased at
//! the end. Where standard error is no terminal there are none; that a person is asked is then said once, in a line
//! that stays.

use std::io::{IsTerminal as _, Write as _};
use std::time::Instant;

use client::Update;
use rustix::termios::tcgetwinsize;

use crate::cli::Place;
use crate::printable;

/// Rows that it takes at most; what does not fit is cut.
pub const MAX_ROWS: usize = 3;
/// Columns of a terminal that does not say.
const USUAL_WIDTH: u16 = 80;
/// Fewer columns than this are taken for a mistake.
const LEAST_WIDTH: u16 = 20;

/// The lines of one call.
#[derive(Debug)]
pub struct Progress {
    begun: Instant,
    says: String,
    /// Rows on the screen now.
    rows: usize,
    shown: Shown,
}

/// What is shown of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// All of it, drawn over.
    Drawn,
    /// That a person is asked, in lines that stay.
    Once,
    /// Nothing.
    No,
}

impl Progress {
    /// For a person, if one sits there; a program is told nothing.
    pub fn start(place: &Place) -> Progress {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        let drawn = std::io::stderr().is_terminal() && !dumb;
        Progress {
            begun: Instant::now(),
            says: "asked".to_owned(),
            rows: 0,
            shown: match (place.json, drawn) {
                (true, _) => Shown::No,
                (false, true) => Shown::Drawn,
                (false, false) => Shown::Once,
            },
        }
    }

    /// A step of the call came.
    pub fn step(&mut self, step: &Update) {
        let Some(says) = words(step) else {
            return;
        };
        let asked = matches!(step, Update::Pending { .. });
        if asked && self.shown == Shown::Once {
            put(&format!("{says}\n"));
        }
        self.says = says;
        self.draw();
    }

    /// Something that is no step of the call.
    pub fn say(&mut self, says: &str) {
        says.clone_into(&mut self.says);
        self.draw();
    }

    /// Draws it with the time that has passed.
    pub fn draw(&mut self) {
        if self.shown != Shown::Drawn {
            return;
        }
        let seconds = self.begun.elapsed().as_secs();
        let lines = rows(&format!("{}  {}", elapsed(seconds), self.says), width());
        let mut out = self.erasing();
        out.push_str(&lines.join("\n"));
        self.rows = lines.len();
        put(&out);
    }

    /// Takes it off the screen.
    pub fn erase(&mut self) {
        if self.rows > 0 {
            put(&self.erasing());
            self.rows = 0;
        }
    }

    /// What takes off the screen what is on it.
    fn erasing(&self) -> String {
        match self.rows {
            0 => String::new(),
            1 => "\r\x1b[J".to_owned(),
            rows => format!("\r\x1b[{}A\x1b[J", rows - 1),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.erase();
    }
}

/// What a step says; a part of the answer says nothing.
pub fn words(step: &Update) -> Option<String> {
    match step {
        // The agent is not told which roles are asked.
        Update::Pending { approval, .. } => Some(format!(
            "waiting for a person: approval {approval}; an approver answers with `rolebroker approve {approval}`, and \
             --as ROLE if the role is not called approver"
        )),
        Update::Progress { done, total, note } => {
            let of = match total {
                0 => String::new(),
                total => format!(" of {total}"),
            };
            Some(format!("{done}{of}  {}", printable::text(note)))
        }
        Update::Part { .. } | Update::Final(_) => None,
    }
}

/// The text in rows of less than `width` columns, at most [`MAX_ROWS`]. What is not ASCII may take two columns.
pub fn rows(text: &str, width: u16) -> Vec<String> {
    let room = usize::from(width.max(LEAST_WIDTH)) - 1;
    let mut rows = vec![String::new()];
    let mut used = 0;
    for c in text.chars() {
        let columns = if c.is_ascii() { 1 } else { 2 };
        if used + columns > room {
            if rows.len() == MAX_ROWS {
                break;
            }
            rows.push(String::new());
            used = 0;
        }
        used += columns;
        if let Some(last) = rows.last_mut() {
            last.push(c);
        }
    }
    rows
}

fn elapsed(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

fn width() -> u16 {
    tcgetwinsize(std::io::stderr()).map_or(USUAL_WIDTH, |size| size.ws_col)
}

/// A terminal that went away is no fault: the exit code still says how it went.
fn put(text: &str) {
    let mut out = std::io::stderr().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_note_is_cut_to_a_few_rows_that_fit_the_terminal() {
        for (text, width) in [
            ("x".repeat(1000), 80),
            ("雪".repeat(1000), 33),
            ("y".repeat(1000), 0),
        ] {
            let rows = rows(&text, width);
            assert_eq!(rows.len(), MAX_ROWS);
            for row in rows {
                let columns: usize = row.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum();
                assert!(
                    columns < usize::from(width.max(LEAST_WIDTH)),
                    "{columns} of {width}"
                );
            }
        }
        assert_eq!(rows("3s  asked", 80), ["3s  asked"]);
    }

    #[test]
    fn a_runners_note_cannot_steer_the_terminal() {
        let note = "half\u{1b}[2J\r\nway".to_owned();
        let words = words(&Update::Progress {
            done: 1,
            total: 2,
            note,
        })
        .unwrap();
        assert_eq!(words, "1 of 2  half\\u{1b}[2J\\u{d}\\u{a}way");
    }
}
