//! Restarts: from all records and from a snapshot and the records after it, which must come to the same.

use std::sync::Arc;

use engine::{Effects, Engine, Part, PutBack, Record};
use policy::Config;
use proto::Timestamp;

/// Every how many restarts both ways are taken.
const BOTH_WAYS: u64 = 3;

/// The engine that a restart finds, from a snapshot that the time picks.
pub(crate) fn restored(
    config: &Arc<Config>,
    now: Timestamp,
    records: &[Record],
    put_back: Option<&PutBack>,
    effects: &mut Effects,
) -> Engine {
    let records = read_back(records);
    let (parts, rest) = condensed(config, now, &records);
    if now.millis().is_multiple_of(BOTH_WAYS) {
        let one = settled(config, now, parts.clone(), rest.clone(), put_back);
        let other = settled(config, now, Vec::new(), records, put_back);
        assert!(
            one == other,
            "a snapshot and the records after it are not the state that all records are:\n{}",
            difference(&one, &other)
        );
    }
    restore(config, now, parts, rest, put_back, effects)
}

fn restore(
    config: &Arc<Config>,
    now: Timestamp,
    parts: Vec<Part>,
    records: Vec<Record>,
    put_back: Option<&PutBack>,
    effects: &mut Effects,
) -> Engine {
    match Engine::restore(
        config.clone(),
        now,
        parts,
        records,
        put_back.cloned(),
        effects,
    ) {
        Ok(engine) => engine,
        Err(why) => panic!("a configuration that was taken does not fit after a restart: {why}"),
    }
}

/// All of an engine, and what it said, once what has lapsed is over.
fn settled(
    config: &Arc<Config>,
    now: Timestamp,
    parts: Vec<Part>,
    records: Vec<Record>,
    put_back: Option<&PutBack>,
) -> String {
    let mut effects = Effects::new();
    let mut engine = restore(config, now, parts, records, put_back, &mut effects);
    engine.handle_timeout(now, &mut effects);
    format!("{effects:?} {engine:?}")
}

/// Where two long texts begin to differ.
fn difference(one: &str, other: &str) -> String {
    let same = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b);
    let at = same.count();
    let around = |text: &str| {
        let around = text.bytes().skip(at.saturating_sub(200)).take(400);
        String::from_utf8_lossy(&around.collect::<Vec<u8>>()).into_owned()
    };
    format!("{}\n{}", around(one), around(other))
}

/// A snapshot of a snapshot, at two records that the time picks, and the records after it: they are the
/// state that all records are.
fn condensed(config: &Arc<Config>, now: Timestamp, records: &[Record]) -> (Vec<Part>, Vec<Record>) {
    let condense = |parts: &[Part], records: &[Record]| {
        Engine::condense(config.clone(), parts.to_vec(), records.to_vec())
    };
    let pick = |most: usize| usize::try_from(now.millis()).unwrap_or(0) % (most + 1);
    let (old, rest) = records.split_at(pick(records.len()));
    let (newer, rest) = rest.split_at(pick(rest.len()));
    let parts = read_parts_back(&condense(&read_parts_back(&condense(&[], old)), newer));
    (parts, rest.to_vec())
}

/// Parts as a store gives them back.
fn read_parts_back(parts: &[Part]) -> Vec<Part> {
    let text = |part| serde_json::to_string(part).expect("a part can be written");
    let read = |text: String| serde_json::from_str(&text).expect("a part can be read back");
    let back: Vec<Part> = parts.iter().map(text).map(read).collect();
    assert_eq!(back, parts, "a part reads back as it was written");
    back
}

/// Records as a store gives them back: through their text.
fn read_back(records: &[Record]) -> Vec<Record> {
    let text = |record| serde_json::to_string(record).expect("a record can be written");
    let read = |text: String| serde_json::from_str(&text).expect("a record can be read back");
    let back: Vec<Record> = records.iter().map(text).map(read).collect();
    assert_eq!(back, records, "a record reads back as it was written");
    back
}
