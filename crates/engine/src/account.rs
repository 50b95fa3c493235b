//! What is charged to a role: every resource that it pins, and its requests per second.

use std::collections::VecDeque;

use policy::Quota;
use proto::{Label, Raise, Timestamp};

use crate::engine::Usage;
use crate::explain::Memory;
use crate::record::{CallKey, RecordId};
use crate::refused::Refused;

/// A role's account. Outlives reloads.
#[derive(Debug, Default)]
pub(crate) struct Account {
    pub(crate) usage: Usage,
    /// The join of all that the role's sessions have seen; falls only by an operator.
    pub(crate) label: Label,
    /// Where its sessions begin: above the bottom only once a copy was put back; falls with `label`.
    pub(crate) opening: Label,
    /// The last record that `label` depends on.
    pub(crate) changed: Option<RecordId>,
    /// The calls that raised `label`, oldest first.
    pub(crate) raises: Vec<Raise>,
    /// Kept answers, oldest first.
    pub(crate) stored: VecDeque<CallKey>,
    /// Its newest decisions.
    pub(crate) memory: Memory,
    rate: Rate,
    /// Requests over the rate that no record has yet.
    pub(crate) refused: Option<Refused>,
    /// Replies under ids that were not open.
    pub(crate) dropped_replies: u64,
}

/// A token bucket in thousandths of a request.
#[derive(Debug, Default)]
struct Rate {
    spent: u64,
    at: Timestamp,
}

impl Account {
    /// Takes one request's place in this second.
    pub(crate) fn admits_request(&mut self, quota: &Quota, now: Timestamp) -> bool {
        let regained = now
            .since(self.rate.at)
            .saturating_mul(quota.requests_per_second);
        self.rate.spent = self.rate.spent.saturating_sub(regained);
        self.rate.at = now;
        let full = quota.requests_per_second.saturating_mul(1000);
        let admits = self.rate.spent.saturating_add(1000) <= full;
        if admits {
            self.rate.spent += 1000;
        }
        admits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_has_its_requests_per_second_and_no_more() {
        let quota = Quota {
            connections: 1,
            in_flight: 1,
            sessions: 1,
            closed_sessions: 1,
            approvals: 1,
            waiting_bytes: 1,
            stored_bytes: 1,
            arguments_bytes: 1,
            requests_per_second: 2,
        };
        let mut account = Account::default();
        let at = |ms| Timestamp::from_millis(ms).unwrap();
        let admitted = |account: &mut Account, ms| account.admits_request(&quota, at(ms));
        assert!(admitted(&mut account, 5000));
        assert!(admitted(&mut account, 5000));
        assert!(!admitted(&mut account, 5000));
        assert!(!admitted(&mut account, 5499));
        assert!(admitted(&mut account, 5500));
        assert!(!admitted(&mut account, 5500));
    }
}
