//! What the records say, and whether the wire agrees.

use engine::{Record, RecordId};
use proto::{Label, SessionId};

use crate::model::Model;
use crate::model::decisions::{Recorded, same_text};
use crate::model::labels::Proof;

impl Model {
    /// The engine records something.
    pub(crate) fn record_made(&mut self, id: RecordId, record: &Record) {
        match record {
            Record::Opened { session, owner, .. } => {
                // An operator's join may make it, for the owner of the session that goes into it.
                let known = self
                    .sessions
                    .values()
                    .any(|other| other.uids.contains(owner));
                assert!(
                    known,
                    "{session:?} is given to uid {owner}, who never used any"
                );
                self.session(session).uids.insert(*owner);
            }
            Record::Raised { session, label, .. } => self.raised(session, *label),
            Record::Dispatched {
                call,
                tool,
                effects,
                grant,
                spend,
                approval,
                ..
            } => {
                let recorded = Recorded {
                    id,
                    tool: tool.clone(),
                    effects: *effects,
                    grant: grant.clone(),
                    spend: spend.clone(),
                    approval: approval.clone(),
                };
                self.recorded.insert(call.clone(), recorded);
            }
            Record::Asked {
                request,
                runner,
                grants,
                ..
            } => {
                self.approval_asked(id, request, runner, grants);
            }
            Record::Voted { approval, by, .. } => self.approval_voted(id, approval, by),
            Record::Settled {
                approval, outcome, ..
            } => {
                self.approval_settled(id, approval, *outcome);
            }
            Record::Standing { .. } => self.standing_given(id, record),
            Record::Late { .. } => self.coverage.late_answers += 1,
            Record::Evicted { call, .. } => {
                self.coverage.evictions += 1;
                let session = self.session(&call.session);
                session.forgotten = session.forgotten.max(call.call.0);
            }
            Record::Joined {
                role,
                from,
                into,
                close,
                ..
            } => {
                let key = |session: &SessionId| engine::SessionKey {
                    role: role.clone(),
                    session: session.clone(),
                };
                self.coverage.joins += 1;
                self.labels
                    .joined(&key(from), &key(into), *close, Proof::Recorded(id));
                if *close {
                    self.coverage.joins_with_close += 1;
                    self.session_ended(&key(from));
                    self.standings_move(&key(from), &key(into));
                }
            }
            Record::Closed { session, .. } => {
                self.coverage.sessions_closed += 1;
                self.session_ended(session);
            }
            Record::Lowered {
                role,
                session,
                label,
                ..
            } => {
                self.coverage.labels_lowered += 1;
                let session = SessionId::new(session)
                    .ok()
                    .map(|session| engine::SessionKey {
                        role: role.clone(),
                        session,
                    });
                self.labels.lowered(role, session, *label, id);
            }
            Record::Granted { grant, toml, .. } => {
                self.coverage.grants_added += 1;
                self.granted.push((id, grant.clone(), toml.clone()));
                self.compile();
            }
            Record::Revoked { grant, .. } => {
                self.coverage.grants_revoked += 1;
                self.revoked.push((id, grant.clone()));
                self.compile();
            }
            Record::Pinned {
                runner, spec, by, ..
            } => {
                self.coverage.tools_pinned += 1;
                self.coverage.tools_accepted += u64::from(by.is_some());
                let floor = self.ruleset.tool(spec.name.as_str());
                let trusted = floor.is_some_and(|floor| {
                    floor.pin == policy::Pin::FirstUse || floor.definition.is_some()
                });
                // Facts may be tightened again; the text that was read stays.
                let read = match self.pinned(runner, &spec.name) {
                    Some(pinned) => same_text(pinned, spec),
                    None => trusted,
                };
                assert!(by.is_some() || read, "{} is pinned by nobody", spec.name);
                self.pins.push((id, runner.clone(), spec.clone()));
            }
            Record::Draining { .. } => {
                self.coverage.drains += 1;
                self.draining = true;
            }
            Record::Refused { role, count, .. } => self.over_rate_recorded(role, *count),
            Record::Denied { .. }
            | Record::Answered { .. }
            | Record::Configured { .. }
            | Record::Restored { .. }
            | Record::Snapshot { .. } => {}
        }
    }

    /// A session's label rises no higher than what could have raised it.
    fn raised(&mut self, session: &engine::SessionKey, label: Label) {
        self.coverage.labels_raised += 1;
        let high = self.labels.high(session, proto::LabelScope::Session);
        assert!(
            label.is_within(high),
            "invariant 5: {session:?} rises to {label}, over {high}"
        );
    }

    /// Calls of before may be unknown from now on.
    fn session_ended(&mut self, key: &engine::SessionKey) {
        let mut calls = self.calls.keys().filter(|call| call.session == *key);
        let highest = calls.by_ref().map(|call| call.call.0).max().unwrap_or(0);
        let session = self.session(key);
        session.closes += 1;
        session.forgotten = session.forgotten.max(highest);
    }

    /// After a batch: every recorded dispatch was sent with it.
    pub(crate) fn batch_ended(&mut self) {
        let left = std::mem::take(&mut self.recorded);
        assert!(
            left.is_empty(),
            "invariant 3: recorded as dispatched, but not sent: {left:?}"
        );
    }
}
