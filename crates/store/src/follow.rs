//! Going on where an earlier reading ended, while a broker writes.

use crate::error::StoreError;
use crate::reading::{Entry, From};
use crate::store::Store;

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
    /// As [`Store::read`]; also where the record that was read last is not there any more as it was, or
    /// those after it were given up.
    pub fn read_on<T>(
        &mut self,
        take: impl FnOnce(&mut dyn Iterator<Item = Entry>) -> T,
    ) -> Result<T, StoreError> {
        self.walk(From::Here, |_, entries| take(entries))
    }
}
