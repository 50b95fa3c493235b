//! The simulator: many seeded runs of the engine in virtual time, among roles that are as wrong as
//! they can be, with crashes, and a model that says what must hold after every step.
//!
//! A violation prints its seed, the last things that happened, and how to run it again:
//! `RB_SEED=1234 cargo test -p e2e --test simulator -- --nocapture`.
//! `RB_LINES` shows more of what happened. `RB_SEEDS` sets how many seeds are run;
//! `RB_SOAK_SECONDS` runs fresh ones for so long.

#![expect(
    clippy::expect_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test program: a panic is its answer, and its peers look at a few kinds of many"
)]

mod config;
mod connect;
mod coverage;
mod history;
mod model;
mod past;
mod peers;
mod restart;
mod rng;
mod run;
mod seeds;
mod shell;
mod show;
mod store;
mod texts;
mod world;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::seeds::{Seeds, number, run_all};

/// Where the seeds begin that every gate runs.
const FIRST: u64 = 1;

#[test]
fn two_thousand_seeds_hold_every_invariant() {
    if let Some(seed) = number("RB_SEED") {
        return seeds::run_one_aloud(seed);
    }
    if let Some(seconds) = number("RB_SOAK_SECONDS") {
        return soak(seconds);
    }
    let count = number("RB_SEEDS").unwrap_or(2000);
    let coverage = run_all(Seeds::Count {
        first: FIRST,
        count,
    });
    for (name, times) in coverage.all() {
        println!("{name}: {times}");
    }
    let missed: Vec<_> = coverage
        .all()
        .into_iter()
        .filter(|(_, times)| *times == 0)
        .collect();
    assert!(
        count < 2000 || missed.is_empty(),
        "the simulation never reached {missed:?}"
    );
}

#[test]
fn the_same_seed_gives_the_same_effects() {
    for seed in (FIRST..).take(20) {
        let (one, two) = (run::run(seed, true), run::run(seed, true));
        assert_eq!(
            one.digest, two.digest,
            "seed {seed} runs differently the second time"
        );
    }
}

/// Runs fresh seeds for as long as is asked: `make soak`.
fn soak(seconds: u64) {
    let clock = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let first = clock.as_nanos() as u64;
    println!("fresh seeds from {first}");
    let coverage = run_all(Seeds::For {
        first,
        time: Duration::from_secs(seconds),
    });
    println!("{coverage:?}");
}
