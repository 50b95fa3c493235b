//! Text that others wrote, so that a terminal shows all of it and nothing else.
//!
//! Shown as they are: printable ASCII, and visible letters, digits, punctuation and symbols of other scripts that
//! are written from left to right and stand for themselves. Everything else becomes `\u{…}`: controls, invisible
//! characters, bidirectional marks, right-to-left letters too, since one of these reorders what stands around it,
//! and marks that are put on top of other characters. Two different texts are never shown the same.

use std::fmt::Write as _;

mod plain;

pub(crate) use plain::script;
use plain::{Kind, kind};

/// The most marks that are shown on one letter of their own script; more of them pile up over other lines.
pub const MAX_MARKS: usize = 3;

/// A plain text on one line; a backslash is doubled, so that nobody can write an escape of his own.
pub fn text(text: &str) -> String {
    escape(text, &[('\\', "\\\\")])
}

/// JSON on one line. A backslash of the content is doubled there already, and `\u{` stands in no JSON; what is no
/// JSON is said to be none, and shown as a plain text.
pub fn json(json: &str) -> String {
    if is_json(json) {
        escape(json, &[])
    } else {
        format!("{NOT_JSON}{}", text(json))
    }
}

/// JSON as [`json`] shows it, in the lines that it was written in; nothing of an empty text.
pub fn json_lines(json: &str) -> String {
    if json.is_empty() {
        String::new()
    } else if is_json(json) {
        escape(json, &[('\n', "\n")])
    } else {
        format!("{NOT_JSON}{}", text(json))
    }
}

/// A text of many lines for a terminal: line ends and tabs stay.
pub fn lines(text: &str) -> String {
    escape(text, &[LINES, &[('\\', "\\\\")]].concat())
}

/// A message of ours, in which what others wrote is escaped already, or was not foreseen: lines and backslashes stay.
pub fn message(text: &str) -> String {
    escape(text, LINES)
}

/// A text as a string literal without its quotes: as [`text`], with `\"`, `\n`, `\r` and `\t`.
pub fn literal(text: &str) -> String {
    const LITERAL: &[(char, &str)] = &[
        ('\\', "\\\\"),
        ('"', "\\\""),
        ('\n', "\\n"),
        ('\r', "\\r"),
        ('\t', "\\t"),
    ];
    escape(text, LITERAL)
}

/// Whether the character can stand in a shown text as it is.
pub(crate) fn is_shown(c: char) -> bool {
    match kind(c) {
        Kind::Alone | Kind::Mark => true,
        Kind::Hidden => false,
    }
}

/// How many characters of a shown text are escapes of the form `\u{…}`.
pub(crate) fn escapes(shown: &str) -> usize {
    let mut count = 0;
    let mut chars = shown.chars();
    while let Some(c) = chars.next() {
        if c == '\\' && chars.next() == Some('u') {
            count += 1;
        }
    }
    count
}

/// No JSON begins so.
const NOT_JSON: &str = "not JSON: ";
const LINES: &[(char, &str)] = &[('\n', "\n"), ('\t', "\t")];

fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// `written` says how some characters are written; of the others, what is not plain becomes an escape.
fn escape(text: &str, written: &[(char, &str)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = Before::default();
    for c in text.chars() {
        let shown = before.shows(c);
        if let Some((_, as_this)) = written.iter().find(|(from, _)| *from == c) {
            out.push_str(as_this);
        } else if shown {
            out.push(c);
        } else {
            // Writing into a String does not fail.
            let _ = write!(out, "{}", c.escape_unicode());
        }
    }
    out
}

/// What a mark would be put on.
#[derive(Default)]
struct Before {
    last: Option<char>,
    marks: usize,
}

impl Before {
    fn shows(&mut self, c: char) -> bool {
        let shown = match kind(c) {
            Kind::Alone => {
                self.marks = 0;
                true
            }
            Kind::Mark => {
                self.marks += 1;
                self.marks <= MAX_MARKS && self.last.is_some_and(|last| plain::carries(last, c))
            }
            Kind::Hidden => false,
        };
        self.last = shown.then_some(c);
        shown
    }
}
