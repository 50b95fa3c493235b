//! Going on where an earlier reading ended, while a broker writes.

use rusqlite::OptionalExtension as _;

use crate::error::StoreError;
use crate::store::{Entry, Store};

impl Store {
    /// A number that changes when another process commits something. To ask for it costs next to nothing.
    ///
    /// # Errors
    /// [`StoreError`]: the file cannot be read.
    pub fn version(&self) -> Result<i64, StoreError> {
        self.sql
            .pragma_query_value(None, "data_version", |row| row.get(0))
            .map_err(|source| self.failed("read", source))
    }

    /// As [`Store::read`], but only what was appended since it was read last. What is seen is durable: SQLite shows a
    /// transaction to others only once it is.
    ///
    /// # Errors
    /// As [`Store::read`]; also where the record that was read last is not there any more as it was.
    pub fn read_on<T>(
        &mut self,
        take: impl FnOnce(&mut dyn Iterator<Item = Entry>) -> T,
    ) -> Result<T, StoreError> {
        let head = self.head.clone();
        let held = self
            .sql
            .query_row(
                "SELECT hash FROM record WHERE id = ?",
                [head.count],
                |row| row.get::<_, String>(0),
            )
            .optional()
            .map_err(|source| self.failed("read", source))?;
        if head.count > 0 && held.as_deref() != Some(head.hash.as_str()) {
            return Err(StoreError::Damaged {
                path: self.path.clone(),
                record: head.count,
                what: "it was read before, and is gone or another one now".to_owned(),
            });
        }
        self.read_after(head, take)
    }
}
