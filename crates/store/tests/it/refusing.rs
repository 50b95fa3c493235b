//! A file that is not this version's store is left as it is.

use std::path::Path;

use rusqlite::Connection;
use store::{FILE, Store, StoreError};

use crate::fixture::{beside, database, filled, folder, many, sound};

/// Every file in a folder and what is in it, SQLite's shared memory aside.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.display().to_string(), std::fs::read(path).unwrap()))
        .filter(|(path, bytes)| !path.ends_with("-shm") && !bytes.is_empty())
        .collect();
    files.sort();
    files
}

/// Why it is not opened; that nothing was done to it.
fn refused(folder: &Path) -> StoreError {
    let before = files(folder);
    let error = Store::open(folder).unwrap_err();
    assert!(files(folder) == before, "touched: {error}");
    error
}

/// As a process leaves the files that was killed: what was written last is in `-wal`.
fn killed(folder: &Path, _open: &Connection) -> tempfile::TempDir {
    let left = crate::fixture::folder();
    let wal = |folder: &Path| folder.join(format!("{}-wal", store::FILE));
    std::fs::copy(database(folder), database(left.path())).unwrap();
    std::fs::copy(wal(folder), wal(left.path())).unwrap();
    left
}

#[test]
fn a_newer_layout_is_refused_and_untouched() {
    let folder = folder();
    filled(folder.path(), &many(10));
    let sql = beside(folder.path());
    sql.execute_batch("PRAGMA user_version = 1000").unwrap();
    drop(sql);
    let error = refused(folder.path());
    assert!(
        matches!(error, StoreError::Newer { found: 1000, .. }),
        "{error}"
    );
}

#[test]
fn a_newer_layout_that_was_not_closed_is_refused_and_untouched() {
    let folder = folder();
    filled(folder.path(), &many(10));
    let sql = beside(folder.path());
    sql.execute_batch("PRAGMA user_version = 1000").unwrap();
    let left = killed(folder.path(), &sql);
    let error = refused(left.path());
    assert!(
        matches!(error, StoreError::Newer { found: 1000, .. }),
        "{error}"
    );
}

#[test]
fn a_database_of_something_else_is_refused_and_untouched() {
    let folder = folder();
    beside(folder.path())
        .execute_batch("CREATE TABLE record (id INTEGER PRIMARY KEY, text TEXT, hash TEXT)")
        .unwrap();
    let error = refused(folder.path());
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
}

#[test]
fn a_database_of_something_else_that_was_not_closed_is_refused_and_untouched() {
    let folder = folder();
    let sql = beside(folder.path());
    sql.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE other (id INTEGER)")
        .unwrap();
    let left = killed(folder.path(), &sql);
    let error = refused(left.path());
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
}

#[test]
fn an_empty_database_that_says_whose_it_is_is_refused_and_untouched() {
    let folder = folder();
    beside(folder.path())
        .execute_batch("PRAGMA application_id = 7")
        .unwrap();
    let error = refused(folder.path());
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
}

#[test]
fn a_file_that_is_no_database_is_refused_and_untouched() {
    for text in [
        "hello",
        &"no database at all\n".repeat(1000),
        &"\0".repeat(4096),
    ] {
        let folder = folder();
        std::fs::write(database(folder.path()), text).unwrap();
        let error = refused(folder.path());
        assert!(matches!(error, StoreError::Sql { .. }), "{error}");
    }
}

#[test]
fn an_empty_file_is_a_new_store() {
    let folder = folder();
    std::fs::write(database(folder.path()), "").unwrap();
    filled(folder.path(), &many(3));
    assert_eq!(sound(folder.path()), many(3));
}

#[test]
fn a_store_that_was_not_made_to_its_end_is_a_new_one() {
    let folder = folder();
    beside(folder.path())
        .execute_batch("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL")
        .unwrap();
    assert!(database(folder.path()).metadata().unwrap().len() > 0);
    filled(folder.path(), &many(3));
    assert_eq!(sound(folder.path()), many(3));
}

#[test]
fn a_folder_that_is_not_there_is_an_error() {
    let folder = folder();
    let error = Store::open(&folder.path().join("none")).unwrap_err();
    assert!(
        matches!(error, StoreError::Sql { doing: "open", .. }),
        "{error}"
    );
}

#[test]
fn a_file_that_is_empty_or_gone_beside_its_wal_is_damaged_and_untouched() {
    for gone in [false, true] {
        let folder = folder();
        // Not closed: the records are in -wal.
        let store = filled(folder.path(), &many(5));
        let live = crate::fixture::folder();
        for name in [FILE, "rolebroker.db-wal"] {
            std::fs::copy(folder.path().join(name), live.path().join(name)).unwrap();
        }
        drop(store);
        let file = live.path().join(FILE);
        if gone {
            std::fs::remove_file(&file).unwrap();
        } else {
            std::fs::write(&file, "").unwrap();
        }
        let before = std::fs::read(live.path().join("rolebroker.db-wal")).unwrap();
        let refused = Store::open(live.path());
        assert!(matches!(
            refused,
            Err(StoreError::Damaged { record: 1, .. })
        ));
        assert!(std::fs::read(live.path().join("rolebroker.db-wal")).unwrap() == before);
    }
}
