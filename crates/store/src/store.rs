//! The database: opened, replayed, appended to.

use std::path::{Path, PathBuf};
use std::time::Duration;

use engine::{Record, RecordId};
use proto::{Digest, Timestamp};
use rusqlite::{Connection, ErrorCode, params};

use crate::chain::Head;
use crate::error::StoreError;
use crate::row::{self, Content, Keep};
use crate::schema::{self, Found, VERSION};

/// The database in the state folder; SQLite has `-wal` and `-shm` beside it.
pub const FILE: &str = "rolebroker.db";
/// How long another process may hold the file up.
const BUSY: Duration = Duration::from_secs(5);
/// Record numbers that one look for contents to forget goes over.
const LOOK: u64 = 20_000;
/// Pages that are given back to the file system in one go.
const GIVEN_BACK: u32 = 1_000;

/// An open store. One at a time has a file: the broker's lock on the state folder sees to that.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    sql: Connection,
    head: Head,
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
        let opened = (|| {
            let mut sql = Connection::open(&path)?;
            sql.busy_timeout(BUSY)?;
            let found = schema::migrate(&mut sql)?;
            Ok((sql, found))
        })();
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
                path,
                doing: "open",
                source,
            }),
        }
    }

    /// The end of the chain, as far as it was read or written.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Gives every record to `take`, in order, each checked against the chain before it is given.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] at the first that is not what was written: what was taken before it must not be used.
    pub fn replay<T>(
        &mut self,
        take: impl FnOnce(&mut dyn Iterator<Item = Record>) -> T,
    ) -> Result<T, StoreError> {
        let mut head = Head::empty();
        let mut wrong = None;
        let mut refused = None;
        let taken = (|| {
            let mut statement = self.sql.prepare(
                "SELECT record.id, record.text, hash, content.text \
                 FROM record LEFT JOIN content ON content.id = record.id ORDER BY record.id",
            )?;
            let mut rows = statement.query([])?;
            let mut records = std::iter::from_fn(|| {
                let next = rows.next().transpose()?.and_then(|row| {
                    Ok((
                        row.get::<_, u64>(0)?,
                        row.get::<_, String>(1)?,
                        row.get::<_, String>(2)?,
                        row.get::<_, Option<String>>(3)?,
                    ))
                });
                let read = match next {
                    Ok((id, text, hash, content)) => follow(&mut head, id, &text, &hash, content),
                    Err(error) if is_damage(&error) => Err(error.to_string()),
                    Err(error) => {
                        refused = Some(error);
                        return None;
                    }
                };
                read.map_err(|what| wrong = Some(what)).ok()
            })
            .fuse();
            Ok(take(&mut records))
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

    fn try_forget(&self, from: u64, to: u64, now: Timestamp) -> rusqlite::Result<()> {
        let gone = self.sql.execute(
            "DELETE FROM content WHERE id > ? AND id <= ? AND until < ?",
            params![from, to, now.millis()],
        )?;
        if gone > 0 {
            let vacuum = format!("PRAGMA incremental_vacuum({GIVEN_BACK})");
            self.sql.execute_batch(&vacuum)?;
        }
        Ok(())
    }

    fn failed(&self, doing: &'static str, source: rusqlite::Error) -> StoreError {
        StoreError::Sql {
            path: self.path.clone(),
            doing,
            source,
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
) -> Result<Record, String> {
    let next = head.and(text);
    if id != next.count {
        return Err(format!("the next one is record {id}"));
    }
    if Digest::new(hash).as_ref() != Ok(&next.hash) {
        return Err("its hash does not follow from its text and the hash before it".to_owned());
    }
    let record = row::join(id, text, content)?;
    *head = next;
    Ok(record)
}
