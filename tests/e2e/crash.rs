//! The daemon killed while agents, runners and approvers are at work, and started again in the same place: what was
//! promised before holds afterwards. `RB_CRASH_ROUNDS` kills it more often; `RB_CRASH_SEED` repeats the choices of a
//! run, but not its times.

mod load;
mod story;
mod wire;

use std::collections::BTreeMap;

use crate::harness::{Place, seed_of};
use story::{Moment, Story};

const ROUNDS: u64 = 30;
/// Kinds of promises that come to be tested at least: see [`Story::held`]. Records are given up in few places.
const KINDS: usize = 7;
/// So often is the daemon killed in one place.
const LIVES: u64 = 10;

/// A tool whose runner says more of its result than the declaration does; one whose runner is often away.
const TOOLS: &str = "\n[[tool]]\nname = \"page\"\nrunner = \"files\"\nclass = \"public\"\nuntrusted = false\n\
    effects = \"read\"\negress = false\n\n[[grant]]\nid = \"page\"\nroles = [\"*\"]\nsessions = [\"*\"]\n\
    tools = [\"page\"]\neffect = \"allow\"\n\n\
    [[tool]]\nname = \"errand\"\nrunner = \"echo\"\nclass = \"public\"\nuntrusted = false\neffects = \"once\"\n\
    egress = false\n\n[[grant]]\nid = \"errand\"\nroles = [\"*\"]\nsessions = [\"*\"]\ntools = [\"errand\"]\n\
    effect = \"ask\"\nuntrusted = \"ask\"\nmax_class = \"secret\"\n";

#[test]
fn what_was_promised_before_a_crash_holds_after_it() {
    let rounds = std::env::var("RB_CRASH_ROUNDS").ok();
    let rounds = rounds.map_or(ROUNDS, |rounds| rounds.parse().expect("a number"));
    let mut seed = seed_of("RB_CRASH_SEED");
    let mut left = rounds;
    let mut held: BTreeMap<_, u64> = BTreeMap::new();
    while left > 0 {
        let lives = left.min(LIVES);
        eprintln!("{left} rounds left; from here RB_CRASH_SEED={seed}");
        for (what, times) in one_place(seed, lives) {
            *held.entry(what).or_default() += times;
        }
        left -= lives;
        seed += 1;
    }
    eprintln!("{held:?}");
    assert!(
        rounds < ROUNDS || held.len() >= KINDS,
        "too little was tested"
    );
}

fn one_place(seed: u64, lives: u64) -> BTreeMap<&'static str, u64> {
    let quota = "quota = { in_flight = 4096, approvals = 4096, requests_per_second = 100000 }";
    let place = Place::new().and(TOOLS).setting("runner_wait = \"10m\"");
    let place = place.role("bot", quota);
    let place = ["files", "boss"].into_iter().fold(place, |place, role| {
        place.role(role, "quota = { requests_per_second = 100000 }")
    });
    // As little as can be: there is a snapshot all the time.
    let place = place.setting("audit_bytes = \"64KiB\"");
    let mut story = Story::begin(place.role("files", "concurrency = 256"), seed);
    for life in 1..=lives {
        let moment = Moment::ALL[usize::try_from(seed + life).expect("small") % Moment::ALL.len()];
        eprintln!("life {life}: {moment:?}");
        story.checks();
        story.works_until(moment, life);
        story.crashes(moment);
        story.starts_again();
    }
    story.checks();
    story.ends_well();
    story.held
}
