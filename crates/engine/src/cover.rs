//! What an answer covers afterwards: its call, more calls of the session, or a refusal for a while.

use policy::Ask;
use proto::{ApprovalId, Scope};

use crate::engine::Engine;
use crate::limits::MAX_REFUSALS;
use crate::record::{CallKey, Record, RecordId, SessionKey};
use crate::state::{Approval, Cover, Question, Standing, State};
use crate::timers::Timer;

impl Engine {
    /// What an approval covers from now on: its call, and more where a standing one was given.
    pub(crate) fn granted(&mut self, approval: &Approval, ask: Option<Ask>) {
        self.add_cover(
            &approval.call,
            Cover {
                approval: approval.request.approval.clone(),
                question: approval.question.clone(),
                asked: approval.asked.clone(),
                expires: approval.request.expires,
                spent: false,
            },
        );
        let session_wide = !approval.votes.is_empty()
            && approval
                .votes
                .iter()
                .all(|vote| vote.scope == Scope::Session);
        let Some((ask, by)) = ask.zip(approval.votes.last().map(|vote| vote.by.clone())) else {
            return;
        };
        let Some((ttl, uses)) = standing_bounds(&ask).filter(|_| session_wide) else {
            return;
        };
        let Some(pins) = ask.pins(&approval.request.arguments) else {
            return;
        };
        // The call that was asked about is the first of its uses.
        let uses_left = uses.saturating_sub(1);
        let role = &approval.call.session.role;
        if uses_left == 0 || self.usage(role).approvals >= self.quota(role).approvals {
            return;
        }
        let standing = Standing {
            tool: approval.request.tool.clone(),
            runner: approval.question.runner.clone(),
            definition: approval.question.definition.clone(),
            grants: approval.question.grants.clone(),
            pins,
            label: approval.question.label,
            uses_left,
            expires: self.now.plus(ttl),
            by,
            asked: approval.asked.clone(),
        };
        self.add_standing(
            &approval.call.session,
            &approval.request.approval,
            standing,
            "",
        );
    }

    /// Records a standing approval and lets it count.
    pub(crate) fn add_standing(
        &mut self,
        session: &SessionKey,
        id: &ApprovalId,
        standing: Standing,
        reason: &str,
    ) -> Option<RecordId> {
        let record = self.record(Record::Standing {
            at: self.now,
            approval: id.clone(),
            session: session.clone(),
            tool: standing.tool.clone(),
            runner: standing.runner.clone(),
            definition: standing.definition.clone(),
            grants: standing.grants.clone(),
            pins: standing.pins.0.clone().into_iter().collect(),
            label: standing.label,
            uses: standing.uses_left,
            expires: standing.expires,
            by: standing.by.clone(),
            reason: reason.to_owned(),
        });
        self.take_standing(session, id, standing);
        record
    }

    pub(crate) fn take_standing(&mut self, key: &SessionKey, id: &ApprovalId, standing: Standing) {
        let expires = standing.expires;
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        if session.standing.insert(id.clone(), standing).is_none() {
            self.account(&key.role).usage.approvals += 1;
        }
        self.recheck.insert(key.role.clone());
        self.timers
            .set(Timer::Standing(key.clone(), id.clone()), expires);
    }

    pub(crate) fn drop_standing(&mut self, key: &SessionKey, id: &ApprovalId) {
        self.timers
            .cancel(&Timer::Standing(key.clone(), id.clone()));
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        if session.standing.remove(id).is_some() {
            self.account(&key.role).usage.approvals -= 1;
        }
    }

    /// Takes a granted approval of one call in. It counts as the role's until it is spent.
    pub(crate) fn add_cover(&mut self, key: &CallKey, cover: Cover) {
        self.drop_cover(key);
        if !cover.spent {
            self.account(&key.session.role).usage.approvals += 1;
        }
        let timer = Timer::Cover(key.clone());
        self.timers.set(timer, cover.expires);
        if let Some(session) = self.sessions.get_mut(&key.session) {
            session.covers.insert(key.call, cover);
        }
    }

    /// The approval of a single call.
    pub(crate) fn cover_of(&self, key: &CallKey) -> Option<&Cover> {
        self.sessions.get(&key.session)?.covers.get(&key.call)
    }

    /// Whether a call has an approval of its own that is not spent.
    pub(crate) fn has_unspent_cover(&self, key: &CallKey) -> bool {
        let session = self.sessions.get(&key.session);
        session
            .and_then(|session| session.covers.get(&key.call))
            .is_some_and(|cover| !cover.spent)
    }

    /// Spends a call's own approval, and gives its name; `None` where it is spent already.
    pub(crate) fn spend_cover(&mut self, key: &CallKey) -> Option<ApprovalId> {
        let session = self.sessions.get_mut(&key.session)?;
        let cover = session.covers.get_mut(&key.call)?;
        if std::mem::replace(&mut cover.spent, true) {
            return None;
        }
        let approval = cover.approval.clone();
        self.account(&key.session.role).usage.approvals -= 1;
        Some(approval)
    }

    pub(crate) fn drop_cover(&mut self, key: &CallKey) {
        self.timers.cancel(&Timer::Cover(key.clone()));
        let Some(session) = self.sessions.get_mut(&key.session) else {
            return;
        };
        if session
            .covers
            .remove(&key.call)
            .is_some_and(|cover| !cover.spent)
        {
            self.account(&key.session.role).usage.approvals -= 1;
        }
    }

    /// A granted approval lapses. One that is spent covers its call's rerun as long as it runs.
    pub(crate) fn cover_due(&mut self, key: &CallKey) {
        let runs = matches!(
            self.call(key).map(|call| &call.state),
            Some(State::Dispatched(_) | State::Claimed { .. })
        );
        let spent = self
            .sessions
            .get(&key.session)
            .and_then(|session| session.covers.get(&key.call))
            .is_some_and(|cover| cover.spent);
        if !(runs && spent) {
            self.drop_cover(key);
        }
    }

    pub(crate) fn remember_refusal(&mut self, key: &SessionKey, question: &Question) {
        let (now, until) = (self.now, self.now.plus(self.config.settings.refusal_ttl));
        self.recheck.insert(key.role.clone());
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        session.refusals.retain(|_, until| *until > now);
        session.refusals.insert(question.fingerprint.clone(), until);
        if session.refusals.len() > MAX_REFUSALS
            && let Some(oldest) = session
                .refusals
                .iter()
                .min_by_key(|(_, until)| **until)
                .map(|(f, _)| f.clone())
        {
            session.refusals.remove(&oldest);
        }
    }
}

/// For how long and how many calls a standing approval of these grants may be: the least that
/// each states. `None` where one states none.
pub(crate) fn standing_bounds(ask: &Ask) -> Option<(u64, u64)> {
    let mut bounds = (u64::MAX, u64::MAX);
    for grant in &ask.grants {
        bounds.0 = bounds.0.min(grant.standing_ttl?);
        bounds.1 = bounds.1.min(grant.standing_uses?);
    }
    Some(bounds)
}
