//! Requests over a role's rate: one record for all of a minute, so that a flood does not fill the record.

use proto::{RoleName, Timestamp};

use crate::engine::Engine;
use crate::limits::REFUSED_COUNTED;
use crate::record::Record;
use crate::timers::Timer;

/// What was refused since the last record of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refused {
    since: Timestamp,
    count: u64,
}

impl Engine {
    /// Counts a request that was over the rate. Nothing waits for the record of it.
    pub(crate) fn count_refused(&mut self, role: &RoleName) {
        let since = self.now;
        let first = Refused { since, count: 0 };
        self.account(role).refused.get_or_insert(first).count += 1;
        let at = since.plus(REFUSED_COUNTED);
        self.timers.set_once(Timer::Refused(role.clone()), at);
    }

    /// Records what was counted; the next one over the rate begins another count.
    pub(crate) fn record_refused(&mut self, role: &RoleName) {
        let refused = self.accounts.get_mut(role).and_then(|a| a.refused.take());
        if let Some(Refused { since, count }) = refused {
            self.timers.cancel(&Timer::Refused(role.clone()));
            self.record(Record::Refused {
                at: self.now,
                role: role.clone(),
                since,
                count,
            });
        }
    }

    /// No minute goes on after the end.
    pub(crate) fn record_all_refused(&mut self) {
        let roles: Vec<RoleName> = self.accounts.keys().cloned().collect();
        for role in roles {
            self.record_refused(&role);
        }
    }
}
