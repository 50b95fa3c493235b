//! What of the record is given up, and when a snapshot is due: the record is kept in segments, each of which begins
//! with the record of a snapshot.

use proto::{Digest, Timestamp};
use rusqlite::Connection;

use crate::chain::Head;

/// How much of the record is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Milliseconds after which it is given up: `audit_ttl`.
    pub age: u64,
    /// Bytes of its texts over which its oldest part is given up: `audit_bytes`.
    pub bytes: u64,
}

/// A part of the record that is given up as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Its first record.
    pub(crate) begins: u64,
    /// The chain's hash before that.
    pub(crate) before: Digest,
    /// When that was; 0: nobody knows.
    pub(crate) at: Timestamp,
    /// Bytes of all texts before it, those that were given up too.
    pub(crate) bytes: u64,
}

/// Bytes of texts after which a snapshot is due at the latest: a start reads no more than about as many.
const SEGMENT_BYTES: u64 = 32 << 20;
/// Segments that the bytes to be kept are cut into at least.
const SEGMENTS: u64 = 8;
/// Bytes of contents after which one is due: only a snapshot says which answers are dead.
const CONTENT_BYTES: u64 = 128 << 20;
/// Milliseconds after which one is due: what is given up by its age is given up a day late at most.
const SEGMENT_AGE: u64 = 24 * 3600 * 1000;

/// What was written since the newest segment began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Grown {
    /// Bytes of texts.
    pub(crate) bytes: u64,
    /// Bytes of contents.
    pub(crate) contents: u64,
    /// Bytes of the snapshot's own parts: none is due before as many were written.
    pub(crate) parts: u64,
}

impl Segment {
    /// All of them, oldest first.
    pub(crate) fn all(sql: &Connection) -> rusqlite::Result<Vec<Self>> {
        let mut segments =
            sql.prepare("SELECT begins, before, at, bytes FROM segment ORDER BY begins")?;
        let segments = segments.query_map([], |row| {
            Ok(Self {
                begins: row.get(0)?,
                before: Digest::new(row.get::<_, String>(1)?)
                    .unwrap_or_else(|_| Head::empty().hash),
                at: Timestamp::default().plus(row.get(2)?),
                bytes: row.get(3)?,
            })
        })?;
        segments.collect()
    }

    /// The chain before the first record that is kept.
    pub(crate) fn first(segments: &[Self]) -> Head {
        segments.first().map_or_else(Head::empty, Self::head)
    }

    /// The chain before its first record.
    pub(crate) fn head(&self) -> Head {
        Head {
            count: self.begins.saturating_sub(1),
            hash: self.before.clone(),
        }
    }

    /// Where the newest begins.
    pub(crate) fn newest(segments: &[Self]) -> u64 {
        segments.last().map_or(1, |newest| newest.begins)
    }
}

impl Retention {
    /// Whether a snapshot is due.
    pub(crate) fn is_due(&self, newest: &Segment, grown: Grown, now: Timestamp) -> bool {
        let segment = SEGMENT_BYTES.min(self.bytes / SEGMENTS).max(grown.parts);
        grown.bytes >= segment
            || grown.contents >= CONTENT_BYTES.max(grown.parts)
            || (grown.bytes > 0 && now.since(newest.at) >= SEGMENT_AGE)
    }

    /// The first segment to keep.
    pub(crate) fn first_kept<'a>(
        &self,
        segments: &'a [Segment],
        grown: Grown,
        now: Timestamp,
    ) -> Option<&'a Segment> {
        let newest = segments.last()?;
        let written = newest.bytes.saturating_add(grown.bytes);
        let young = segments
            .iter()
            .rev()
            .find(|segment| now.since(segment.at) >= self.age);
        let small = segments
            .iter()
            .find(|segment| written.saturating_sub(segment.bytes) <= self.bytes)
            .unwrap_or(newest);
        young
            .filter(|young| young.begins > small.begins)
            .or(Some(small))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = SEGMENT_AGE;

    /// One a day, each of a thousand bytes.
    fn segments(count: u64) -> Vec<Segment> {
        let segment = |number: u64| Segment {
            begins: number * 10 + 1,
            before: Head::empty().hash,
            at: Timestamp::default().plus(number * DAY),
            bytes: number * 1000,
        };
        (0..count).map(segment).collect()
    }

    fn first_kept(retention: Retention, now: u64) -> u64 {
        let grown = Grown {
            bytes: 500,
            ..Grown::default()
        };
        let now = Timestamp::default().plus(now);
        let segments = segments(5);
        retention
            .first_kept(&segments, grown, now)
            .map_or(0, |first| first.begins)
    }

    #[test]
    fn all_is_kept_that_is_young_and_fits() {
        let kept = Retention {
            age: 30 * DAY,
            bytes: 4500,
        };
        assert_eq!(first_kept(kept, 5 * DAY), 1);
    }

    #[test]
    fn a_segment_is_kept_until_its_last_record_is_too_old() {
        let kept = |days| Retention {
            age: days * DAY,
            bytes: 1 << 20,
        };
        assert_eq!(first_kept(kept(3), 4 * DAY), 11);
        assert_eq!(first_kept(kept(3), 4 * DAY - 1), 1);
    }

    #[test]
    fn what_is_too_much_is_given_up_from_the_oldest_on() {
        let kept = |bytes| Retention {
            age: 30 * DAY,
            bytes,
        };
        assert_eq!(first_kept(kept(4499), 5 * DAY), 11);
        assert_eq!(first_kept(kept(2500), 5 * DAY), 21);
    }

    #[test]
    fn the_newest_segment_is_never_given_up() {
        let nothing = Retention { age: 1, bytes: 1 };
        assert_eq!(first_kept(nothing, 50 * DAY), 41);
    }

    #[test]
    fn a_snapshot_is_due_by_bytes_contents_or_a_day() {
        let kept = Retention {
            age: 30 * DAY,
            bytes: 8000,
        };
        let newest = &segments(1)[0];
        let due = |bytes, contents, parts, millis| {
            let grown = Grown {
                bytes,
                contents,
                parts,
            };
            kept.is_due(newest, grown, Timestamp::default().plus(millis))
        };
        assert!(!due(999, 0, 0, 5) && due(1000, 0, 0, 5));
        assert!(!due(1999, 0, 2000, 5) && due(2000, 0, 2000, 5));
        assert!(!due(1, CONTENT_BYTES - 1, 0, 5) && due(1, CONTENT_BYTES, 0, 5));
        assert!(!due(1, 0, 0, DAY - 1) && due(1, 0, 0, DAY) && !due(0, 0, 0, DAY));
    }
}
