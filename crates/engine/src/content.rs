//! How much content fits a frame, and where it is cut.

use proto::{DataClass, Envelope, Message, ToolResponse, encode};

/// The bytes that a content may take inside its quotes, so that a `result` under any id and label
/// fits `max_frame`.
pub(crate) fn room(max_frame: u64) -> usize {
    let longest = Envelope {
        v: proto::PROTOCOL_VERSION,
        id: u64::MAX,
        r#final: false,
        msg: Message::ToolResponse(ToolResponse::Result {
            content: String::new(),
            class: DataClass::Confidential,
            untrusted: false,
            truncated: false,
        }),
    };
    usize::try_from(max_frame)
        .unwrap_or(usize::MAX)
        .saturating_sub(encode(&longest).len())
}

/// The bytes that a character takes inside JSON quotes.
fn written(c: char) -> usize {
    match c {
        '"' | '\\' | '\u{8}' | '\t' | '\n' | '\u{c}' | '\r' => 2,
        '\0'..='\u{1f}' => 6,
        c => c.len_utf8(),
    }
}

/// The bytes that a text takes inside JSON quotes.
pub(crate) fn written_len(text: &str) -> usize {
    text.chars().map(written).sum()
}

/// The longest beginning of `text` that takes at most `room` bytes inside JSON quotes.
pub(crate) fn fitting(text: &str, room: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += written(c);
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
    fn written_len_is_what_serde_json_writes() {
        for c in (0..0x300)
            .filter_map(char::from_u32)
            .chain(['\u{2028}', '\u{ffff}', '😀'])
        {
            let text = c.to_string();
            let json = serde_json::to_string(&text).unwrap();
            assert_eq!(written_len(&text), json.len() - 2, "{c:?}");
        }
    }

    #[test]
    fn a_text_is_cut_on_a_character_boundary_where_it_no_longer_fits() {
        assert_eq!(fitting("aäb", 4), "aäb");
        assert_eq!(fitting("aäb", 3), "aä");
        assert_eq!(fitting("aäb", 2), "a");
        assert_eq!(fitting("a\"b", 2), "a");
        assert_eq!(bounded("aä", 2), "a");
    }
}
