//! What is taken away: forgotten contents, records that were given up, snapshots that count no more; a little at a
//! time, between two commits.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proto::Timestamp;
use rusqlite::{Connection, params};

use crate::error::StoreError;
use crate::retention::Segment;
use crate::row::Kind;
use crate::store::{BUSY, Store};

/// Contents that one look for those to forget goes over.
const LOOK: u64 = 20_000;
/// Bytes of contents that are taken away in one go, but for the last of them: each is overwritten.
const BYTES_AT_ONCE: u64 = 4 << 20;
/// Rows that are taken away in one go.
const AT_ONCE: u64 = 2_000;
/// Pages that are given back to the file system in one go.
const GIVEN_BACK: u32 = 1_000;

/// What is to be taken away.
#[derive(Debug, Default)]
pub(crate) struct Sweep {
    /// Contents up to this record were looked at for those whose time is over.
    looked: u64,
    /// Records whose contents the last snapshot needs.
    pub(crate) live: Option<BTreeSet<u64>>,
    step: Step,
    /// No fewer bytes of arguments than each role has.
    arguments: Option<BTreeMap<String, u64>>,
}

/// How far what a snapshot made room for is taken away.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Step {
    #[default]
    Parts,
    Records,
    /// Up to this record.
    Contents(u64),
    Done,
}

impl Sweep {
    /// A snapshot counts.
    pub(crate) fn begin(&mut self) {
        self.step = Step::Parts;
    }

    /// A content is written.
    pub(crate) fn add(&mut self, kind: Kind, role: &str, bytes: usize) {
        if let (Kind::Arguments | Kind::Asked, Some(arguments)) = (kind, &mut self.arguments) {
            match arguments.get_mut(role) {
                Some(held) => *held += bytes as u64,
                None => {
                    arguments.insert(role.to_owned(), bytes as u64);
                }
            }
        }
    }
}

impl Store {
    /// Whether there is something to take away at once. Before it was read nobody knows.
    pub fn has_leftovers(&self) -> bool {
        self.sweep.step != Step::Done && !self.at.segments.is_empty()
    }

    /// Takes some of what a snapshot made room for away.
    ///
    /// # Errors
    /// [`StoreError`]: the store takes no more.
    pub fn sweep(&mut self) -> Result<(), StoreError> {
        if !self.has_leftovers() {
            return Ok(());
        }
        let step = self
            .try_sweep()
            .map_err(|source| self.failed("write", source))?;
        self.sweep.step = step;
        if step == Step::Done {
            self.sweep.live = None;
            // What was asked about counts as arguments now.
            self.sweep.arguments = None;
        }
        Ok(())
    }

    fn try_sweep(&mut self) -> rusqlite::Result<Step> {
        let snapshot = self.at.snapshot;
        let first = Segment::first(&self.at.segments).count + 1;
        let next = match self.sweep.step {
            Step::Parts => {
                self.sql
                    .execute("DELETE FROM snapshot WHERE of IS NOT ?", [snapshot])?;
                let gone = self.sql.execute(
                    "DELETE FROM part WHERE (of, n) IN (SELECT of, n FROM part WHERE of < ifnull(?1, 0) OR of > ifnull(?1, -1) LIMIT ?2)",
                    params![snapshot, AT_ONCE],
                )?;
                if gone > 0 { Step::Parts } else { Step::Records }
            }
            Step::Records => {
                let gone = self.sql.execute(
                    "DELETE FROM record WHERE id IN (SELECT id FROM record WHERE id < ? ORDER BY id LIMIT ?)",
                    params![first, AT_ONCE],
                )?;
                if gone > 0 {
                    Step::Records
                } else {
                    Step::Contents(0)
                }
            }
            Step::Contents(from) => match window(&self.sql, from, None)? {
                Some(to) if from < snapshot.unwrap_or(0) => {
                    self.sweep_contents(from, to.min(snapshot.unwrap_or(0)), first)?;
                    Step::Contents(to)
                }
                _ => Step::Done,
            },
            Step::Done => Step::Done,
        };
        self.give_back()?;
        if next == Step::Done {
            self.empty_wal()?;
        }
        Ok(next)
    }

    /// Contents that no record that is kept, and no snapshot, has any more.
    fn sweep_contents(&mut self, from: u64, to: u64, first: u64) -> rusqlite::Result<()> {
        let transaction = self.sql.transaction()?;
        let sweep = &self.sweep;
        let is_dead = |id: &u64| sweep.live.as_ref().is_some_and(|live| !live.contains(id));
        transaction.execute(
            "DELETE FROM content WHERE id > ? AND id <= ? AND id < ? AND kind IN (?, ?)",
            params![from, to, first, Kind::Arguments as u8, Kind::Rules as u8],
        )?;
        let of_kind = |kind: Kind| {
            let mut ids = transaction
                .prepare("SELECT id FROM content WHERE id > ? AND id <= ? AND kind = ?")?;
            let ids = ids.query_map(params![from, to, kind as u8], |row| row.get(0))?;
            let ids: Vec<u64> = ids.collect::<rusqlite::Result<_>>()?;
            Ok::<_, rusqlite::Error>(ids.into_iter().filter(is_dead).collect::<Vec<_>>())
        };
        let mut delete = transaction.prepare("DELETE FROM content WHERE id = ?")?;
        let mut settle = transaction.prepare("UPDATE content SET kind = ? WHERE id = ?")?;
        for id in of_kind(Kind::Answer)? {
            delete.execute([id])?;
        }
        for id in of_kind(Kind::Asked)? {
            if id < first {
                delete.execute([id])?;
            } else {
                settle.execute(params![Kind::Arguments as u8, id])?;
            }
        }
        drop((delete, settle));
        transaction.commit()
    }

    /// Forgets contents whose time is over, among the next few, and gives their space back. Whether there were some: then
    /// there may be more.
    ///
    /// # Errors
    /// [`StoreError`]: the store takes no more.
    pub fn forget(&mut self, now: Timestamp) -> Result<bool, StoreError> {
        self.try_forget(now)
            .map_err(|source| self.failed("write", source))
    }

    fn try_forget(&mut self, now: Timestamp) -> rusqlite::Result<bool> {
        let mut from = self.sweep.looked;
        let mut to = window(&self.sql, from, Some(now))?;
        if to.is_none() && from > 0 {
            from = 0;
            to = window(&self.sql, from, Some(now))?;
        }
        self.sweep.looked = to.unwrap_or(0);
        let Some(to) = to else {
            self.give_back()?;
            return Ok(false);
        };
        let transaction = self.sql.transaction()?;
        let gone = transaction.execute(
            "DELETE FROM content WHERE id > ? AND id <= ? AND until < ?",
            params![from, to, now.millis()],
        )?;
        if gone > 0 {
            transaction.execute(
                "UPDATE forgotten SET before = max(before, ?)",
                [now.millis()],
            )?;
        }
        transaction.commit()?;
        self.give_back()?;
        if gone > 0 {
            self.empty_wal()?;
        }
        Ok(gone > 0)
    }

    /// Forgets the oldest arguments of roles that have more than their quota, some at a time. Whether there are more.
    ///
    /// # Errors
    /// [`StoreError`]: the store takes no more.
    pub fn outgrow(&mut self, quota: impl Fn(&str) -> u64) -> Result<bool, StoreError> {
        self.try_outgrow(quota)
            .map_err(|source| self.failed("write", source))
    }

    fn try_outgrow(&mut self, quota: impl Fn(&str) -> u64) -> rusqlite::Result<bool> {
        let over = |arguments: &BTreeMap<String, u64>| {
            arguments.iter().any(|(role, held)| *held > quota(role))
        };
        if self
            .sweep
            .arguments
            .as_ref()
            .is_some_and(|held| !over(held))
        {
            return Ok(false);
        }
        let mut held = arguments(&self.sql)?;
        if over(&held) {
            let transaction = self.sql.transaction()?;
            for (role, held) in held.iter_mut().filter(|(role, held)| **held > quota(role)) {
                // So much that it is not looked for again at once.
                let target = (quota(role) / 8 * 7).max(held.saturating_sub(BYTES_AT_ONCE));
                let mut ids = transaction.prepare(
                    "SELECT id, octet_length(text) FROM content WHERE kind = ? AND role = ? ORDER BY id",
                )?;
                let mut delete = transaction.prepare("DELETE FROM content WHERE id = ?")?;
                let mut rows = ids.query(params![Kind::Arguments as u8, role])?;
                while *held > target
                    && let Some(row) = rows.next()?
                {
                    delete.execute([row.get::<_, u64>(0)?])?;
                    *held -= row.get::<_, u64>(1)?;
                }
            }
            transaction.commit()?;
            self.empty_wal()?;
        }
        let more = over(&held);
        self.sweep.arguments = Some(held);
        self.give_back()?;
        Ok(more)
    }

    /// Gives free pages back to the file system.
    fn give_back(&self) -> rusqlite::Result<()> {
        // Each step gives one page back.
        let vacuum = format!("PRAGMA incremental_vacuum({GIVEN_BACK})");
        let mut vacuum = self.sql.prepare(&vacuum)?;
        let mut pages = vacuum.query([])?;
        while pages.next()?.is_some() {}
        Ok(())
    }

    /// What is forgotten is not in -wal either, unless somebody reads there just now: the next time, then.
    fn empty_wal(&self) -> rusqlite::Result<()> {
        self.sql.busy_timeout(Duration::ZERO)?;
        self.sql
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        self.sql.busy_timeout(BUSY)
    }
}

/// The last of the next few contents after one, few enough that those whose time is over by `now`, or all of them, can
/// be taken away in one go; `None`: there is none.
fn window(sql: &Connection, from: u64, now: Option<Timestamp>) -> rusqlite::Result<Option<u64>> {
    let mut next = sql.prepare(
        "SELECT id, iif(until < ifnull(?, until + 1), octet_length(text), 0) FROM content WHERE id > ? \
         ORDER BY id LIMIT ?",
    )?;
    let mut next = next.query(params![now.map(Timestamp::millis), from, LOOK])?;
    let (mut last, mut bytes) = (None, 0);
    while bytes < BYTES_AT_ONCE
        && let Some(row) = next.next()?
    {
        last = Some(row.get(0)?);
        bytes += row.get::<_, u64>(1)?;
    }
    Ok(last)
}

/// Bytes of arguments of each role.
fn arguments(sql: &Connection) -> rusqlite::Result<BTreeMap<String, u64>> {
    let mut sums = sql.prepare(
        "SELECT role, sum(octet_length(text)) FROM content WHERE kind = ? GROUP BY role",
    )?;
    let sums = sums.query_map([Kind::Arguments as u8], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?;
    sums.collect()
}
