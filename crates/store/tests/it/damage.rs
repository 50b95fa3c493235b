//! Files that a disk or a power cut left otherwise than they were written.
//!
//! Accepted: any error, or the first so many records just as they were written, and on them what is appended then. What is never accepted is another
//! record, a hole, or an answer or arguments gone whose time is not over. That the end is missing is told by the
//! head alone.

use std::path::Path;

use engine::Record;
use rusqlite::Connection;
use store::{FILE, Store, StoreError};
use tempfile::TempDir;

use crate::fixture::{
    KEEP, LITTLE, answered, asked, at, beside, empty, evicted, folder, late, made, many, more,
    numbered, opened, put, replayed, snapshot, sound, started, state,
};

const ROUNDS: u64 = 200;

/// Xorshift: which numbers come follows from the seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).unwrap()
    }
}

/// Both files as a process leaves them that was killed: a part in the database alone, a part in both, and the end in
/// `-wal` alone. Some answers are forgotten.
struct Left {
    records: Vec<Record>,
    files: [(String, Vec<u8>); 2],
    _open: (Store, Connection),
    _folder: TempDir,
}

fn left() -> Left {
    let folder = folder();
    let records = many(200);
    let mut store = Store::open(folder.path()).unwrap();
    let sql = beside(folder.path());
    for (turn, batch) in (0..).zip(records.chunks(20)) {
        store
            .append(numbered(turn * 20 + 1, batch.to_vec()), KEEP)
            .unwrap();
        if turn == 4 {
            store.forget(at(KEEP.answers + 50)).unwrap();
        }
        let checkpoint = match turn {
            5 => "PRAGMA wal_checkpoint(TRUNCATE)",
            8 => "PRAGMA wal_checkpoint(PASSIVE)",
            _ => continue,
        };
        sql.query_row(checkpoint, [], |_| Ok(())).unwrap();
    }
    let written = sound(folder.path());
    assert_eq!((written.len(), &written[3]), (200, &evicted(4, 4)));
    let read = |name: String| {
        let bytes = std::fs::read(folder.path().join(&name)).unwrap();
        assert!(bytes.len() > 10_000, "{name} has {} bytes", bytes.len());
        (name, bytes)
    };
    Left {
        records: written,
        files: [read(FILE.to_owned()), read(format!("{FILE}-wal"))],
        _open: (store, sql),
        _folder: folder,
    }
}

impl Left {
    fn put(&self, folder: &Path) {
        for (name, bytes) in &self.files {
            std::fs::write(folder.join(name), bytes).unwrap();
        }
    }

    /// Opens the files once one of them was damaged: a prefix, or an error. Says whether it was found.
    fn damaged(&self, which: usize, damage: impl FnOnce(&mut Vec<u8>), context: &str) -> bool {
        let folder = folder();
        self.put(folder.path());
        let (name, bytes) = &self.files[which];
        let mut bytes = bytes.clone();
        damage(&mut bytes);
        std::fs::write(folder.path().join(name), bytes).unwrap();
        let Ok((mut records, head)) = replayed(folder.path()) else {
            return true;
        };
        assert_eq!(records.len() as u64, head.count, "{context}");
        assert!(
            self.records.starts_with(&records),
            "{context}: not what was written"
        );
        let more = many(50);
        let Ok(()) = append(folder.path(), &more) else {
            return true;
        };
        records.extend(more);
        match replayed(folder.path()) {
            Ok((found, _)) => {
                assert!(found == records, "{context}: not what was appended");
                false
            }
            Err(_) => true,
        }
    }
}

/// Goes on where the store ends.
fn append(folder: &Path, more: &[Record]) -> Result<(), StoreError> {
    let mut store = Store::open(folder)?;
    let count: usize = store.replay(|_, records| records.count())?;
    store.append(numbered(count as u64 + 1, more.to_vec()), KEEP)
}

fn rounds(damage: impl Fn(&Left, &mut Numbers, &str) -> bool) {
    let left = left();
    let mut found = 0;
    for seed in [20_129, std::process::id().into()] {
        println!("seed {seed}");
        let mut numbers = Numbers(seed);
        for round in 0..ROUNDS / 2 {
            found += u64::from(damage(
                &left,
                &mut numbers,
                &format!("seed {seed}, round {round}"),
            ));
        }
    }
    println!("{found} of {ROUNDS} were errors");
}

#[test]
fn files_that_were_left_open_are_replayed_whole() {
    let left = left();
    let folder = folder();
    left.put(folder.path());
    assert_eq!(replayed(folder.path()).unwrap().0, left.records);
}

#[test]
fn a_changed_bit_gives_a_prefix_or_an_error() {
    rounds(|left, numbers, context| {
        let which = numbers.below(2);
        let place = numbers.below(left.files[which].1.len());
        let bit = 1 << numbers.below(8);
        let context = format!("{context}: file {which}, byte {place}, bit {bit}");
        left.damaged(which, |bytes| bytes[place] ^= bit, &context)
    });
}

#[test]
fn a_changed_byte_in_the_head_of_a_page_gives_a_prefix_or_an_error() {
    rounds(|left, numbers, context| {
        let pages = left.files[0].1.len() / 4096;
        let place = numbers.below(pages) * 4096 + numbers.below(120);
        let byte = u8::try_from(numbers.below(256)).unwrap();
        let context = format!("{context}: byte {place} is {byte}");
        left.damaged(0, |bytes| bytes[place] = byte, &context)
    });
}

#[test]
fn a_file_cut_short_gives_a_prefix_or_an_error() {
    rounds(|left, numbers, context| {
        let which = numbers.below(2);
        let length = numbers.below(left.files[which].1.len());
        let context = format!("{context}: file {which}, {length} bytes");
        left.damaged(which, |bytes| bytes.truncate(length), &context)
    });
}

#[test]
fn a_page_that_was_not_written_gives_a_prefix_or_an_error() {
    rounds(|left, numbers, context| {
        let which = numbers.below(2);
        let page = numbers.below(left.files[which].1.len() / 4096);
        let context = format!("{context}: file {which}, page {page}");
        left.damaged(
            which,
            |bytes| bytes[page * 4096..][..4096].fill(0),
            &context,
        )
    });
}

/// As [`Left`], of a store that has given up records, swept a part of them away, and written a snapshot more that
/// does not count.
struct GivenUp {
    records: Vec<Record>,
    /// What an auditor reads of it.
    texts: Vec<String>,
    files: [(String, Vec<u8>); 2],
    _open: (Store, Connection),
    _folder: TempDir,
}

/// Answers, of which later ones evict some, and questions that nobody answers, each over several pages or none.
fn some(turn: u64) -> Vec<Record> {
    let mut records = if turn == 0 {
        vec![opened("work", 1)]
    } else {
        vec![evicted(turn * 100 - 90, 10)]
    };
    records.extend((turn * 100..turn * 100 + 60).map(|number| {
        let content = "word ".repeat([1, 10, 200, 2_000][usize::try_from(number % 4).unwrap()]);
        match number % 5 {
            0 => asked(number, &content, 11, 1_000_000),
            1 => late(number, 12),
            _ => answered(number, &content, 13),
        }
    }));
    records
}

fn given_up() -> GivenUp {
    let folder = folder();
    let mut store = empty(folder.path());
    let sql = beside(folder.path());
    let mut records = Vec::new();
    for turn in 0..4 {
        let next = some(turn);
        more(&mut store, &next);
        records.extend(next);
        if turn == 3 {
            sql.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
                .unwrap();
        }
        records.push(snapshot(&mut store, folder.path(), LITTLE));
        // Of the last one not all is swept.
        for _ in 0..if turn == 3 { 3 } else { 20 } {
            store.sweep().unwrap();
        }
    }
    assert!(store.has_leftovers());
    let next = some(4);
    more(&mut store, &next);
    records.extend(next);
    put(&mut store, made(folder.path()), LITTLE);
    let texts = texts(folder.path()).unwrap();
    let read = |name: String| {
        let bytes = std::fs::read(folder.path().join(&name)).unwrap();
        assert!(bytes.len() > 50_000, "{name} has {} bytes", bytes.len());
        (name, bytes)
    };
    assert!(started(folder.path()).unwrap() == state(&records));
    GivenUp {
        records,
        texts,
        files: [read(FILE.to_owned()), read(format!("{FILE}-wal"))],
        _open: (store, sql),
        _folder: folder,
    }
}

fn texts(folder: &Path) -> Result<Vec<String>, StoreError> {
    Store::open(folder)?.read(|entries| entries.map(|entry| entry.text).collect())
}

impl GivenUp {
    /// Opens the files once one of them was damaged: the state as of some record that was written, or an error; and an
    /// auditor finds records that were, or an error. Says whether it was found.
    fn damaged(&self, which: usize, damage: impl FnOnce(&mut Vec<u8>), context: &str) -> bool {
        let folder = folder();
        for (name, bytes) in &self.files {
            std::fs::write(folder.path().join(name), bytes).unwrap();
        }
        let (name, bytes) = &self.files[which];
        let mut bytes = bytes.clone();
        damage(&mut bytes);
        std::fs::write(folder.path().join(name), bytes).unwrap();
        let read = texts(folder.path());
        if let Ok(read) = &read {
            let first = read
                .first()
                .and_then(|first| self.texts.iter().position(|it| it == first));
            // What the last snapshot gave up is there again where its end was lost.
            let whole = first.is_none_or(|first| self.texts[first..].starts_with(read));
            assert!(whole, "{context}: not what was written");
        }
        let (Ok(parts), Ok(end)) = (started(folder.path()), head(folder.path())) else {
            return true;
        };
        let known = &self.records[..end];
        assert!(parts == state(known), "{context}: another state");
        let next = [late(9, 90), answered(999, "more", 91)];
        if Store::open(folder.path()).is_err() {
            return true;
        }
        let after = (|| {
            let mut store = Store::open(folder.path())?;
            store.replay(|_, records| records.for_each(drop))?;
            store.append(numbered(end as u64 + 1, next.to_vec()), KEEP)?;
            while store.has_leftovers() {
                store.sweep()?;
            }
            drop(store);
            started(folder.path())
        })();
        let Ok(after) = after else { return true };
        let all: Vec<_> = known.iter().chain(&next).cloned().collect();
        assert!(after == state(&all), "{context}: another state after it");
        read.is_err()
    }
}

fn head(folder: &Path) -> Result<usize, StoreError> {
    Ok(usize::try_from(replayed(folder)?.1.count).unwrap())
}

#[test]
fn a_store_with_snapshots_that_is_damaged_in_any_way_gives_an_earlier_state_or_an_error() {
    let left = given_up();
    let mut found = 0;
    for seed in [20_130, std::process::id().into()] {
        println!("seed {seed}");
        let mut numbers = Numbers(seed);
        for round in 0..ROUNDS {
            let which = numbers.below(2);
            let length = left.files[which].1.len();
            let (kind, page) = (numbers.below(5), numbers.below(length / 4096));
            let (place, value) = (numbers.below(length), numbers.below(256));
            let context =
                format!("seed {seed}, round {round}: {kind} in {which}, {page}, {place}, {value}");
            let byte = u8::try_from(value).unwrap();
            let damage = |bytes: &mut Vec<u8>| match kind {
                0 => bytes[place] ^= 1 << (value % 8),
                1 => bytes[page * 4096 + place % 120] = byte,
                2 => bytes.truncate(place),
                3 => bytes[page * 4096..][..4096].fill(0),
                // What was to be written there came elsewhere.
                _ => bytes.copy_within(
                    page * 4096..page * 4096 + 4096,
                    place / 4096 % (length / 4096) * 4096,
                ),
            };
            found += u64::from(left.damaged(which, damage, &context));
        }
    }
    println!("{found} of {} were errors", 2 * ROUNDS);
}
