//! The daemon killed while agents, runners and approvers are at work, and started again in the same place: what was
//! promised before holds afterwards. `RB_CRASH_ROUNDS` kills it more often; `RB_CRASH_SEED` repeats the choices of a
//! run, but not its times.

mod load;
mod story;
mod wire;

use crate::harness::{Place, seed_of};
use story::{Moment, Story};

const ROUNDS: u64 = 30;
/// So often is the daemon killed in one place.
const LIVES: u64 = 10;

/// A tool whose runner says more of its result than the declaration does.
const PAGE: &str = "\n[[tool]]\nname = \"page\"\nrunner = \"files\"\nclass = \"public\"\nuntrusted = false\n\
    effects = \"read\"\negress = false\n\n[[grant]]\nid = \"page\"\nroles = [\"*\"]\nsessions = [\"*\"]\n\
    tools = [\"page\"]\neffect = \"allow\"\n";

#[test]
fn what_was_promised_before_a_crash_holds_after_it() {
    let rounds = std::env::var("RB_CRASH_ROUNDS").ok();
    let rounds = rounds.map_or(ROUNDS, |rounds| rounds.parse().expect("a number"));
    let mut seed = seed_of("RB_CRASH_SEED");
    let mut left = rounds;
    while left > 0 {
        let lives = left.min(LIVES);
        eprintln!("{left} rounds left; from here RB_CRASH_SEED={seed}");
        one_place(seed, lives);
        left -= lives;
        seed += 1;
    }
}

fn one_place(seed: u64, lives: u64) {
    let quota = "quota = { in_flight = 4096, approvals = 4096, requests_per_second = 100000 }";
    let place = Place::new().and(PAGE).role("bot", quota);
    let place = ["files", "boss"].into_iter().fold(place, |place, role| {
        place.role(role, "quota = { requests_per_second = 100000 }")
    });
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
}
