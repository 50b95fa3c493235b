//! A copy of the state was put back: what was seen, approved and run after it was made is not known, so
//! the worst counts.

use std::collections::BTreeSet;

use proto::{CallId, Label, Outcome, RoleKind, RoleName};

use crate::engine::Engine;
use crate::record::{PutBack, Record, SessionKey};

/// The watermark of a session of which any call may have run.
const EVERY_CALL: CallId = CallId(u64::MAX);

impl Engine {
    /// Records that the state is a copy, and lets that count: what is told here is what a restart replays.
    pub(crate) fn put_back(&mut self, by: PutBack) {
        let pending: Vec<_> = self.approvals.keys().cloned().collect();
        for approval in pending {
            self.record_and_replay(Record::Settled {
                at: self.now,
                approval,
                outcome: Outcome::Superseded,
                by: String::new(),
                comment: String::new(),
            });
        }
        let configured = self.config.roles.values();
        let agents = configured.filter(|role| role.kind == RoleKind::Agent);
        let roles: BTreeSet<RoleName> = agents
            .map(|role| role.name.clone())
            .chain(self.sessions.keys().map(|key| key.role.clone()))
            .collect();
        self.record_and_replay(Record::Restored {
            at: self.now,
            uid: by.uid,
            reason: by.reason,
            roles: roles.into_iter().collect(),
        });
    }

    fn record_and_replay(&mut self, record: Record) {
        self.record(record.clone());
        self.replaying = true;
        self.replay(record);
        self.replaying = false;
    }

    /// No approval is pending any more.
    pub(crate) fn apply_restored(&mut self, roles: &[RoleName]) {
        for role in roles {
            let account = self.account(role);
            account.label = Label::TOP;
            account.opening = Label::TOP;
        }
        let known: Vec<SessionKey> = self.sessions.keys().cloned().collect();
        for key in known {
            if let Some(session) = self.sessions.get_mut(&key) {
                session.label = Label::TOP;
                session.watermark = Some(EVERY_CALL);
            }
            self.mark_closed(&key);
            self.shrink(&key);
        }
    }

    /// Whether a session is one of a copy that was put back.
    pub(crate) fn is_restored(&self, key: &SessionKey) -> bool {
        let session = self.sessions.get(key);
        // An agent may take the last number itself: then it is the highest one too.
        session.is_some_and(|session| {
            session.watermark == Some(EVERY_CALL) && session.highest != Some(EVERY_CALL)
        })
    }
}
