//! Lines that fit a screen.

use crate::out;

/// Columns of the screen.
pub const WIDTH: usize = 80;

/// Prints `text`, folded, the first line behind `head` and the others as far in.
pub(super) fn say(head: &str, text: &str) {
    for line in fold(head, text, WIDTH) {
        out::line(&line);
    }
}

/// Prints `text` in lines that are cut, `margin` in: not a character of it is left out.
pub(super) fn exactly(margin: &str, text: &str) {
    let chars: Vec<char> = text.chars().collect();
    for line in chars.chunks(WIDTH.saturating_sub(margin.len()).max(1)) {
        out::line(&format!("{margin}{}", line.iter().collect::<String>()));
    }
}

/// Folds `text` at spaces, or within a word that is longer than a line, into lines of at most `width` characters.
pub fn fold(head: &str, text: &str, width: usize) -> Vec<String> {
    let indent = " ".repeat(head.chars().count());
    let room = width.saturating_sub(indent.len()).max(1);
    let mut lines = Vec::new();
    let mut rest = text.trim_end();
    loop {
        let lead = if lines.is_empty() { head } else { &indent };
        let Some((end, _)) = rest.char_indices().nth(room) else {
            lines.push(format!("{lead}{rest}"));
            return lines;
        };
        // A space may stand just behind the last column.
        let fits = rest[end..]
            .chars()
            .next()
            .map_or(end, |c| end + c.len_utf8());
        let (line, more) = match rest[..fits].rfind(' ') {
            Some(space) if space > 0 => (&rest[..space], &rest[space + 1..]),
            Some(_) | None => rest.split_at(end),
        };
        lines.push(format!("{lead}{line}"));
        rest = more;
    }
}
