//! Records and snapshots, checked as they are read.

use std::sync::Arc;

use engine::{Part, Record};
use proto::{Digest, Timestamp};
use rusqlite::{ErrorCode, OptionalExtension as _, Rows};

use crate::chain::{Head, Sum};
use crate::disk;
use crate::error::StoreError;
use crate::retention::{Grown, Segment};
use crate::row::{self, Gone};
use crate::store::{Place, Store};

/// A record as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The chain up to it.
    pub head: Head,
    /// Its text in the chain: contents by their hashes.
    pub text: String,
    /// What a restart makes of it.
    pub record: Record,
}

/// Why reading ended.
enum Fault {
    /// At this record.
    Damaged(u64, String),
    /// SQLite could not give this record.
    Row(u64, rusqlite::Error),
    Sql(rusqlite::Error),
}

/// Where reading begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// With the snapshot that counts.
    Snapshot,
    /// With the first record that is kept.
    Beginning,
    /// After the last one that was read or written; with the first that is kept where none was.
    Here,
}

impl std::convert::From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

/// A snapshot of which a record says that it counts.
struct Counted {
    /// The chain up to the last record that is in it.
    head: Head,
    /// SHA-256 over its parts.
    hash: Digest,
    /// The record that says so.
    record: u64,
}

impl Store {
    /// Gives the snapshot that counts, if there is one, and every record after it to `take`, in order, each checked
    /// before it is given. What it does not take is checked too.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] at the first that is not what was written: what was taken before it must not be used.
    pub fn replay<T>(
        &mut self,
        take: impl FnOnce(&mut dyn Iterator<Item = Part>, &mut dyn Iterator<Item = Record>) -> T,
    ) -> Result<T, StoreError> {
        self.walk(From::Snapshot, |parts, entries| {
            take(parts, &mut entries.map(|entry| entry.record))
        })
    }

    /// Gives every record that is kept to `take`, as [`Store::replay`] does, with the texts that the chain is made of.
    ///
    /// # Errors
    /// As [`Store::replay`].
    pub fn read<T>(
        &mut self,
        take: impl FnOnce(&mut dyn Iterator<Item = Entry>) -> T,
    ) -> Result<T, StoreError> {
        self.walk(From::Beginning, |_, entries| take(entries))
    }

    /// Checks all that [`Store::replay`] would give.
    ///
    /// # Errors
    /// As [`Store::replay`].
    pub fn check(&mut self) -> Result<(), StoreError> {
        self.walk(From::Snapshot, |_, _| ())
    }

    pub(crate) fn walk<T>(
        &mut self,
        from: From,
        take: impl FnOnce(&mut Parts<'_>, &mut Entries<'_>) -> T,
    ) -> Result<T, StoreError> {
        match self.try_walk(from, take) {
            Ok((taken, at)) => {
                self.at = at;
                Ok(taken)
            }
            Err(Fault::Damaged(record, what)) => Err(StoreError::Damaged {
                path: self.path.clone(),
                record,
                what,
            }),
            Err(Fault::Row(record, source)) => {
                let source = disk::blamed(&self.path, source);
                if !is_damage(&source) {
                    return Err(self.failed("read", source));
                }
                Err(StoreError::Damaged {
                    path: self.path.clone(),
                    record,
                    what: source.to_string(),
                })
            }
            Err(Fault::Sql(source)) => Err(self.failed("read", source)),
        }
    }

    fn try_walk<T>(
        &self,
        from: From,
        take: impl FnOnce(&mut Parts<'_>, &mut Entries<'_>) -> T,
    ) -> Result<(T, Place), Fault> {
        // All of it as of one moment: a broker may write and forget meanwhile.
        let _moment = self.sql.unchecked_transaction()?;
        let first_row = |error| Fault::Row(1, error);
        let segments = Segment::all(&self.sql).map_err(first_row)?;
        let first = Segment::first(&segments);
        let from = match from {
            From::Here if self.at.segments.is_empty() => From::Beginning,
            other => other,
        };
        let counted = self.counted().map_err(first_row)?;
        let begin = counted.as_ref().filter(|_| from == From::Snapshot);
        let start = match (from, begin) {
            (From::Here, _) => self.at.head.clone(),
            (_, Some(counted)) => counted.head.clone(),
            (_, None) => first.clone(),
        };
        if start.count > first.count {
            self.is_in_chain(&start)?;
        } else if start != first {
            let what = format!("it and those up to record {} were given up", first.count);
            return Err(Fault::Damaged(start.count + 1, what));
        }
        for segment in segments.iter().skip(1) {
            self.is_in_chain(&segment.head())?;
        }
        let forgotten = self.forgotten().map_err(first_row)?;
        let mut parts = self.sql.prepare(
            "SELECT part.text, content.text FROM part LEFT JOIN content ON content.id = part.record \
             WHERE of = ? ORDER BY n",
        )?;
        let mut records = self.sql.prepare(
            "SELECT record.id, record.text, hash, content.text \
             FROM record LEFT JOIN content ON content.id = record.id WHERE record.id > ? ORDER BY record.id",
        )?;
        let mut parts = Parts {
            rows: parts.query([begin.map(|counted| counted.head.count)])?,
            sum: Sum::default(),
            bytes: 0,
            forgotten,
            at: start.count,
            fault: None,
        };
        let mut entries = Entries {
            rows: records.query([start.count])?,
            head: start,
            gone: Gone {
                before: forgotten,
                up_to: counted.as_ref().map_or(0, |counted| counted.head.count),
            },
            fault: None,
            snapshot: None,
            newest: Segment::newest(&segments),
            bytes: 0,
            contents: 0,
        };
        let taken = take(&mut parts, &mut entries);
        parts.by_ref().for_each(drop);
        entries.by_ref().for_each(drop);
        if let Some(fault) = parts.fault.take().or(entries.fault.take()) {
            return Err(fault);
        }
        if begin.is_some_and(|counted| parts.sum.hash() != counted.hash) {
            let what = "the snapshot of it is not what was written".to_owned();
            return Err(Fault::Damaged(parts.at, what));
        }
        if from != From::Here || entries.snapshot.is_some() {
            fits(&segments, counted.as_ref(), entries.snapshot.as_ref())?;
        }
        let next = entries.head.count + 1;
        if self.is_there("SELECT 1 FROM content WHERE id >= ?", next)? {
            let what = "its content is there, and the record is not".to_owned();
            return Err(Fault::Damaged(next, what));
        }
        if self.is_there("SELECT 1 FROM record WHERE id < ?", 1)? {
            let what = "a record comes before the first".to_owned();
            return Err(Fault::Damaged(1, what));
        }
        let place = Place {
            head: entries.head,
            snapshot: counted.map(|counted| counted.head.count),
            segments: Arc::new(segments),
            grown: Grown {
                bytes: entries.bytes,
                contents: entries.contents,
                parts: parts.bytes,
            },
        };
        Ok((taken, place))
    }

    fn counted(&self) -> rusqlite::Result<Option<Counted>> {
        let counted = self.sql.query_row(
            "SELECT of, head, hash, record FROM snapshot WHERE record IS NOT NULL ORDER BY of DESC LIMIT 1",
            [],
            |row| {
                Ok(Counted {
                    head: Head {
                        count: row.get(0)?,
                        hash: digest(row.get(1)?),
                    },
                    hash: digest(row.get(2)?),
                    record: row.get(3)?,
                })
            },
        );
        counted.optional()
    }

    /// Whether the record at which a snapshot was made, before which a segment begins, or that was read last, is still
    /// in the chain.
    fn is_in_chain(&self, head: &Head) -> Result<(), Fault> {
        let hash: Option<String> = self
            .sql
            .query_row(
                "SELECT hash FROM record WHERE id = ?",
                [head.count],
                |row| row.get(0),
            )
            .optional()?;
        if hash.as_deref() == Some(head.hash.as_str()) {
            return Ok(());
        }
        let what = "it is not there as it was".to_owned();
        Err(Fault::Damaged(head.count, what))
    }

    fn forgotten(&self) -> rusqlite::Result<Timestamp> {
        let before = self
            .sql
            .query_row("SELECT before FROM forgotten", [], |row| {
                row.get::<_, u64>(0)
            })?;
        Ok(Timestamp::default().plus(before))
    }

    fn is_there(&self, sql: &str, id: u64) -> rusqlite::Result<bool> {
        let found = self.sql.query_row(sql, [id], |_| Ok(())).optional()?;
        Ok(found.is_some())
    }
}

/// Whether where the record begins, and the snapshot that counts, are what the chain's last word on them says.
fn fits(
    segments: &[Segment],
    counted: Option<&Counted>,
    said: Option<&(u64, Record)>,
) -> Result<(), Fault> {
    let wrong = |record, what: &str| Err(Fault::Damaged(record, what.to_owned()));
    let first = Segment::first(segments);
    let newest = said.map_or(1, |(id, _)| *id);
    if segments.last().map(|segment| segment.begins) != Some(newest) {
        return wrong(
            newest,
            "the record does not say any more that a part of it begins here",
        );
    }
    match (said, counted) {
        (None, None) if first.count == 0 => Ok(()),
        (None, _) => wrong(
            first.count + 1,
            "no record says that those before it were given up",
        ),
        (
            Some((
                id,
                Record::Snapshot {
                    of,
                    hash,
                    begins,
                    before,
                    ..
                },
            )),
            counted,
        ) => {
            if (begins.0, before) != (first.count + 1, &first.hash) {
                return wrong(
                    first.count + 1,
                    "the record does not begin where it was given up last: records are missing before it",
                );
            }
            let same = |counted: &Counted| {
                (counted.record, counted.head.count, &counted.hash) == (*id, of.0, hash)
            };
            if counted.is_some_and(same) {
                Ok(())
            } else {
                wrong(*id, "the snapshot that it tells of is not there")
            }
        }
        (Some((id, _)), _) => wrong(*id, "it tells of no snapshot"),
    }
}

/// A hash as the file has it; one that is none equals none.
fn digest(text: String) -> Digest {
    Digest::new(text).unwrap_or_else(|_| Digest::from_bytes([0; 32]))
}

/// The parts of a snapshot, up to the first that is wrong.
pub(crate) struct Parts<'a> {
    rows: Rows<'a>,
    sum: Sum,
    bytes: u64,
    forgotten: Timestamp,
    at: u64,
    fault: Option<Fault>,
}

impl Parts<'_> {
    fn read(&mut self) -> Result<Option<Part>, Fault> {
        let wrong = |what| Fault::Damaged(self.at, what);
        let Some(row) = self
            .rows
            .next()
            .map_err(|error| Fault::Row(self.at, error))?
        else {
            return Ok(None);
        };
        let text = row.get::<_, String>(0);
        let text = text.map_err(|error| Fault::Row(self.at, error))?;
        let content = row.get::<_, Option<String>>(1);
        let content = content.map_err(|error| Fault::Row(self.at, error))?;
        self.sum.add(&text);
        self.bytes += text.len() as u64;
        let part = row::join_part(&text, content, self.forgotten).map_err(wrong)?;
        Ok(Some(part))
    }
}

impl Iterator for Parts<'_> {
    type Item = Part;

    fn next(&mut self) -> Option<Part> {
        if self.fault.is_some() {
            return None;
        }
        self.read().unwrap_or_else(|fault| {
            self.fault = Some(fault);
            None
        })
    }
}

/// Records in their order, up to the first that is wrong.
pub(crate) struct Entries<'a> {
    rows: Rows<'a>,
    head: Head,
    gone: Gone,
    fault: Option<Fault>,
    /// The last one that tells of a snapshot, and its number.
    snapshot: Option<(u64, Record)>,
    /// Where the newest segment begins.
    newest: u64,
    /// Bytes of texts since then.
    bytes: u64,
    /// Bytes of contents that were read.
    contents: u64,
}

impl Entries<'_> {
    fn read(&mut self) -> Result<Option<Entry>, Fault> {
        let at = self.head.count + 1;
        let Some(row) = self.rows.next().map_err(|error| Fault::Row(at, error))? else {
            return Ok(None);
        };
        let columns = (|| {
            Ok((
                row.get::<_, u64>(0)?,
                row.get::<_, String>(1)?,
                row.get::<_, String>(2)?,
                row.get::<_, Option<String>>(3)?,
            ))
        })();
        let (id, text, hash, content) = columns.map_err(|error| Fault::Row(at, error))?;
        self.contents += content.as_ref().map_or(0, String::len) as u64;
        if id >= self.newest {
            self.bytes += text.len() as u64;
        }
        let record = follow(&mut self.head, id, &text, &hash, content, self.gone)
            .map_err(|what| Fault::Damaged(at, what))?;
        if matches!(record, Record::Snapshot { .. }) {
            self.snapshot = Some((id, record.clone()));
        }
        Ok(Some(Entry {
            head: self.head.clone(),
            text,
            record,
        }))
    }
}

impl Iterator for Entries<'_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        if self.fault.is_some() {
            return None;
        }
        self.read().unwrap_or_else(|fault| {
            self.fault = Some(fault);
            None
        })
    }
}

/// Whether what was read is wrong, and not the reading.
fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        None | Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    )
}

/// The record of a row, if it is the one that follows.
fn follow(
    head: &mut Head,
    id: u64,
    text: &str,
    hash: &str,
    content: Option<String>,
    gone: Gone,
) -> Result<Record, String> {
    let next = head.and(text);
    if id != next.count {
        return Err(format!("the next one is record {id}"));
    }
    if Digest::new(hash).as_ref() != Ok(&next.hash) {
        return Err("its hash does not follow from its text and the hash before it".to_owned());
    }
    let record = row::join(id, text, content, gone)?;
    *head = next;
    Ok(record)
}
