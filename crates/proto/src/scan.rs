//! A cheap first look at a frame, before anything is built from it: whether it is JSON within
//! limits, and the version, id and kind that an error about it needs.

use std::borrow::Cow;

use crate::grammar::{self, Limits, Listener, Stop};

/// The most arrays and objects inside each other, the envelope being the first.
pub const MAX_DEPTH: usize = 16;
/// The most values in one frame, of any type, the envelope being the first.
pub const MAX_VALUES: usize = 65_536;

/// Why a frame is not looked at further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ScanError {
    /// Not UTF-8.
    #[error("not UTF-8 at byte {at}")]
    NotUtf8 {
        /// The offset of the first byte that does not belong.
        at: usize,
    },
    /// Not the grammar of RFC 8259.
    #[error("not JSON at byte {at}")]
    NotJson {
        /// The offset of the first byte that does not belong.
        at: usize,
    },
    /// Deeper than [`MAX_DEPTH`].
    #[error("more than {MAX_DEPTH} levels")]
    TooDeep,
    /// More than [`MAX_VALUES`].
    #[error("more than {MAX_VALUES} values")]
    TooMany,
}

/// What a scan found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan<'a> {
    /// What could be read on the way, as far as the scan went.
    pub head: Head<'a>,
    /// The frame as text: JSON within the limits.
    pub text: Result<&'a str, ScanError>,
}

/// What could be read of a frame without understanding it. A key that stands twice is unreadable.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Head<'a> {
    /// The envelope's `v`.
    pub version: Version,
    /// The envelope's `id`, where it is a plain integer of 64 bits.
    pub id: Option<u64>,
    /// The message's `kind`, where it is a string.
    pub kind: Option<Cow<'a, str>>,
}

/// An envelope's `v`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Version {
    /// Missing, twice there, or not an integer.
    #[default]
    Unreadable,
    /// [`crate::PROTOCOL_VERSION`].
    Supported,
    /// Another integer.
    Other,
}

/// Looks at one frame's content. Allocates nothing (a kind written with escapes aside) and stops at
/// the first error or limit.
pub fn scan(frame: &[u8]) -> Scan<'_> {
    let text = match std::str::from_utf8(frame) {
        Ok(text) => text,
        Err(error) => {
            let text = Err(ScanError::NotUtf8 {
                at: error.valid_up_to(),
            });
            return Scan {
                head: Head::default(),
                text,
            };
        }
    };
    let mut reader = HeadReader::default();
    let limits = Limits {
        depth: MAX_DEPTH,
        values: MAX_VALUES,
    };
    let end = grammar::walk(text, limits, &mut reader).map_err(|stop| match stop {
        Stop::Grammar(at) => ScanError::NotJson { at },
        Stop::Depth => ScanError::TooDeep,
        Stop::Values => ScanError::TooMany,
    });
    Scan {
        head: reader.finish(),
        text: end.map(|()| text),
    }
}

/// Collects the head while the grammar is walked.
#[derive(Default)]
struct HeadReader<'a> {
    /// Which of the envelope's members the walk is in.
    member: Member,
    /// Whether it is in `msg` at `kind`.
    at_kind: bool,
    version: Once<Version>,
    id: Once<u64>,
    msg: Once<()>,
    kind: Once<Cow<'a, str>>,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Member {
    #[default]
    Other,
    Version,
    Id,
    Msg,
}

/// Something that counts only if its key stood there once.
struct Once<T> {
    keys: usize,
    read: Option<T>,
}

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self {
            keys: 0,
            read: None,
        }
    }
}

impl<T> Once<T> {
    fn get(self) -> Option<T> {
        self.read.filter(|_| self.keys == 1)
    }
}

impl<'a> HeadReader<'a> {
    fn finish(self) -> Head<'a> {
        let kind = if self.msg.keys == 1 {
            self.kind.get()
        } else {
            None
        };
        Head {
            version: self.version.get().unwrap_or_default(),
            id: self.id.get(),
            kind,
        }
    }

    fn envelope_key(&mut self, raw: &[u8]) {
        self.at_kind = false;
        self.member = match word(raw).as_ref() {
            b"v" => {
                self.version.keys += 1;
                Member::Version
            }
            b"id" => {
                self.id.keys += 1;
                Member::Id
            }
            b"msg" => {
                self.msg.keys += 1;
                Member::Msg
            }
            _ => Member::Other,
        };
    }
}

impl<'a> Listener<'a> for HeadReader<'a> {
    fn key(&mut self, depth: usize, raw: &'a [u8]) {
        if depth == 1 {
            self.envelope_key(raw);
        } else if depth == 2 && self.member == Member::Msg {
            self.at_kind = word(raw).as_ref() == b"kind";
            self.kind.keys += usize::from(self.at_kind);
        }
    }

    fn scalar(&mut self, depth: usize, raw: &'a [u8]) {
        match (depth, self.member) {
            (1, Member::Version) => self.version.read = version(raw),
            (1, Member::Id) => self.id.read = plain_integer(raw),
            (2, Member::Msg) if self.at_kind => {
                self.kind.read = raw
                    .strip_prefix(b"\"")
                    .and_then(|rest| rest.strip_suffix(b"\""))
                    .and_then(unescaped);
            }
            _ => {}
        }
    }
}

/// A number is grammatical already: an integer is one without a fraction and an exponent.
fn version(raw: &[u8]) -> Option<Version> {
    let digits = raw.strip_prefix(b"-").unwrap_or(raw);
    if !digits.iter().all(u8::is_ascii_digit) {
        None
    } else if raw == b"1" {
        Some(Version::Supported)
    } else {
        Some(Version::Other)
    }
}

fn plain_integer(raw: &[u8]) -> Option<u64> {
    let digits = raw.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(raw)
        .ok()
        .filter(|_| digits)?
        .parse()
        .ok()
}

/// A key as it is meant; as it is written where it has no meaning.
fn word(raw: &[u8]) -> Cow<'_, [u8]> {
    if raw.contains(&b'\\')
        && let Some(meant) = unescaped(raw)
    {
        Cow::Owned(meant.into_owned().into_bytes())
    } else {
        Cow::Borrowed(raw)
    }
}

/// What a string's inside means. None for half a surrogate pair, and for what is longer than any
/// word of the wire could be.
fn unescaped(raw: &[u8]) -> Option<Cow<'_, str>> {
    const LONGEST: usize = 6 * 32;
    if raw.len() > LONGEST {
        return None;
    }
    let text = std::str::from_utf8(raw).ok()?;
    if text.contains('\\') {
        serde_json::from_str(&format!("\"{text}\""))
            .ok()
            .map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(frame: &str) -> (Version, Option<u64>, Option<String>) {
        let head = scan(frame.as_bytes()).head;
        (head.version, head.id, head.kind.map(Cow::into_owned))
    }

    #[test]
    fn version_id_and_kind_are_read_wherever_they_stand() {
        let all = (Version::Supported, Some(7), Some("cancel".to_owned()));
        assert_eq!(
            head(r#"{"v":1,"id":7,"final":true,"msg":{"kind":"cancel","body":{}}}"#),
            all
        );
        assert_eq!(
            head(r#"{"msg":{"body":{"kind":"x"},"kind":"cancel"},"id":7,"x":[],"v":1}"#),
            all
        );
        assert_eq!(
            head(r#"{"\u0076":1,"i\u0064":7,"ms\u0067":{"kin\u0064":"c\u0061ncel"}}"#),
            all
        );
    }

    #[test]
    fn a_version_is_an_integer_of_any_size() {
        for other in ["0", "2", "-1", "-0", "18446744073709551616"] {
            assert_eq!(
                head(&format!("{{\"v\":{other}}}")).0,
                Version::Other,
                "{other}"
            );
        }
        for none in [
            "1.0",
            "1e0",
            "\"1\"",
            "null",
            "[1]",
            "{\"v\":1}",
            "1,\"v\":1",
            "2,\"\\u0076\":2",
        ] {
            assert_eq!(
                head(&format!("{{\"v\":{none}}}")).0,
                Version::Unreadable,
                "{none}"
            );
        }
    }

    #[test]
    fn an_id_is_a_plain_integer_of_64_bits_that_stands_once() {
        assert_eq!(head(r#"{"id":18446744073709551615}"#).1, Some(u64::MAX));
        for none in [
            "18446744073709551616",
            "-1",
            "-0",
            "7.0",
            "7e0",
            "\"7\"",
            "[7]",
            "7,\"id\":7",
        ] {
            assert_eq!(head(&format!("{{\"id\":{none}}}")).1, None, "{none}");
        }
        assert_eq!(head(r#"[{"id":7}]"#).1, None);
        assert_eq!(head(r#"{"x":{"id":7}}"#).1, None);
    }

    #[test]
    fn a_kind_that_is_not_one_string_is_not_read() {
        for none in [
            r#"{"msg":{"kind":["error"]}}"#,
            r#"{"msg":{"kind":"error","kind":"error"}}"#,
            r#"{"msg":{"kind":"error"},"msg":{}}"#,
            r#"{"msg":[{"kind":"error"}]}"#,
            r#"{"x":{"kind":"error"}}"#,
            r#"{"msg":{"kind":"\ud800"}}"#,
        ] {
            assert_eq!(head(none).2, None, "{none}");
        }
    }

    #[test]
    fn what_was_read_before_a_limit_is_known() {
        let deep = format!("{{\"v\":1,\"id\":7,\"x\":{}", "[".repeat(MAX_DEPTH));
        let found = scan(deep.as_bytes());
        assert_eq!(
            (found.text, found.head.id),
            (Err(ScanError::TooDeep), Some(7))
        );
    }
}
