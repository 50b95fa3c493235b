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

use crate::fixture::{KEEP, at, beside, evicted, folder, many, numbered, replayed, sound};

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
