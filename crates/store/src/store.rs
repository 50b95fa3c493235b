//! The database: opened, replayed, appended to.

use std::path::{Path, PathBuf};
use std::time::Duration;

use engine::{Record, RecordId};
use proto::{Digest, Timestamp};
use rusqlite::{Connection, ErrorCode, OpenFlags, params};

use crate::chain::Head;
use crate::disk;
use crate::error::StoreError;
use crate::row::{self, Content, Keep};
use crate::schema::{self, Found, VERSION};

/// The database in the state folder; SQLite has `-wal` and `-shm` beside it.
pub const FILE: &str = "rolebroker.db";
const WAL: &str = "rolebroker.db-wal";
/// How long another process may hold the file up.
const BUSY: Duration = Duration::from_secs(5);
/// Record numbers that one look for contents to forget goes over.
const LOOK: u64 = 20_000;
/// Pages that are given back to the file system in one go.
const GIVEN_BACK: u32 = 1_000;

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

/// An open store. One at a time has a file: the broker's lock on the state folder sees to that.
#[derive(Debug)]
pub struct Store {
    pub(crate) path: PathBuf,
    pub(crate) sql: Connection,
    pub(crate) head: Head,
    /// Contents up to this record were looked at.
    looked: u64,
}

impl Store {
    /// Opens the store in a folder, and makes it if there is none. What it holds is checked by [`Store::replay`].
    ///
    /// # Errors
    /// [`StoreError`]: it cannot be had, or is not one that this version may write.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join(FILE);
        let size = |name: &str| std::fs::metadata(folder.join(name)).map_or(0, |it| it.len());
        // SQLite would take it for new, and throw the records in its -wal away.
        if size(FILE) == 0 && size(WAL) > 0 {
            return Err(StoreError::Damaged {
                path,
                record: 1,
                what: format!("it is empty or gone, and {WAL} is not"),
            });
        }
        let opened = (|| {
            let mut sql = Connection::open(&path)?;
            sql.busy_timeout(BUSY)?;
            let found = schema::migrate(&mut sql)?;
            Ok((sql, found))
        })();
        Self::of(path, opened)
    }

    /// The end of the chain, as far as it was read or written.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Opens a store's file, or a copy of it, for an auditor, also while a broker writes to it. No record is changed.
    ///
    /// # Errors
    /// [`StoreError`]: there is none, or it is not one that this version can read.
    pub fn open_read_only(file: &Path) -> Result<Self, StoreError> {
        let path = file.to_owned();
        let opened = (|| {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let sql = Connection::open_with_flags(&path, flags)?;
            sql.busy_timeout(BUSY)?;
            let found = schema::look(&sql)?;
            Ok((sql, found))
        })();
        Self::of(path, opened)
    }

    /// Copies the store as it is at this moment into an empty file, also while a broker writes to it.
    ///
    /// # Errors
    /// [`StoreError`]: what is in the file then is no copy.
    pub fn copy_into(&self, file: &str) -> Result<(), StoreError> {
        self.sql
            .execute("VACUUM INTO ?", [file])
            .map(drop)
            .map_err(|source| self.failed("copy", source))
    }

    fn of(
        path: PathBuf,
        opened: rusqlite::Result<(Connection, Found)>,
    ) -> Result<Self, StoreError> {
        match opened {
            Ok((sql, Found::Ours)) => Ok(Self {
                path,
                sql,
                head: Head::empty(),
                looked: 0,
            }),
            Ok((_, Found::Newer(found))) => Err(StoreError::Newer {
                path,
                found,
                known: VERSION,
            }),
            Ok((_, Found::Foreign)) => Err(StoreError::Foreign { path }),
            Err(source) => Err(StoreError::Sql {
                source: disk::blamed(&path, source),
                path,
                doing: "open",
            }),
        }
    }

    /// Gives every record to `take`, in order, each checked against the chain before it is given. What it does not
    /// take is checked too.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] at the first that is not what was written: what was taken before it must not be used.
    pub fn replay<T>(
        &mut self,
        take: impl FnOnce(&mut dyn Iterator<Item = Record>) -> T,
    ) -> Result<T, StoreError> {
        self.read(|entries| take(&mut entries.map(|entry| entry.record)))
    }

    /// As [`Store::replay`], with the texts that the chain is made of.
    ///
    /// # Errors
    /// As [`Store::replay`].
    pub fn read<T>(
        &mut self,
        take: impl FnOnce(&mut dyn Iterator<Item = Entry>) -> T,
    ) -> Result<T, StoreError> {
        self.read_after(Head::empty(), take)
    }

    /// As [`Store::read`], but only what comes after `head`.
    pub(crate) fn read_after<T>(
        &mut self,
        mut head: Head,
        take: impl FnOnce(&mut dyn Iterator<Item = Entry>) -> T,
    ) -> Result<T, StoreError> {
        // A row before the first one is not overlooked.
        let from = match head.count {
            0 => i64::MIN,
            count => i64::try_from(count).map_or(i64::MAX, |count| count.saturating_add(1)),
        };
        let mut wrong = None;
        let mut refused = None;
        let taken = (|| {
            // All of it as of one moment: a broker may write and forget meanwhile.
            let _moment = self.sql.unchecked_transaction()?;
            let forgotten = self.forgotten()?;
            let mut statement = self.sql.prepare(
                "SELECT record.id, record.text, hash, content.text \
                 FROM record LEFT JOIN content ON content.id = record.id \
                 WHERE record.id >= ? ORDER BY record.id",
            )?;
            let mut rows = statement.query([from])?;
            let mut records = std::iter::from_fn(|| {
                let next = rows.next().transpose()?.and_then(|row| {
                    Ok((
                        row.get::<_, u64>(0)?,
                        row.get::<_, String>(1)?,
                        row.get::<_, String>(2)?,
                        row.get::<_, Option<String>>(3)?,
                    ))
                });
                let read = match next.map_err(|error| disk::blamed(&self.path, error)) {
                    Ok((id, text, hash, content)) => {
                        follow(&mut head, id, &text, &hash, content, forgotten).map(|record| {
                            let head = head.clone();
                            Entry { head, text, record }
                        })
                    }
                    Err(error) if is_damage(&error) => Err(error.to_string()),
                    Err(error) => {
                        refused = Some(error);
                        return None;
                    }
                };
                read.map_err(|what| wrong = Some(what)).ok()
            })
            .fuse();
            let taken = take(&mut records);
            records.for_each(drop);
            if wrong.is_none() && refused.is_none() && self.content_after(head.count)? {
                wrong = Some("its content is there, and the record is not".to_owned());
            }
            Ok(taken)
        })();
        let taken = taken.map_err(|source| self.failed("read", source))?;
        if let Some(source) = refused {
            return Err(self.failed("read", source));
        }
        if let Some(what) = wrong {
            return Err(StoreError::Damaged {
                path: self.path.clone(),
                record: head.count + 1,
                what,
            });
        }
        self.head = head;
        Ok(taken)
    }

    fn forgotten(&self) -> rusqlite::Result<Timestamp> {
        let before = self
            .sql
            .query_row("SELECT before FROM forgotten", [], |row| {
                row.get::<_, u64>(0)
            })?;
        Ok(Timestamp::default().plus(before))
    }

    fn content_after(&self, id: u64) -> rusqlite::Result<bool> {
        self.sql.query_row(
            "SELECT EXISTS (SELECT 1 FROM content WHERE id > ?)",
            [id],
            |row| row.get(0),
        )
    }

    /// Appends records, all of them or none, and returns once they are durable.
    ///
    /// # Errors
    /// [`StoreError`]: none is durable, and the store takes no more.
    pub fn append(&mut self, batch: Vec<(RecordId, Record)>, keep: Keep) -> Result<(), StoreError> {
        let turns = (self.head.count + 1..).map(RecordId);
        if let Some((_, turn)) = batch.iter().zip(turns).find(|((id, _), turn)| id != turn) {
            return Err(StoreError::OutOfTurn {
                path: self.path.clone(),
                record: turn.0,
            });
        }
        let head = self
            .try_append(batch, keep)
            .map_err(|source| self.failed("write", source))?;
        self.head = head;
        Ok(())
    }

    fn try_append(&mut self, batch: Vec<(RecordId, Record)>, keep: Keep) -> rusqlite::Result<Head> {
        let mut head = self.head.clone();
        let transaction = self.sql.transaction()?;
        let mut add =
            transaction.prepare("INSERT INTO record (id, text, hash) VALUES (?, ?, ?)")?;
        let mut beside =
            transaction.prepare("INSERT INTO content (id, until, text) VALUES (?, ?, ?)")?;
        for (RecordId(id), record) in batch {
            let (text, content) = row::split(id, record, keep)
                .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
            head = head.and(&text);
            add.execute(params![id, text, head.hash.as_str()])?;
            if let Some(Content { text, until }) = content {
                beside.execute(params![id, until.millis(), text])?;
            }
        }
        drop((add, beside));
        transaction.commit()?;
        Ok(head)
    }

    /// Forgets contents whose time is over, among the next few records, and gives their space back.
    ///
    /// # Errors
    /// [`StoreError`]: the store takes no more.
    pub fn forget(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let from = self.looked;
        let to = from + LOOK;
        self.looked = if to >= self.head.count { 0 } else { to };
        self.try_forget(from, to, now)
            .map_err(|source| self.failed("write", source))
    }

    fn try_forget(&mut self, from: u64, to: u64, now: Timestamp) -> rusqlite::Result<()> {
        let transaction = self.sql.transaction()?;
        let gone = transaction.execute(
            "DELETE FROM content WHERE id > ? AND id <= ? AND until < ?",
            params![from, to, now.millis()],
        )?;
        if gone > 0 {
            transaction.execute(
                "UPDATE forgotten SET before = max(before, ?)",
                [now.millis()],
            )?;
        }
        transaction.commit()?;
        // Each step gives one page back.
        let vacuum = format!("PRAGMA incremental_vacuum({GIVEN_BACK})");
        let mut vacuum = self.sql.prepare(&vacuum)?;
        let mut pages = vacuum.query([])?;
        while pages.next()?.is_some() {}
        if gone > 0 {
            // Nor is it in -wal, unless somebody reads there just now: the next time, then.
            self.sql.busy_timeout(Duration::ZERO)?;
            self.sql
                .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
            self.sql.busy_timeout(BUSY)?;
        }
        Ok(())
    }

    pub(crate) fn failed(&self, doing: &'static str, source: rusqlite::Error) -> StoreError {
        StoreError::Sql {
            path: self.path.clone(),
            doing,
            source: disk::blamed(&self.path, source),
        }
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
    forgotten: Timestamp,
) -> Result<Record, String> {
    let next = head.and(text);
    if id != next.count {
        return Err(format!("the next one is record {id}"));
    }
    if Digest::new(hash).as_ref() != Ok(&next.hash) {
        return Err("its hash does not follow from its text and the hash before it".to_owned());
    }
    let record = row::join(id, text, content, forgotten)?;
    *head = next;
    Ok(record)
}
