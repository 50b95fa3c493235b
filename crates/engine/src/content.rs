//! How much content fits a frame, and where it is cut.

use proto::frame::{escaped_len, largest_result};

/// The bytes that a content may take inside its quotes, so that a `result` under any id and label
/// fits `max_frame`.
pub(crate) fn room(max_frame: u64) -> usize {
    usize::try_from(max_frame)
        .unwrap_or(usize::MAX)
        .saturating_sub(largest_result(0))
}

/// The longest beginning of `text` that takes at most `room` bytes inside JSON quotes.
pub(crate) fn fitting(text: &str, room: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += escaped_len(c.encode_utf8(&mut [0; 4]));
        if used > room {
            return text.get(..at).unwrap_or_default();
        }
    }
    text
}

/// The longest beginning of `text` of at most `max` bytes, on a character boundary.
pub(crate) fn bounded(text: &str, max: usize) -> &str {
    let mut end = max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_on_a_character_boundary_where_it_no_longer_fits() {
        assert_eq!(fitting("aäb", 4), "aäb");
        assert_eq!(fitting("aäb", 3), "aä");
        assert_eq!(fitting("aäb", 2), "a");
        assert_eq!(fitting("a\"b", 2), "a");
        assert_eq!(bounded("aä", 2), "a");
    }
}
