//! Chance that can be had again.

use std::time::{SystemTime, UNIX_EPOCH};

/// A generator of splitmix64.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end.max(1)).expect("64 bits");
        usize::try_from(self.next() % end).expect("below a usize")
    }
}

/// The seed in this variable, or a fresh one; it is printed when a test fails.
pub(crate) fn seed_of(variable: &str) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanos = now.expect("after 1970").subsec_nanos();
    let seed = std::env::var(variable).ok();
    let seed = seed.map_or(u64::from(nanos), |seed| seed.parse().expect("a number"));
    eprintln!("repeat with {variable}={seed}");
    seed
}
