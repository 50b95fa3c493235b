//! The layout, and how an older one becomes it.

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension as _};

/// Says in the file's head whose it is: `rolb`.
pub(crate) const APPLICATION: i64 = 0x726f_6c62;
/// The latest layout.
pub(crate) const VERSION: i64 = 2;

/// What leads from each layout to the next, from an empty file on.
const STEPS: [&str; 2] = [
    "
    CREATE TABLE record (
        id   INTEGER PRIMARY KEY,
        text TEXT NOT NULL,
        hash TEXT NOT NULL
    ) STRICT;
    CREATE TABLE content (
        id    INTEGER PRIMARY KEY,
        until INTEGER NOT NULL,
        text  TEXT NOT NULL
    ) STRICT;
    -- Contents until before then may be gone.
    CREATE TABLE forgotten (before INTEGER NOT NULL) STRICT;
    INSERT INTO forgotten VALUES (0);
    ",
    "
    -- The short columns come first: who looks at them reads no long text.
    CREATE TABLE new_content (
        id    INTEGER PRIMARY KEY,
        until INTEGER NOT NULL,
        -- What it is: see `row::Kind`. Of layout 1 nobody knows: each is kept for its time.
        kind  INTEGER NOT NULL,
        -- Whose it is.
        role  TEXT NOT NULL,
        text  TEXT NOT NULL
    ) STRICT;
    INSERT INTO new_content SELECT id, until, 1, '', text FROM content;
    DROP TABLE content;
    ALTER TABLE new_content RENAME TO content;
    -- The state as of a record, once another record says so.
    CREATE TABLE snapshot (
        of     INTEGER PRIMARY KEY,
        head   TEXT NOT NULL,
        hash   TEXT NOT NULL,
        record INTEGER
    ) STRICT;
    CREATE TABLE part (
        of     INTEGER NOT NULL,
        n      INTEGER NOT NULL,
        record INTEGER,
        text   TEXT NOT NULL,
        PRIMARY KEY (of, n)
    ) STRICT, WITHOUT ROWID;
    -- What is given up as a whole, from the first record that is kept on.
    CREATE TABLE segment (
        begins INTEGER PRIMARY KEY,
        before TEXT NOT NULL,
        at     INTEGER NOT NULL,
        bytes  INTEGER NOT NULL
    ) STRICT;
    INSERT INTO segment VALUES (1, '0000000000000000000000000000000000000000000000000000000000000000', 0, 0);
    ",
];

/// What a file is.
pub(crate) enum Found {
    Ours,
    Older(i64),
    Newer(i64),
    Foreign,
}

fn number(sql: &Connection, name: &str) -> rusqlite::Result<i64> {
    sql.pragma_query_value(None, name, |row| row.get(0))
}

/// Looks whose file it is.
pub(crate) fn look(sql: &Connection) -> rusqlite::Result<Found> {
    let version = number(sql, "user_version")?;
    Ok(if number(sql, "application_id")? != APPLICATION {
        Found::Foreign
    } else if version > VERSION {
        Found::Newer(version)
    } else if version < VERSION {
        Found::Older(version)
    } else {
        Found::Ours
    })
}

/// Looks whose file it is, and leads it to the latest layout.
pub(crate) fn migrate(sql: &mut Connection) -> rusqlite::Result<Found> {
    // What is refused is not touched: nothing of another's -wal is moved into its file.
    sql.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    let version = number(sql, "user_version")?;
    let nothing = sql
        .query_row("SELECT 1 FROM sqlite_schema LIMIT 1", [], |_| Ok(()))
        .optional()?
        .is_none();
    let empty = nothing && version == 0 && number(sql, "application_id")? == 0;
    match look(sql)? {
        Found::Foreign if empty => {}
        Found::Ours | Found::Older(_) => {}
        other => return Ok(other),
    }
    sql.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    if empty {
        // Before the first table, or never: so that space can be given back.
        sql.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    }
    let mode: String = sql.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    debug_assert_eq!(mode, "wal");
    sql.pragma_update(None, "synchronous", "FULL")?;
    sql.pragma_update(None, "trusted_schema", false)?;
    // What is forgotten is overwritten.
    sql.pragma_update(None, "secure_delete", true)?;
    sql.pragma_update(None, "cell_size_check", true)?;
    let done = usize::try_from(version).unwrap_or_default();
    if done < STEPS.len() {
        let transaction = sql.transaction()?;
        for step in STEPS.iter().skip(done) {
            transaction.execute_batch(step)?;
        }
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
        transaction.commit()?;
    }
    Ok(Found::Ours)
}
