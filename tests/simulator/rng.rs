//! A small seeded generator (splitmix64): the only source of chance in a run.

/// The generator. Equal seeds give equal runs.
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed ^ 0x0005_eed0_f5ee_d0f0)
    }

    /// The next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 for a bound of 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        match bound {
            0 => 0,
            bound => (self.next() % bound as u64) as usize,
        }
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    /// True in `percent` of 100 cases.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }

    /// True in `permille` of 1,000 cases.
    pub(crate) fn rarely(&mut self, permille: u64) -> bool {
        self.next() % 1000 < permille
    }

    /// One of them. The slice is never empty.
    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// One of them, by weight. The weights do not sum to 0.
    pub(crate) fn weighted<T: Copy>(&mut self, of: &[(u64, T)]) -> T {
        let sum: u64 = of.iter().map(|(weight, _)| weight).sum();
        let mut at = self.next() % sum;
        for (weight, what) in of {
            if at < *weight {
                return *what;
            }
            at -= weight;
        }
        of[0].1
    }
}
