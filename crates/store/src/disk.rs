//! Whose fault it is that a file cannot be read. SQLite calls it malformed also where the disk says EIO (its
//! extended codes and `sqlite3_system_errno` do not tell the two apart); reading it once more does.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

use rusqlite::{Error, ErrorCode, ffi};

/// The disk's error instead of SQLite's, where the database or its -wal cannot be read to the end. To be asked only
/// where the store is given up: closing a file that is read here gives up SQLite's locks on it.
pub(crate) fn blamed(database: &Path, error: Error) -> Error {
    let codes = [ErrorCode::DatabaseCorrupt, ErrorCode::NotADatabase];
    if !error
        .sqlite_error_code()
        .is_some_and(|code| codes.contains(&code))
    {
        return error;
    }
    let mut wal = database.as_os_str().to_owned();
    wal.push("-wal");
    match read(database).and_then(|()| read(Path::new(&wal))) {
        Ok(()) => error,
        Err(disk) => Error::SqliteFailure(
            ffi::Error::new(ffi::SQLITE_IOERR_READ),
            Some(format!("disk I/O error: {disk}")),
        ),
    }
}

/// Reads a file that need not be there.
fn read(file: &Path) -> io::Result<()> {
    match File::open(file) {
        Ok(mut file) => io::copy(&mut file, &mut io::sink()).map(drop),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corrupt() -> Error {
        Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CORRUPT), None)
    }

    #[test]
    fn what_can_be_read_is_damaged_and_what_cannot_is_the_disks_fault() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(blamed(file.path(), corrupt()), corrupt());
        // A folder cannot be read as a file is.
        let folder = tempfile::tempdir().unwrap();
        let error = blamed(folder.path(), corrupt());
        assert_eq!(error.sqlite_error_code(), Some(ErrorCode::SystemIoFailure));
        assert!(error.to_string().starts_with("disk I/O error"), "{error}");
    }
}
