//! Snapshots: made on a thread of their own from what the file holds, written a few parts at a time between two
//! commits, and counted once a record says so.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use engine::{Engine, RecordId};
use policy::Config;
use proto::{Digest, Timestamp};
use rusqlite::{OptionalExtension as _, params};

use crate::chain::{Head, Sum};
use crate::error::StoreError;
use crate::retention::Retention;
use crate::row;
use crate::store::Store;

/// Parts that are written in one go.
const AT_ONCE: usize = 500;

/// The state as of a record, ready to be written.
#[derive(Debug)]
pub struct Made {
    /// The chain up to that record.
    head: Head,
    /// SHA-256 over the texts, each ended by a line feed.
    hash: Digest,
    /// Each with the record whose content it needs.
    parts: Vec<(String, Option<u64>)>,
    written: usize,
}

impl Made {
    /// Reads a store's file, and makes a snapshot of all that it holds. It is the same state that a restart under this
    /// configuration finds.
    ///
    /// # Errors
    /// [`StoreError`]: the file cannot be read, or is not what was written.
    pub fn of(file: &Path, config: Arc<Config>) -> Result<Self, StoreError> {
        let mut store = Store::open_read_only(file)?;
        let parts = store.replay(|parts, records| Engine::condense(config, parts, records))?;
        let mut sum = Sum::default();
        let texts = (|| {
            let mut until = store
                .sql
                .prepare("SELECT until FROM content WHERE id = ?")?;
            let mut texts = Vec::with_capacity(parts.len());
            for part in parts {
                let (text, record) = row::split_part(part, |record| {
                    let until = until.query_row([record], |row| row.get(0)).optional()?;
                    Ok(Timestamp::default().plus(until.unwrap_or(0)))
                })?;
                sum.add(&text);
                texts.push((text, record));
            }
            Ok(texts)
        })();
        let parts = texts.map_err(|source| store.failed("read", source))?;
        Ok(Self {
            head: store.head().clone(),
            hash: sum.hash(),
            parts,
            written: 0,
        })
    }
}

impl Store {
    /// The file that it is in.
    pub(crate) fn file(&self) -> &Path {
        &self.path
    }

    /// Whether a record says that this snapshot counts.
    pub(crate) fn counts(&self, of: u64) -> bool {
        self.at.snapshot == Some(of)
    }

    /// Whether enough was written, or enough time has passed, since the last one.
    pub fn is_snapshot_due(&self, retention: Retention, now: Timestamp) -> bool {
        let newest = self.at.segments.last();
        newest.is_some_and(|newest| retention.is_due(newest, self.at.grown, now))
    }

    /// Writes some of a snapshot's parts; once it has them all, what is to be recorded, so that it counts.
    ///
    /// # Errors
    /// [`StoreError`]: the store takes no more.
    pub fn put(
        &mut self,
        made: &mut Made,
        retention: Retention,
        now: Timestamp,
    ) -> Result<Option<engine::Snapshot>, StoreError> {
        self.try_put(made)
            .map_err(|source| self.failed("write", source))?;
        if made.written < made.parts.len() {
            return Ok(None);
        }
        let live = made.parts.iter().filter_map(|(_, record)| *record);
        self.sweep.live = Some(live.collect::<BTreeSet<u64>>());
        self.at.grown.parts = made.parts.iter().map(|(text, _)| text.len() as u64).sum();
        let segments = &self.at.segments;
        let first = retention.first_kept(segments, self.at.grown, now);
        let (begins, before) = first.map_or((1, Head::empty().hash), |first| {
            (first.begins, first.before.clone())
        });
        Ok(Some(engine::Snapshot {
            of: RecordId(made.head.count),
            hash: made.hash.clone(),
            begins: RecordId(begins),
            before,
        }))
    }

    fn try_put(&mut self, made: &mut Made) -> rusqlite::Result<()> {
        let of = made.head.count;
        let transaction = self.sql.transaction()?;
        let mut add =
            transaction.prepare("INSERT INTO part (of, n, record, text) VALUES (?, ?, ?, ?)")?;
        let rest = made.parts.iter().enumerate().skip(made.written);
        for (n, (text, record)) in rest.take(AT_ONCE) {
            add.execute(params![of, n, record, text])?;
            made.written += 1;
        }
        drop(add);
        if made.written == made.parts.len() {
            transaction.execute(
                "INSERT INTO snapshot (of, head, hash) VALUES (?, ?, ?)",
                params![of, made.head.hash.as_str(), made.hash.as_str()],
            )?;
        }
        transaction.commit()
    }
}
