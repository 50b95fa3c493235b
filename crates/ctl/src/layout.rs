//! Texts and JSON in lines that fit a screen. What goes on in the next line ends with a backslash, which no escape
//! does; nothing is left out, and nothing of the content can stand at the beginning of a line.

use unicode_width::UnicodeWidthStr as _;

mod tree;

pub use tree::{Laid, json};

/// The column at which a value stands behind its name.
const VALUE: usize = 13;
/// Of a line at least so much is filled before it is broken at a space.
const FILLED: usize = 2;

/// A named value: its first line behind the name, the others as far in. `shown` is printable already.
pub fn field(indent: usize, name: &str, shown: &str, width: usize) -> Vec<String> {
    let named = VALUE.saturating_sub(indent);
    let head = format!("{:indent$}{name:<named$}", "");
    behind(&head, &" ".repeat(columns(&head)), shown, width)
}

/// `shown` behind `head`, and what goes on behind `next`.
pub(crate) fn behind(head: &str, next: &str, shown: &str, width: usize) -> Vec<String> {
    let room = |lead: &str| width.saturating_sub(columns(lead)).max(2);
    let mut lines = Vec::new();
    let pieces = pieces(shown);
    let mut rest = pieces.as_slice();
    let mut left: usize = rest.iter().map(|piece| columns(piece)).sum();
    loop {
        let lead = if lines.is_empty() { head } else { next };
        if left <= room(lead) {
            lines.push(format!("{lead}{}", rest.concat()));
            return lines;
        }
        let end = break_at(rest, room(lead) - 1);
        let (line, more) = rest.split_at(end);
        left -= line.iter().map(|piece| columns(piece)).sum::<usize>();
        lines.push(format!("{lead}{}\\", line.concat()));
        rest = more;
    }
}

/// How many pieces go into `room` columns: at least one; up to behind a space, if there is one late enough.
fn break_at(pieces: &[&str], room: usize) -> usize {
    let (mut filled, mut end, mut space) = (0, 0, None);
    for (at, piece) in pieces.iter().enumerate() {
        filled += columns(piece);
        if filled > room {
            break;
        }
        end = at + 1;
        if *piece == " " && filled > room / FILLED {
            space = Some(end);
        }
    }
    space.unwrap_or(end).max(1)
}

/// What is not to be torn apart: escapes, and letters with their marks.
fn pieces(shown: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = shown;
    while let Some(first) = rest.chars().next() {
        let end = if first == '\\' {
            escape_end(rest)
        } else {
            let marks = |c: char| !c.is_ascii() && columns(c.encode_utf8(&mut [0; 4])) == 0;
            let behind = rest.char_indices().skip(1).find(|(_, c)| !marks(*c));
            behind.map_or(rest.len(), |(at, _)| at)
        };
        let (piece, behind) = rest.split_at(end);
        pieces.push(piece);
        rest = behind;
    }
    pieces
}

/// Where an escape ends that stands at the beginning: `\u{…}`, or a backslash and what is behind it.
fn escape_end(text: &str) -> usize {
    if text.starts_with("\\u{")
        && let Some(end) = text.find('}')
    {
        return end + 1;
    }
    let second = text.chars().nth(1).map_or(0, char::len_utf8);
    1 + second
}

/// The most columns that a terminal may give this: a character of an ambiguous width counts as a wide one.
pub fn columns(shown: &str) -> usize {
    shown.width_cjk()
}

/// A count as people read it: `1,234`.
pub fn count(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
