//! The database: opened, and appended to.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use engine::{Record, RecordId};
use rusqlite::{Connection, OpenFlags, Transaction, params};

use crate::chain::Head;
use crate::disk;
use crate::error::StoreError;
use crate::retention::{Grown, Segment};
use crate::row::{self, Content, Keep};
use crate::schema::{self, Found, VERSION};
use crate::sweeping::Sweep;

/// The database in the state folder; SQLite has `-wal` and `-shm` beside it.
pub const FILE: &str = "rolebroker.db";
const WAL: &str = "rolebroker.db-wal";
/// How long another process may hold the file up.
pub(crate) const BUSY: Duration = Duration::from_secs(5);

/// An open store. One at a time has a file: the broker's lock on the state folder sees to that.
#[derive(Debug)]
pub struct Store {
    pub(crate) path: PathBuf,
    pub(crate) sql: Connection,
    pub(crate) at: Place,
    /// What is to be taken away.
    pub(crate) sweep: Sweep,
}

/// How far the record goes, as far as it was read or written.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// The end of the chain.
    pub(crate) head: Head,
    /// The last record in the snapshot that counts.
    pub(crate) snapshot: Option<u64>,
    /// What it is given up in, oldest first.
    pub(crate) segments: Arc<Vec<Segment>>,
    /// Since the newest of these began.
    pub(crate) grown: Grown,
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

    fn of(
        path: PathBuf,
        opened: rusqlite::Result<(Connection, Found)>,
    ) -> Result<Self, StoreError> {
        match opened {
            Ok((sql, Found::Ours)) => Ok(Self {
                path,
                sql,
                at: Place {
                    head: Head::empty(),
                    snapshot: None,
                    segments: Arc::default(),
                    grown: Grown::default(),
                },
                sweep: Sweep::default(),
            }),
            Ok((_, Found::Older(found))) => Err(StoreError::Older { path, found }),
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

    /// The end of the chain, as far as it was read or written.
    pub fn head(&self) -> &Head {
        &self.at.head
    }

    /// The chain before the first record that is kept, once it was read.
    pub fn begins(&self) -> Head {
        Segment::first(&self.at.segments)
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

    /// Appends records, all of them or none, and returns once they are durable.
    ///
    /// # Errors
    /// [`StoreError`]: none is durable, and the store takes no more.
    pub fn append(&mut self, batch: Vec<(RecordId, Record)>, keep: Keep) -> Result<(), StoreError> {
        let turns = (self.at.head.count + 1..).map(RecordId);
        if let Some((_, turn)) = batch.iter().zip(turns).find(|((id, _), turn)| id != turn) {
            return Err(StoreError::OutOfTurn {
                path: self.path.clone(),
                record: turn.0,
            });
        }
        let at = self
            .try_append(batch, keep)
            .map_err(|source| self.failed("write", source))?;
        if at.snapshot != self.at.snapshot {
            self.sweep.begin();
        }
        self.at = at;
        Ok(())
    }

    fn try_append(
        &mut self,
        batch: Vec<(RecordId, Record)>,
        keep: Keep,
    ) -> rusqlite::Result<Place> {
        let mut at = self.at.clone();
        let transaction = self.sql.transaction()?;
        let mut add =
            transaction.prepare("INSERT INTO record (id, text, hash) VALUES (?, ?, ?)")?;
        let mut beside = transaction
            .prepare("INSERT INTO content (id, until, kind, role, text) VALUES (?, ?, ?, ?, ?)")?;
        for (RecordId(id), record) in batch {
            at.before(&transaction, &record, id)?;
            let (text, content) = row::split(id, record, keep)
                .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
            at.head = at.head.and(&text);
            at.grown.bytes += text.len() as u64;
            add.execute(params![id, text, at.head.hash.as_str()])?;
            if let Some(Content {
                text,
                until,
                kind,
                role,
            }) = content
            {
                at.grown.contents += text.len() as u64;
                let role = role.as_ref().map_or("", |role| role.as_str());
                self.sweep.add(kind, role, text.len());
                beside.execute(params![id, until.millis(), kind as u8, role, text])?;
            }
        }
        drop((add, beside));
        transaction.commit()?;
        Ok(at)
    }

    pub(crate) fn failed(&self, doing: &'static str, source: rusqlite::Error) -> StoreError {
        StoreError::Sql {
            path: self.path.clone(),
            doing,
            source: disk::blamed(&self.path, source),
        }
    }
}

impl Place {
    /// What a record that comes next does to the segments.
    fn before(&mut self, sql: &Transaction<'_>, record: &Record, id: u64) -> rusqlite::Result<()> {
        if id == 1 {
            sql.execute("UPDATE segment SET at = ?", [record.at().millis()])?;
            for segment in Arc::make_mut(&mut self.segments) {
                segment.at = record.at();
            }
        }
        let Record::Snapshot { at, of, begins, .. } = record else {
            return Ok(());
        };
        let newest = Segment {
            begins: id,
            before: self.head.hash.clone(),
            at: *at,
            bytes: self.segments.last().map_or(0, |newest| newest.bytes) + self.grown.bytes,
        };
        let counted = sql.execute(
            "UPDATE snapshot SET record = ? WHERE of = ?",
            params![id, of.0],
        )?;
        // A start would look for it in vain.
        if counted == 0 {
            return Err(rusqlite::Error::StatementChangedRows(counted));
        }
        sql.execute(
            "INSERT INTO segment (begins, before, at, bytes) VALUES (?, ?, ?, ?)",
            params![
                newest.begins,
                newest.before.as_str(),
                newest.at.millis(),
                newest.bytes
            ],
        )?;
        sql.execute("DELETE FROM segment WHERE begins < ?", [begins.0])?;
        let segments = Arc::make_mut(&mut self.segments);
        segments.push(newest);
        segments.retain(|segment| segment.begins >= begins.0);
        self.snapshot = Some(of.0);
        self.grown.bytes = 0;
        self.grown.contents = 0;
        Ok(())
    }
}
