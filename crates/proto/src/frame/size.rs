//! How large frames are: exactly for what is known, and at least and at most for a `result` of which
//! only the content's size is. All sizes are bytes of JSON, without the frame's length.

/// A byte of content takes at most this many in JSON: a control character is written `\u001f`.
const LARGEST_ESCAPE: usize = 6;
const LONGEST_CLASS: usize = "confidential".len();
const SHORTEST_CLASS: usize = "public".len();
const LONGEST_BOOL: usize = "false".len();
const SHORTEST_BOOL: usize = "true".len();
/// The digits of `u64::MAX`.
const LONGEST_ID: usize = 20;
/// What does not vary in an envelope around its message.
const ENVELOPE: usize = r#"{"v":1,"id":,"final":,"msg":}"#.len();
/// What does not vary in a `result`.
const RESULT: usize =
    r#"{"kind":"tool_response","body":{"status":"result","content":"","class":"","untrusted":,"truncated":}}"#
        .len();
/// A `result` without content: the shortest head, class and booleans.
const SMALLEST: usize = ENVELOPE + RESULT + 1 + SHORTEST_CLASS + 3 * SHORTEST_BOOL;
/// A `result` without content: the longest head, class and booleans.
const LARGEST: usize = ENVELOPE + RESULT + LONGEST_ID + LONGEST_CLASS + 3 * LONGEST_BOOL;

/// The smallest frame that a `result` with `content` bytes can take: no escapes, the shortest head.
pub const fn smallest_result(content: usize) -> usize {
    SMALLEST.saturating_add(content)
}

/// The largest frame that a `result` with `content` bytes can take: only escapes, the longest head.
pub const fn largest_result(content: usize) -> usize {
    LARGEST.saturating_add(content.saturating_mul(LARGEST_ESCAPE))
}

/// The largest content, in bytes, of which every `result` fits into a frame of `frame` bytes. None
/// where even an empty one may not.
pub const fn content_that_always_fits(frame: usize) -> Option<usize> {
    match frame.checked_sub(LARGEST) {
        Some(room) => Some(room / LARGEST_ESCAPE),
        None => None,
    }
}

/// The largest content, in bytes, of which any `result` fits into a frame of `frame` bytes. None
/// where not even an empty one does.
pub const fn content_that_can_fit(frame: usize) -> Option<usize> {
    frame.checked_sub(SMALLEST)
}

/// The exact size of an envelope whose written message is `msg` bytes long.
pub fn envelope_len(id: u64, is_final: bool, msg: usize) -> usize {
    let digits = id.checked_ilog10().map_or(1, |log| log as usize + 1);
    let is_final = if is_final {
        SHORTEST_BOOL
    } else {
        LONGEST_BOOL
    };
    ENVELOPE + digits + is_final + msg
}

/// The exact number of bytes that `text` takes between the quotes of a JSON string, as this crate
/// writes it.
pub fn escaped_len(text: &str) -> usize {
    text.bytes()
        .map(|byte| match byte {
            b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
            0..0x20 => LARGEST_ESCAPE,
            _ => 1,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DataClass, Envelope, Message, ToolResponse, encode};

    fn frame(content: String, id: u64, is_final: bool, class: DataClass, flag: bool) -> usize {
        let result = ToolResponse::Result {
            content,
            class,
            untrusted: flag,
            truncated: flag,
        };
        let mut envelope = Envelope::last(id, Message::ToolResponse(result));
        envelope.r#final = is_final;
        encode(&envelope).len()
    }

    fn smallest(content: usize) -> usize {
        frame("a".repeat(content), 9, true, DataClass::Public, true)
    }

    fn largest(content: usize) -> usize {
        frame(
            "\u{1}".repeat(content),
            u64::MAX,
            false,
            DataClass::Confidential,
            false,
        )
    }

    #[test]
    fn both_bounds_are_reached_by_frames_that_were_written() {
        for content in [0, 1, 2, 1000, 65_536] {
            assert_eq!(smallest_result(content), smallest(content));
            assert_eq!(largest_result(content), largest(content));
        }
    }

    #[test]
    fn every_result_lies_between_the_bounds() {
        for class in DataClass::ALL {
            for (id, is_final) in [(0, false), (10, true), (u64::MAX, true)] {
                for content in [
                    "",
                    "plain",
                    "\u{0}\u{1f}",
                    "\"\\\n",
                    "\u{e9}\u{2028}\u{1f600}\u{7f}",
                ] {
                    for flag in [false, true] {
                        let size = frame(content.to_owned(), id, is_final, class, flag);
                        assert!(smallest_result(content.len()) <= size, "{content:?}");
                        assert!(size <= largest_result(content.len()), "{content:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_reverse_gives_the_last_content_that_fits() {
        for limit in [SMALLEST, LARGEST, LARGEST + 5, LARGEST + 6, 4096, 8 << 20] {
            let can = content_that_can_fit(limit).unwrap();
            assert!(
                smallest(can) <= limit && smallest(can + 1) > limit,
                "{limit}"
            );
            let Some(always) = content_that_always_fits(limit) else {
                assert!(largest(0) > limit, "{limit}");
                continue;
            };
            assert!(
                largest(always) <= limit && largest(always + 1) > limit,
                "{limit}"
            );
        }
        assert_eq!(content_that_can_fit(SMALLEST - 1), None);
        assert_eq!(content_that_always_fits(LARGEST - 1), None);
        assert_eq!(largest_result(usize::MAX), usize::MAX);
    }

    #[test]
    fn an_envelope_takes_exactly_what_is_said() {
        for id in [0, 1, 9, 10, 99, 100, u64::MAX / 10, u64::MAX] {
            for is_final in [false, true] {
                let mut envelope = Envelope::last(
                    id,
                    Message::ToolResponse(crate::FailureCode::Busy.response("x")),
                );
                envelope.r#final = is_final;
                let msg = crate::encode_message(&envelope.msg).len();
                assert_eq!(
                    envelope_len(id, is_final, msg),
                    encode(&envelope).len(),
                    "{id}"
                );
            }
        }
    }

    #[test]
    fn every_character_takes_exactly_what_is_said() {
        for character in (0..0x3000)
            .chain(0x1f600..0x1f610)
            .filter_map(char::from_u32)
        {
            let text = character.to_string();
            let written = serde_json::to_string(&text).unwrap();
            assert_eq!(escaped_len(&text), written.len() - 2, "{character:?}");
        }
    }
}
