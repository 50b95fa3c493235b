//! Text that others wrote, so that a terminal shows all of it and nothing else.
//!
//! Shown as it is: printable ASCII, and letters and digits that are visible and written from left to right.
//! Everything else becomes `\u{…}`: controls, invisible characters, bidirectional marks, and right-to-left letters
//! too, since one of these reorders what stands around it.

/// A plain text on one line; a backslash is doubled, so that nobody can write an escape of his own.
pub fn text(text: &str) -> String {
    escape(text, true, "")
}

/// JSON on one line. A backslash of the content is doubled there already.
pub fn json(text: &str) -> String {
    escape(text, false, "")
}

/// A text of many lines for a terminal: line ends and tabs stay.
pub fn lines(text: &str) -> String {
    escape(text, true, "\n\t")
}

fn escape(text: &str, backslashes: bool, kept: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '\\' && backslashes {
            out.push_str("\\\\");
        } else if is_plain(c) || kept.contains(c) {
            out.push(c);
        } else {
            out.extend(c.escape_unicode());
        }
    }
    out
}

fn is_plain(c: char) -> bool {
    match c {
        ' '..='~' => true,
        // Letters that show as nothing: the Hangul fillers.
        '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' => false,
        // The blocks of the scripts that are written from right to left.
        '\u{590}'..='\u{8ff}'
        | '\u{fb1d}'..='\u{fdff}'
        | '\u{fe70}'..='\u{feff}'
        | '\u{10800}'..='\u{10fff}'
        | '\u{1e800}'..='\u{1efff}' => false,
        _ => c.is_alphanumeric(),
    }
}
