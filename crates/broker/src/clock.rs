//! The time that the engine is given: the wall clock in milliseconds, which never falls.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use proto::Timestamp;

/// The clock. If the wall clock is set back, time goes on from where it was at its usual pace, so
/// that no timeout stands still until the wall clock has caught up.
#[derive(Debug)]
pub struct Clock {
    last: Timestamp,
    at: Instant,
}

impl Clock {
    /// A clock that begins now.
    pub fn new() -> Self {
        Self {
            last: wall(),
            at: Instant::now(),
        }
    }

    /// The time.
    pub fn now(&mut self) -> Timestamp {
        self.read(wall(), Instant::now())
    }

    /// How long until `due`, by the last reading.
    pub fn until(&self, due: Timestamp) -> Duration {
        Duration::from_millis(due.since(self.last))
    }

    fn read(&mut self, wall: Timestamp, at: Instant) -> Timestamp {
        let passed = at.saturating_duration_since(self.at).as_millis() as u64;
        let paced = self.last.plus(passed);
        if wall >= paced {
            self.last = wall;
            self.at = at;
        } else if passed > 0 {
            self.last = paced;
            self.at += Duration::from_millis(passed);
        }
        self.last
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

/// Before 1970 counts as 1970.
fn wall() -> Timestamp {
    let millis = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |passed| passed.as_millis());
    Timestamp::default().plus(u64::try_from(millis).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::default().plus(millis)
    }

    #[test]
    fn a_wall_clock_that_is_set_back_does_not_hold_time_up() {
        let start = Instant::now();
        let mut clock = Clock {
            last: at(10_000),
            at: start,
        };
        let later = |ms| start + Duration::from_millis(ms);
        assert_eq!(clock.read(at(10_500), later(500)), at(10_500));
        assert_eq!(clock.read(at(2_000), later(600)), at(10_600));
        assert_eq!(clock.read(at(2_100), later(700)), at(10_700));
        assert_eq!(clock.read(at(90_000), later(800)), at(90_000));
    }

    #[test]
    fn time_never_falls_within_a_millisecond() {
        let start = Instant::now();
        let mut clock = Clock {
            last: at(10_000),
            at: start,
        };
        for micros in (0..5_000).step_by(100) {
            let now = clock.read(at(9_000), start + Duration::from_micros(micros));
            assert_eq!(now, at(10_000 + micros / 1000));
        }
    }
}
