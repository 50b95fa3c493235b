//! The record's head, told to the log each minute in which it grew: whoever keeps the log elsewhere can see later
//! whether the record's end was cut off.

use std::time::Duration;

use store::Head;
use tokio::time::Instant;

/// How often the head is told at most.
pub const TELL_EVERY: Duration = Duration::from_secs(60);

/// The head, and when it was told last.
#[derive(Debug)]
pub struct Heads {
    head: Head,
    told: u64,
    next: Instant,
}

impl Heads {
    /// The one that a start finds is told at once.
    pub fn restored(head: Head) -> Self {
        tracing::info!(
            event = "restored",
            records = head.count,
            head = head.hash.as_str()
        );
        Self {
            told: head.count,
            head,
            next: Instant::now() + TELL_EVERY,
        }
    }

    /// It has grown.
    pub fn grown(&mut self, head: Head) {
        self.head = head;
    }

    /// When it is to be told next, if it has grown.
    pub fn due(&self) -> Option<Instant> {
        (self.head.count > self.told).then_some(self.next)
    }

    /// Tells it, if it is due, and gives what was told.
    pub fn turn(&mut self, now: Instant) -> Option<&Head> {
        self.due().filter(|due| *due <= now)?;
        self.next = now + TELL_EVERY;
        self.last()
    }

    /// Tells it, if it has grown, and gives what was told: nothing comes after it.
    pub fn last(&mut self) -> Option<&Head> {
        if self.head.count <= self.told {
            return None;
        }
        self.told = self.head.count;
        tracing::info!(
            event = "record_head",
            records = self.told,
            head = self.head.hash.as_str()
        );
        Some(&self.head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_that_has_grown_is_due_once_a_minute() {
        let mut heads = Heads::restored(Head::empty());
        assert!(heads.due().is_none());
        heads.grown(Head::empty().and("1"));
        let due = heads.due().expect("it has grown");
        assert_eq!(heads.turn(due - TELL_EVERY / 2), None);
        assert_eq!(heads.due(), Some(due));
        assert_eq!(heads.turn(due), Some(&Head::empty().and("1")));
        assert!(heads.due().is_none());
        heads.grown(Head::empty().and("1").and("2"));
        assert_eq!(heads.due(), Some(due + TELL_EVERY));
    }
}
