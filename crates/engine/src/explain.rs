//! Decisions remembered for a while, and explained afterwards (DESIGN 1, promise 6).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use policy::{EffectiveTool, PastCall, Query, Ruleset, Verdict};
use proto::control::{Judgement, TraceStatus};
use proto::{
    CallId, ControlReply, DenyReason, Digest, GrantId, Label, Message, RoleKind, Timestamp,
    ToolName,
};

use crate::conn::frame_len;
use crate::digest;
use crate::engine::Engine;
use crate::event::ConnId;
use crate::judge::{Judged, Spend};
use crate::limits::{MAX_REMEMBERED, MAX_REMEMBERED_BYTES, MAX_REMEMBERED_RULESETS};
use crate::record::{CallKey, SessionKey};

/// The newest decisions about a role's calls, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    decisions: VecDeque<Remembered>,
    /// What they count for: [`Remembered::bytes`].
    bytes: usize,
}

/// One decision, and all that it was made of.
#[derive(Debug)]
struct Remembered {
    key: CallKey,
    name: ToolName,
    /// `None`: there was no such tool.
    tool: Option<EffectiveTool>,
    arguments: String,
    label: Label,
    at: Timestamp,
    ruleset: Arc<Ruleset>,
    /// Which one it is, counted from the start.
    replaced: u64,
    digest: Digest,
    /// Of the grants that were for this call.
    uses: BTreeMap<GrantId, u64>,
    verdict: Verdict,
}

impl Memory {
    fn remember(&mut self, decision: Remembered) {
        self.bytes += decision.bytes();
        self.decisions.push_back(decision);
        while self.decisions.len() > MAX_REMEMBERED || self.bytes > MAX_REMEMBERED_BYTES {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let oldest = self.decisions.pop_front();
        self.bytes -= oldest.map_or(0, |oldest| oldest.bytes());
    }

    /// Lets go of the rulesets before this one.
    fn forget_before(&mut self, replaced: u64) {
        while self
            .decisions
            .front()
            .is_some_and(|oldest| oldest.replaced < replaced)
        {
            self.forget_oldest();
        }
    }

    fn find(&self, key: &CallKey) -> Option<&Remembered> {
        self.decisions.iter().rev().find(|held| held.key == *key)
    }
}

impl Remembered {
    fn bytes(&self) -> usize {
        let use_of = |grant: &GrantId| grant.as_str().len() + size_of::<(GrantId, u64)>();
        self.arguments.len() + self.uses.keys().map(use_of).sum::<usize>()
    }

    fn explained(&self) -> (Judgement, Vec<TraceStatus>) {
        let call = PastCall {
            role: &self.key.session.role,
            session: &self.key.session.session,
            name: &self.name,
            tool: self.tool.as_ref(),
            arguments: &self.arguments,
            label: self.label,
            at: self.at,
            uses: &self.uses,
        };
        self.verdict.explained(&call, &self.ruleset, &self.digest)
    }
}

/// The verdict of a judgement, before anything is spent.
fn verdict_of(judged: &Judged) -> Verdict {
    match judged {
        Judged::Permit { permit, spend, .. } => {
            let approval = match spend {
                Spend::Standing(approval, _) => Some(approval.clone()),
                Spend::Nothing | Spend::Cover => None,
            };
            Verdict::permit(permit, approval)
        }
        Judged::Ask { .. } => Verdict::Ask { approval: None },
        Judged::Deny(deny) => Verdict::deny(deny),
    }
}

impl Engine {
    /// Remembers a decision about a call, with all that it was made of.
    pub(crate) fn remember(
        &mut self,
        key: &CallKey,
        name: &ToolName,
        arguments: &str,
        verdict: Verdict,
    ) {
        // Too long to be kept: it would only push out the others.
        if self.replaying || arguments.len() > MAX_REMEMBERED_BYTES {
            return;
        }
        let decision = self.present(key, name, arguments, verdict);
        self.account(&key.session.role).memory.remember(decision);
    }

    /// As [`Engine::remember`], of a call that is in flight.
    pub(crate) fn remember_call(&mut self, key: &CallKey, verdict: Verdict) {
        let Some(call) = self.call(key) else { return };
        if self.replaying || call.arguments.len() > MAX_REMEMBERED_BYTES {
            return;
        }
        let decision = self.present(key, &call.tool, &call.arguments, verdict);
        self.account(&key.session.role).memory.remember(decision);
    }

    fn present(
        &self,
        key: &CallKey,
        name: &ToolName,
        arguments: &str,
        verdict: Verdict,
    ) -> Remembered {
        Remembered {
            key: key.clone(),
            name: name.clone(),
            tool: self.effective_tool(name.as_str()),
            arguments: arguments.to_owned(),
            label: self.deciding(&key.session),
            at: self.now,
            ruleset: Arc::clone(&self.ruleset),
            replaced: self.replaced,
            digest: self.config.digest.clone(),
            uses: self.counted_uses(&key.session, name),
            verdict,
        }
    }

    /// Other rules count from now on.
    pub(crate) fn replace_ruleset(&mut self, ruleset: Ruleset) {
        self.ruleset = Arc::new(ruleset);
        self.replaced += 1;
        let kept = (self.replaced + 1).saturating_sub(MAX_REMEMBERED_RULESETS);
        for account in self.accounts.values_mut() {
            account.memory.forget_before(kept);
        }
    }

    pub(crate) fn explain(&mut self, conn: ConnId, id: u64, key: &CallKey) {
        let Some(explained) = self.remembered(key).map(Remembered::explained) else {
            return self.bad_message(conn, id, &format!("msg.body.{NOT_REMEMBERED}"));
        };
        self.send_explained(conn, id, explained);
    }

    /// Decides on a request as if it came now. Nothing is asked, spent or recorded.
    pub(crate) fn explain_request(
        &mut self,
        conn: ConnId,
        id: u64,
        session: SessionKey,
        name: &ToolName,
        arguments: &str,
    ) {
        let is_agent = |role: &policy::Role| role.kind == RoleKind::Agent;
        if !self.config.roles.get(&session.role).is_some_and(is_agent) {
            return self.bad_message(conn, id, "msg.body.role: there is no such agent role");
        }
        // A number that an agent hardly uses: no approval of a single call is looked for.
        let key = CallKey {
            session,
            call: CallId(u64::MAX),
        };
        let fingerprint = digest::fingerprint(name.as_str(), arguments);
        let judged = self.judge(&key, name, arguments, &fingerprint);
        let verdict = match &judged {
            Judged::Ask { ask, question, .. } if self.asked_roles(ask, question).is_none() => {
                NOBODY_TO_ASK
            }
            Judged::Permit { .. } | Judged::Ask { .. } | Judged::Deny(_) => verdict_of(&judged),
        };
        let decision = self.present(&key, name, arguments, verdict);
        self.send_explained(conn, id, decision.explained());
    }

    /// The smallest grant that would let a remembered call through now.
    ///
    /// # Errors
    /// In words: no decision about it is remembered, there is no such tool, or the answer fits no frame.
    pub(crate) fn suggest(&self, key: &CallKey) -> Result<ControlReply, String> {
        let held = self.remembered(key).ok_or(NOT_REMEMBERED)?;
        let tool = self.effective_tool(held.name.as_str());
        let tool = tool.ok_or("call: no grant helps: its tool is not declared")?;
        let suggestion = policy::suggest(
            &self.ruleset,
            &Query {
                role: &key.session.role,
                session: &key.session.session,
                tool: &tool,
                arguments: &held.arguments,
                label: self.deciding(&key.session),
                now: self.now,
                uses: &self.uses,
            },
        );
        let (grant, notes) = suggestion.in_lines();
        let reply = ControlReply::Suggested { grant, notes };
        let msg = proto::encode_message(&Message::ControlReply(reply.clone()));
        let most = self.config.settings.max_frame;
        if frame_len(&msg) > most {
            return Err(format!(
                "call: what is suggested for it does not fit a frame of {most} bytes; a larger `max_frame` shows it"
            ));
        }
        Ok(reply)
    }

    fn remembered(&self, key: &CallKey) -> Option<&Remembered> {
        self.accounts.get(&key.session.role)?.memory.find(key)
    }

    fn send_explained(
        &mut self,
        conn: ConnId,
        id: u64,
        (judgement, trace): (Judgement, Vec<TraceStatus>),
    ) {
        self.send_list(conn, self.newest(), id, trace, |trace| {
            Message::ControlReply(ControlReply::Explained {
                judgement: judgement.clone(),
                trace,
            })
        });
    }
}

const NOT_REMEMBERED: &str = "call: no decision about it is remembered: the newest of a role \
    are, since the broker started, by the newest rules, of arguments up to 1 MiB; \
    `rolebroker explain --record` reads others from the record";

/// As a call would be answered of which nobody can be asked.
const NOBODY_TO_ASK: Verdict = Verdict::Deny {
    reason: DenyReason::ApprovalExpired,
    grant: None,
};
