//! Many seeds over all cores, and what is printed when one of them finds something.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::coverage::Coverage;
use crate::history;
use crate::run::run;

/// Which seeds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Seeds {
    /// So many.
    Count { first: u64, count: u64 },
    /// As many as the time allows.
    For { first: u64, time: Duration },
}

/// An environment variable that is a number.
pub(crate) fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| match value.parse() {
        Ok(number) => number,
        Err(_) => panic!("{name} must be a number, not {value:?}"),
    })
}

/// Runs them all, and sums what they reached. The first violation ends it.
pub(crate) fn run_all(seeds: Seeds) -> Coverage {
    let begin = Instant::now();
    let (first, count, time) = match seeds {
        Seeds::Count { first, count } => (first, count, Duration::MAX),
        Seeds::For { first, time } => (first, u64::MAX, time),
    };
    let next = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    let total = Mutex::new(Coverage::default());
    let found = Mutex::new(None);
    let work = || {
        let mut sum = Coverage::default();
        while !stop.load(Ordering::Relaxed) && begin.elapsed() < time {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                break;
            }
            let seed = first.wrapping_add(at);
            match catch_unwind(AssertUnwindSafe(|| run(seed, false))) {
                Ok(outcome) => sum.add(&outcome.coverage),
                Err(_) => {
                    stop.store(true, Ordering::Relaxed);
                    found.lock().expect("no panic holds it").get_or_insert(seed);
                }
            }
        }
        total.lock().expect("no panic holds it").add(&sum);
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(work);
        }
    });
    if let Some(seed) = *found.lock().expect("no panic holds it") {
        run_one_aloud(seed);
        panic!("seed {seed} failed once and not again: a run is not determined by its seed");
    }
    println!(
        "{} seeds in {:.1} s",
        next.load(Ordering::Relaxed),
        begin.elapsed().as_secs_f32()
    );
    *total.lock().expect("no panic holds it")
}

/// Runs one seed and says what happened before a violation.
pub(crate) fn run_one_aloud(seed: u64) {
    history::start(true);
    let outcome = catch_unwind(AssertUnwindSafe(|| run(seed, true)));
    if let Err(why) = outcome {
        println!("the last things that happened:\n{}", history::dump());
        let text = why.downcast_ref::<String>().map(String::as_str);
        let text = text.or(why.downcast_ref::<&str>().copied()).unwrap_or("?");
        panic!(
            "seed {seed}: {text}\nrun it again: RB_SEED={seed} cargo test -p e2e --test simulator -- --nocapture"
        );
    }
    history::start(false);
}
