//! Approvals and standing approvals, as people gave them (invariant 2).

use std::collections::{BTreeMap, BTreeSet};

use engine::{By, CallKey, Record, RecordId, SessionKey};
use policy::{AskingGrant, Decision, Pins};
use proto::{
    Answer, ApprovalId, ApprovalReply, ApprovalRequest, Digest, GrantId, Label, Outcome, RoleName,
    Scope, Timestamp, ToolName,
};

use crate::model::Model;
use crate::store::Store;

/// One question to people about one call.
#[derive(Debug)]
pub(crate) struct Approval {
    pub(crate) key: CallKey,
    pub(crate) request: ApprovalRequest,
    /// The asking grants as they were, hashes included.
    pub(crate) grants: Vec<AskingGrant>,
    pub(crate) pins: Option<Pins>,
    pub(crate) runner: RoleName,
    pub(crate) record: RecordId,
    pub(crate) votes: Vec<Vote>,
    pub(crate) settled: Option<(RecordId, Outcome)>,
    /// The dispatches that spent it.
    pub(crate) spent: Vec<RecordId>,
    /// A copy was put back: it covers nothing any more.
    pub(crate) void: bool,
}

/// An answer that counts.
#[derive(Debug)]
pub(crate) struct Vote {
    pub(crate) role: RoleName,
    pub(crate) uid: u32,
    pub(crate) answer: Answer,
    pub(crate) scope: Scope,
    /// Set once the engine recorded it.
    pub(crate) record: Option<RecordId>,
}

/// An approval for more than one call.
#[derive(Debug)]
pub(crate) struct Standing {
    pub(crate) record: RecordId,
    pub(crate) session: SessionKey,
    pub(crate) tool: ToolName,
    pub(crate) runner: RoleName,
    pub(crate) grants: BTreeSet<(GrantId, Digest)>,
    pub(crate) pins: Vec<(String, Option<String>)>,
    pub(crate) label: Label,
    pub(crate) uses: u64,
    pub(crate) expires: Timestamp,
    pub(crate) spent: Vec<RecordId>,
}

impl Approval {
    /// Whether everyone who must has approved, and nobody refused.
    pub(crate) fn granted(&self) -> bool {
        let refused = self.counted().any(|vote| vote.answer == Answer::Refuse);
        !refused && self.grants.iter().all(|grant| self.satisfied(grant))
    }

    /// The last recorded word of each person.
    fn counted(&self) -> impl Iterator<Item = &Vote> {
        let recorded = self.votes.iter().filter(|vote| vote.record.is_some());
        let last: BTreeMap<_, _> = recorded
            .map(|vote| ((&vote.role, vote.uid), vote))
            .collect();
        last.into_values()
    }

    fn satisfied(&self, grant: &AskingGrant) -> bool {
        let uids: BTreeSet<u32> = self
            .counted()
            .filter(|vote| vote.answer == Answer::Approve && grant.approvers.contains(&vote.role))
            .map(|vote| vote.uid)
            .collect();
        uids.len() as u32 >= grant.quorum.max(1)
    }

    fn standing(&self) -> bool {
        let mut approving = self.counted().filter(|vote| vote.answer == Answer::Approve);
        self.granted() && approving.all(|vote| vote.scope == Scope::Session)
    }
}

impl Model {
    /// A question was recorded: it is about a call that is to be asked about, at this label.
    pub(crate) fn approval_asked(
        &mut self,
        id: RecordId,
        request: &ApprovalRequest,
        runner: &RoleName,
        hashes: &[Digest],
    ) {
        self.coverage.approvals_asked += 1;
        let session = SessionKey {
            role: request.role.clone(),
            session: request.session.clone(),
        };
        let scope = self.scope(&session.role);
        let (low, high) = (
            self.labels.low(&session, scope),
            self.labels.high(&session, scope),
        );
        assert!(
            low.is_within(request.label) && request.label.is_within(high),
            "invariant 5: asked at {}, from {low} to {high}",
            request.label
        );
        let uses = self.uses();
        let asks = self
            .effective(request.tool.as_str())
            .into_iter()
            .find_map(|tool| {
                let arguments = &request.arguments;
                match self.decide(&session, &tool, arguments, request.label, &uses) {
                    Decision::Ask(ask) => {
                        let same = ask
                            .grants
                            .iter()
                            .map(|grant| Digest::from_bytes(grant.hash));
                        same.eq(hashes.iter().cloned()).then_some(ask)
                    }
                    Decision::Permit(_) | Decision::Deny(_) => None,
                }
            });
        let Some(ask) = asks else {
            panic!("a person is asked, but no decision asks that: {request:?}");
        };
        let names: Vec<_> = request
            .grants
            .iter()
            .map(|grant| grant.grant.clone())
            .collect();
        let asking: Vec<_> = ask.grants.iter().map(|grant| grant.id.clone()).collect();
        assert_eq!(names, asking, "the grants shown are those that ask");
        let most = ask.grants.iter().map(|grant| grant.quorum).max();
        assert_eq!(
            Some(request.quorum),
            most,
            "the quorum shown is the largest"
        );
        let pins = ask.pins(&request.arguments);
        let approval = Approval {
            key: CallKey {
                session,
                call: request.call,
            },
            request: request.clone(),
            grants: ask.grants,
            pins,
            runner: runner.clone(),
            record: id,
            votes: Vec::new(),
            settled: None,
            spent: Vec::new(),
            void: false,
        };
        for other in self.approvals.values() {
            let same = other.request.digest == request.digest;
            let equal = other.request.tool == request.tool
                && other.request.arguments == request.arguments
                && other.request.label == request.label;
            assert!(!same || equal, "one digest stands for two questions");
        }
        let before = self.approvals.insert(request.approval.clone(), approval);
        assert!(
            before.is_none(),
            "two approvals are called {}",
            request.approval
        );
    }

    /// A person answers: does it count?
    pub(crate) fn vote(&mut self, role: &RoleName, uid: u32, reply: &ApprovalReply) {
        let most = self.config.roles.get(role).map(|role| role.max_class);
        let now = self.now;
        let Some(approval) = self.approvals.get_mut(&reply.approval) else {
            return;
        };
        let asked = approval
            .grants
            .iter()
            .any(|grant| grant.approvers.contains(role));
        let may = most.is_some_and(|most| approval.request.label.class <= most);
        let open = approval.settled.is_none() && now < approval.request.expires;
        let offered = approval.request.scopes.contains(&reply.scope);
        if asked && may && open && offered && approval.request.digest == reply.digest {
            approval.votes.push(Vote {
                role: role.clone(),
                uid,
                answer: reply.answer,
                scope: reply.scope,
                record: None,
            });
        }
    }

    /// The engine counts a vote: somebody gave it.
    pub(crate) fn approval_voted(&mut self, id: RecordId, approval: &ApprovalId, by: &By) {
        let Some(known) = self.approvals.get_mut(approval) else {
            panic!("invariant 2: a vote on {approval}, which was never asked");
        };
        let mut votes = known.votes.iter_mut().rev();
        let vote = votes.find(|vote| vote.role == by.role && vote.uid == by.uid);
        let Some(vote) = vote else {
            panic!("invariant 2: {by:?} is said to have voted on {approval}, but did not");
        };
        vote.record = Some(id);
    }

    /// The engine ends an approval.
    pub(crate) fn approval_settled(
        &mut self,
        id: RecordId,
        approval: &ApprovalId,
        outcome: Outcome,
    ) {
        let Some(known) = self.approvals.get_mut(approval) else {
            panic!("{approval} is settled, but was never asked");
        };
        let coverage = &mut self.coverage;
        match outcome {
            Outcome::Counted => panic!("counted is no end of {approval}"),
            Outcome::Approved => {
                assert!(
                    known.granted(),
                    "invariant 2: {approval} was not granted: {known:?}"
                );
                coverage.approvals_granted += 1;
                coverage.quorums_of_two += u64::from(known.request.quorum > 1);
            }
            Outcome::Refused => {
                let refused = known.votes.iter().any(|vote| vote.answer == Answer::Refuse);
                assert!(refused, "{approval} is refused, but nobody refused it");
                coverage.approvals_refused += 1;
            }
            Outcome::Expired => coverage.approvals_expired += 1,
            Outcome::Cancelled => coverage.approvals_cancelled += 1,
            Outcome::Superseded => coverage.approvals_superseded += 1,
        }
        known.settled = Some((id, outcome));
    }

    /// A standing approval: given by a question's answers, or by an operator beforehand.
    pub(crate) fn standing_given(&mut self, id: RecordId, record: &Record) {
        let Record::Standing {
            approval,
            session,
            tool,
            runner,
            grants,
            pins,
            label,
            uses,
            expires,
            reason,
            ..
        } = record
        else {
            return;
        };
        if let Some(asked) = self.approvals.get(approval).filter(|_| reason.is_empty()) {
            assert!(
                asked.standing(),
                "invariant 2: {approval} was not given as a standing one"
            );
            assert!(
                label.is_within(asked.request.label),
                "{approval} stands at more than shown"
            );
            assert_eq!(
                asked.key.session, *session,
                "{approval} stands in another session"
            );
            let least = asked
                .grants
                .iter()
                .map(|grant| grant.standing_uses.unwrap_or(0))
                .min();
            assert!(
                Some(*uses) <= least,
                "{approval} stands for {uses} calls, over {least:?}"
            );
            let shown = asked
                .pins
                .as_ref()
                .map(|pins| pins.0.iter().collect::<Vec<_>>());
            let stands = pins
                .iter()
                .map(|(pointer, value)| (pointer, value))
                .collect();
            assert_eq!(shown, Some(stands), "{approval} is pinned to other values");
            let ttl = asked
                .grants
                .iter()
                .map(|grant| grant.standing_ttl.unwrap_or(0))
                .min();
            let latest = self.now.plus(ttl.unwrap_or(0));
            assert!(
                *expires <= latest,
                "{approval} stands until {expires}, over {latest}"
            );
        } else {
            assert!(
                !reason.is_empty(),
                "a standing approval {approval} that nobody gave"
            );
            self.coverage.preapprovals += 1;
        }
        self.coverage.standings_given += 1;
        let standing = Standing {
            record: id,
            session: session.clone(),
            tool: tool.clone(),
            runner: runner.clone(),
            grants: grants.iter().cloned().collect(),
            pins: pins.clone(),
            label: *label,
            uses: *uses,
            expires: *expires,
            spent: Vec::new(),
        };
        self.standings.insert(approval.clone(), standing);
    }

    /// A join with `close` takes the standing approvals along.
    pub(crate) fn standings_move(&mut self, from: &SessionKey, into: &SessionKey) {
        for standing in self.standings.values_mut().filter(|s| s.session == *from) {
            standing.session = into.clone();
        }
    }

    /// What was not durable was never given.
    pub(crate) fn approvals_crash(&mut self, store: &Store) {
        let durable = |id: &RecordId| store.is_durable(*id);
        self.approvals
            .retain(|_, approval| durable(&approval.record));
        for approval in self.approvals.values_mut() {
            approval
                .votes
                .retain(|vote| vote.record.as_ref().is_some_and(durable));
            approval.settled = approval.settled.take().filter(|(id, _)| durable(id));
            approval.spent.retain(durable);
            let waits = approval.settled.is_none();
            self.coverage.approvals_survived_crash += u64::from(waits);
        }
        self.standings
            .retain(|_, standing| durable(&standing.record));
        for standing in self.standings.values_mut() {
            standing.spent.retain(durable);
        }
    }
}
