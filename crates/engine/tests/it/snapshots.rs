//! A restart from a snapshot, in the cases that few lives come to: it finds what all the records leave.

use engine::{Effects, Engine, Record};
use proto::{Answer, DataClass, Scope, Timestamp};

use crate::steps::{TO_X, config, read, reload};
use crate::world::{CONFIG, World};

/// All of the engine that a restart at `now` finds, and what it says.
fn restored(w: &World, now: u64, snapshot: &[Record], rest: &[Record]) -> String {
    let config = w.engine.config().clone();
    let parts = match snapshot {
        [] => Vec::new(),
        records => Engine::condense(config.clone(), [], records.to_vec()),
    };
    let now = Timestamp::from_millis(now).unwrap();
    let mut effects = Effects::new();
    let rest = rest.to_vec();
    let mut engine = Engine::restore(config, now, parts, rest, None, &mut effects).unwrap();
    engine.handle_timeout(now, &mut effects);
    format!("{effects:?} {engine:?}")
}

/// A restart at `now`, after any number of the records and from a snapshot of all of those.
#[track_caller]
fn snapshots_hold(w: &World, now: u64) {
    for end in 0..=w.records.len() {
        let records = &w.records[..end];
        let all = restored(w, now, &[], records);
        assert!(restored(w, now, records, &[]) == all, "{end} records");
    }
}

#[test]
fn a_clock_that_was_set_back_does_not_turn_a_snapshots_time_back() {
    let mut w = World::new();
    let (bot, files) = (w.connect("bot", 1), w.plain("files", 2));
    read(&mut w, bot, files, "s", 1, DataClass::Internal);
    snapshots_hold(&w, w.now - 3_600_000);
}

#[test]
fn a_no_that_has_no_end_yet_is_in_a_snapshot() {
    let mut w = World::new();
    let (bot, ann) = (w.plain("bot", 1), w.connect("ann", 3));
    w.call(bot, "ask-1", 1, "send", TO_X);
    let [request] = &w.asked(ann)[..] else {
        panic!("not asked")
    };
    w.vote(ann, request, Answer::Refuse, Scope::Once);
    snapshots_hold(&w, w.now);
}

#[test]
fn a_question_about_a_call_that_ran_before_a_restart_is_that_in_a_snapshot_too() {
    let mut w = World::new();
    let (bot, files) = (w.plain("bot", 1), w.plain("files", 2));
    w.call(bot, "ask-1", 1, "put", TO_X);
    assert_eq!(w.requests(files).len(), 1);
    w.restart(w.records.len());
    let asks = CONFIG.replace(r#"tools = ["send"]"#, r#"tools = ["send", "put"]"#);
    reload(&mut w, &asks);
    let (bot, ann) = (w.plain("bot", 1), w.connect("ann", 3));
    w.call(bot, "ask-1", 1, "put", TO_X);
    let [request] = &w.asked(ann)[..] else {
        panic!("not asked")
    };
    w.pass(1_000);
    w.vote(ann, request, Answer::Refuse, Scope::Once);
    snapshots_hold(&w, w.now);
}

#[test]
fn an_approval_that_lapsed_while_its_call_runs_says_who_is_told_after_a_restart_from_a_snapshot() {
    let mut w = World::new();
    let (bot, files) = (w.plain("bot", 1), w.plain("files", 2));
    let ann = w.connect("ann", 3);
    w.call(bot, "ask-1", 1, "send", TO_X);
    let [request] = &w.asked(ann)[..] else {
        panic!("not asked")
    };
    w.pass(599_000);
    w.vote(ann, request, Answer::Approve, Scope::Once);
    assert_eq!(w.requests(files).len(), 1);
    w.pass(2_000);
    w.call(bot, "s", 1, "log", "{}");
    snapshots_hold(&w, w.now);
}

#[test]
fn a_smaller_quota_holds_for_a_snapshots_answers() {
    let mut w = World::new();
    let (bot, files) = (w.plain("bot", 1), w.plain("files", 2));
    for call in 1..=4 {
        w.call(bot, "s", call, "log", "{}");
        let [(wire, _)] = w.requests(files)[..] else {
            panic!("no request")
        };
        w.result(files, wire, &"x".repeat(3_000), DataClass::Public);
    }
    let parts = Engine::condense(w.engine.config().clone(), [], w.records.clone());
    let small = config(&CONFIG.replace("stored_bytes = \"16KiB\"", "stored_bytes = \"8KiB\""));
    let now = Timestamp::from_millis(w.now).unwrap();
    let mut effects = Effects::new();
    let engine = Engine::restore(small, now, parts, [], None, &mut effects).unwrap();
    let stored = engine.usage(&"bot".try_into().unwrap()).stored_bytes;
    assert!((1..=8 * 1024).contains(&stored), "{stored}");
}
