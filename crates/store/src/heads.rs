//! Whether a head that was told before is still in the chain.

use std::str::FromStr;

use proto::Digest;
use rusqlite::OptionalExtension as _;

use crate::chain::Head;
use crate::error::StoreError;
use crate::store::Store;

impl Store {
    /// Whether the chain, which was read, had this head once. Of records that were given up since, nothing tells that
    /// it did not.
    ///
    /// # Errors
    /// [`StoreError`]: the file cannot be read.
    pub fn had(&self, head: &Head) -> Result<bool, StoreError> {
        let begins = self.begins();
        if head.count > self.head().count {
            return Ok(false);
        }
        if head.count <= begins.count {
            return Ok(head.count < begins.count || head.hash == begins.hash);
        }
        let hash: Option<String> = self
            .sql
            .query_row(
                "SELECT hash FROM record WHERE id = ?",
                [head.count],
                |row| row.get(0),
            )
            .optional()
            .map_err(|source| self.failed("read", source))?;
        Ok(hash.as_deref() == Some(head.hash.as_str()))
    }
}

/// A text that is no head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a head is the number of records, a colon, and a hash of 64 hexadecimal digits")]
pub struct HeadError;

/// `COUNT:HASH`.
impl FromStr for Head {
    type Err = HeadError;

    fn from_str(text: &str) -> Result<Self, HeadError> {
        let (count, hash) = text.split_once(':').ok_or(HeadError)?;
        Ok(Self {
            count: count.parse().map_err(|_| HeadError)?,
            hash: Digest::new(hash).map_err(|_| HeadError)?,
        })
    }
}
