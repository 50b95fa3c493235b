//! The reactor's one timer. Deadlines mostly move away, so it is set anew only for an earlier one;
//! ringing too early costs a turn, setting a timer in every turn costs more.

use std::pin::Pin;

use tokio::time::{Instant, Sleep, sleep_until};

/// A timer that rings at the earliest deadline that it was given since it last rang.
#[derive(Debug, Default)]
pub struct Alarm {
    sleep: Option<Pin<Box<Sleep>>>,
    armed: bool,
}

impl Alarm {
    /// An alarm that does not ring.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sees to it that it rings by `due`.
    pub fn set(&mut self, due: Option<Instant>) {
        let Some(due) = due else {
            return;
        };
        match &mut self.sleep {
            None => self.sleep = Some(Box::pin(sleep_until(due))),
            Some(sleep) if !self.armed || sleep.deadline() > due => sleep.as_mut().reset(due),
            Some(_) => {}
        }
        self.armed = true;
    }

    /// Waits until it rings; for ever, if it was not set.
    pub async fn rings(&mut self) {
        match &mut self.sleep {
            Some(sleep) if self.armed => {
                sleep.as_mut().await;
                self.armed = false;
            }
            _ => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_later_deadline_does_not_move_it_and_an_earlier_one_does() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let mut alarm = Alarm::new();
            let start = Instant::now();
            let hour = Duration::from_secs(3600);
            alarm.set(Some(start + hour));
            alarm.set(Some(start + hour * 2));
            alarm.set(None);
            let deadline = |alarm: &Alarm| alarm.sleep.as_ref().map(|sleep| sleep.deadline());
            assert_eq!(deadline(&alarm), Some(start + hour));
            alarm.set(Some(start));
            alarm.rings().await;
            alarm.set(Some(start + hour));
            assert_eq!(deadline(&alarm), Some(start + hour));
        });
    }
}
