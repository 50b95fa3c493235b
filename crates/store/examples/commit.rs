//! What a commit costs: `cargo run --release -p store --example commit`. The store against the least that durability
//! can cost, lines appended to a file and `fdatasync`, and against two other layouts. Each in turn, several times, in
//! one folder; what counts is the ratio.

// What goes wrong here is for whoever measures.
#![allow(clippy::expect_used)]

use std::fs::File;
use std::io::{Result, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use engine::{CallKey, Record, RecordId, SessionKey};
use proto::{CallId, Digest, Effects, GrantId, Label, RoleName, SessionId, Timestamp, ToolName};
use rusqlite::{Connection, params};
use store::{Keep, Store};

/// Calls that wait at once: each commit has one record of each.
const WAITING: u64 = 64;
const COMMITS: u64 = 400;
const TURNS: usize = 5;
const KEEP: Keep = Keep {
    answers: 86_400_000,
    arguments: 604_800_000,
};

/// The two records of a call: its dispatch, its answer with 200 bytes.
fn record(id: u64) -> Record {
    let call = CallKey {
        session: SessionKey {
            role: RoleName::new("bot").expect("a name"),
            session: SessionId::new(format!("s{}", id % 16)).expect("a name"),
        },
        call: CallId(id / 2),
    };
    let tool = ToolName::new("order").expect("a name");
    let fingerprint = Digest::from_bytes([7; 32]);
    let at = Timestamp::default();
    if id % 2 == 1 {
        Record::Dispatched {
            at,
            call,
            fingerprint,
            tool,
            effects: Effects::Once,
            grant: GrantId::new("orders").expect("a name"),
            spend: Vec::new(),
            approval: None,
            basis: None,
        }
    } else {
        Record::Answered {
            at,
            call,
            fingerprint,
            tool,
            msg: "x".repeat(200),
            label: Label::BOTTOM,
        }
    }
}

fn batches() -> impl Iterator<Item = Vec<(RecordId, Record)>> {
    (0..COMMITS).map(|commit| {
        let from = commit * WAITING + 1;
        (from..from + WAITING)
            .map(|id| (RecordId(id), record(id)))
            .collect()
    })
}

fn bare(folder: &Path) -> Result<()> {
    let mut file = File::create(folder.join("lines"))?;
    for batch in batches() {
        let mut lines = Vec::new();
        for (_, record) in batch {
            serde_json::to_writer(&mut lines, &record)?;
            lines.push(b'\n');
        }
        file.write_all(&lines)?;
        file.sync_data()?;
    }
    Ok(())
}

fn this(folder: &Path) {
    let mut store = Store::open(folder).expect("a store");
    for batch in batches() {
        store.append(batch, KEEP).expect("appends");
    }
}

/// The layout that was not taken: a row for each call, found by its name and changed in place.
fn indexed(folder: &Path) -> rusqlite::Result<()> {
    let mut sql = Connection::open(folder.join("indexed.db"))?;
    sql.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         CREATE TABLE call (role TEXT, session TEXT, call INTEGER, state TEXT, msg TEXT,
                            PRIMARY KEY (role, session, call)) WITHOUT ROWID;
         CREATE TABLE audit (id INTEGER PRIMARY KEY, at INTEGER, role TEXT, session TEXT, text TEXT);
         CREATE INDEX audit_at ON audit (at); CREATE INDEX audit_session ON audit (role, session);",
    )?;
    for batch in batches() {
        let transaction = sql.transaction()?;
        for (RecordId(id), record) in batch {
            let text = serde_json::to_string(&record).expect("JSON");
            let session = format!("s{}", id % 16);
            transaction.execute(
                "INSERT INTO call VALUES ('bot', ?1, ?2, 'sent', NULL)
                 ON CONFLICT DO UPDATE SET state = 'answered', msg = ?3",
                params![session, id / 2, text],
            )?;
            transaction.execute(
                "INSERT INTO audit VALUES (?1, 0, 'bot', ?2, ?3)",
                params![id, session, text],
            )?;
        }
        transaction.commit()?;
    }
    Ok(())
}

fn timed(work: impl FnOnce(&Path)) -> Duration {
    let folder = tempfile::tempdir_in(".").expect("a folder");
    let begun = Instant::now();
    work(folder.path());
    begun.elapsed()
}

fn main() {
    let mut ratios = [Vec::new(), Vec::new()];
    for _ in 0..TURNS {
        let least = timed(|folder| bare(folder).expect("writes"));
        let all = [
            timed(this),
            timed(|folder| indexed(folder).expect("writes")),
        ];
        for (ratios, time) in ratios.iter_mut().zip(all) {
            ratios.push(time.as_secs_f64() / least.as_secs_f64());
        }
    }
    println!(
        "{WAITING} records a commit, {COMMITS} commits, median of {TURNS}; bare fdatasync appends are 1"
    );
    for (name, mut ratios) in ["one appended table", "indexed tables"]
        .into_iter()
        .zip(ratios)
    {
        ratios.sort_by(f64::total_cmp);
        println!("{name:<20} {:.2}", ratios[TURNS / 2]);
    }
}
