//! What can be wrong with a store, in words for whoever is woken by it.

use std::path::PathBuf;

use rusqlite::{Error, ErrorCode};

/// Why the store cannot be opened, read or written. Nothing was acknowledged that it does not hold.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A later version has written it.
    #[error(
        "{} has layout {found}, and this version knows {known} at most: start the version that wrote it, or a later one",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its layout.
        found: i64,
        /// The latest that is known here.
        known: i64,
    },
    /// An earlier version has written it, and only a daemon leads it to the layout of today.
    #[error("{} has the older layout {found}: start rolebrokerd once, which leads it to this version's", path.display())]
    Older {
        /// The file.
        path: PathBuf,
        /// Its layout.
        found: i64,
    },
    /// It is a database of something else.
    #[error("{} is not a store of rolebroker: configure another state_dir, or move the file away", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// What it holds is not what was written.
    #[error(
        "{} is damaged or was changed at record {record}: {what}; put a backup back (rolebroker restore), or move the store's files and rolebroker.head away, \
         and every session begins anew at public and trusted",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first record that cannot be trusted.
        record: u64,
        /// What is wrong with it.
        what: String,
    },
    /// A fault of the broker's own: it skipped a record, or wrote before it had read them all.
    #[error("{} was to get another record than {record}, which is next: report this", path.display())]
    OutOfTurn {
        /// The file.
        path: PathBuf,
        /// The number that is next.
        record: u64,
    },
    /// The system or SQLite refused.
    #[error("cannot {doing} {}: {source}; {}", path.display(), next(source))]
    Sql {
        /// The file.
        path: PathBuf,
        /// What was to be done.
        doing: &'static str,
        /// Why it was not.
        source: Error,
    },
}

impl StoreError {
    /// Whether the file may be sound, and only could not be had at that moment.
    pub(crate) fn may_pass(&self) -> bool {
        let Self::Sql { source, .. } = self else {
            return false;
        };
        matches!(
            source.sqlite_error_code(),
            Some(
                ErrorCode::CannotOpen
                    | ErrorCode::DatabaseBusy
                    | ErrorCode::DatabaseLocked
                    | ErrorCode::OutOfMemory
            )
        )
    }
}

/// What whoever reads it can do.
fn next(error: &Error) -> &'static str {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "make room on its disk",
        Some(ErrorCode::ReadOnly) => {
            "let the broker's user write the file, on a file system that can be written"
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another program holds it, fuser says which: end that one"
        }
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            "put a backup back (rolebroker restore), or move the store's files and rolebroker.head away, and every session begins anew at public and trusted"
        }
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            "see that it is a file of the broker's user, and that its folder has room"
        }
        Some(ErrorCode::SystemIoFailure) => {
            "see whether its disk has room and is sound; the kernel's log says more"
        }
        _ => "report this",
    }
}
