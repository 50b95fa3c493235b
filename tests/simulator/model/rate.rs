//! Requests over a role's rate: each is told, and counted by one record.

use engine::ConnId;
use proto::{Message, RoleName, ToolResponse};

use crate::model::Model;

const TOLD: &str = "busy: requests_per_second";

impl Model {
    /// An answer is sent; perhaps it says that a request was over the rate.
    pub(crate) fn may_be_over_rate(&mut self, conn: ConnId, msg: &Message) {
        let over = match msg {
            Message::Error(error) => error.detail == TOLD,
            Message::ToolResponse(ToolResponse::Failed { message }) => message == TOLD,
            _other => false,
        };
        if over {
            let role = self.conns[&conn].role.clone();
            *self.over_rate.entry(role).or_default() += 1;
        }
    }

    /// A record counts them.
    pub(crate) fn over_rate_recorded(&mut self, role: &RoleName, count: u64) {
        self.coverage.over_rate += count;
        let told = self.over_rate.remove(role);
        assert_eq!(
            told,
            Some(count),
            "a record of {role} counts what was over its rate"
        );
    }
}
