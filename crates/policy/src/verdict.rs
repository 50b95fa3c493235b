//! A past decision as an operator is told it: what was decided, approvals included, and what the rules of its time
//! made of each grant.

use std::collections::BTreeMap;

use proto::control::{Decided, Judgement, Standing as Told, TraceStatus};
use proto::{
    ApprovalId, DenyReason, Digest, GrantId, Label, RoleName, SessionId, Timestamp, ToolName,
};

use crate::decision::{Decision, Deny, Permit, Query, Standing};
use crate::limits::MAX_WORDS;
use crate::ruleset::{EffectiveTool, Ruleset};

/// A call as it was decided: a [`Query`] of which the tool may not have existed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PastCall<'a> {
    /// The agent role.
    pub role: &'a RoleName,
    /// Its session.
    pub session: &'a SessionId,
    /// The tool's name.
    pub name: &'a ToolName,
    /// The tool as it counted. `None`: there was no such tool.
    pub tool: Option<&'a EffectiveTool>,
    /// The arguments' text.
    pub arguments: &'a str,
    /// The label that decided.
    pub label: Label,
    /// When.
    pub at: Timestamp,
    /// Uses spent by then, by grant; absent is 0.
    pub uses: &'a BTreeMap<GrantId, u64>,
}

impl<'a> PastCall<'a> {
    /// What is asked of a ruleset about it. `None`: there was no such tool.
    pub fn query(&self) -> Option<Query<'a>> {
        Some(Query {
            role: self.role,
            session: self.session,
            tool: self.tool?,
            arguments: self.arguments,
            label: self.label,
            now: self.at,
            uses: self.uses,
        })
    }

    /// What a ruleset says of it, approvals aside. A tool that does not exist is no grant's.
    pub fn decide(&self, ruleset: &Ruleset) -> Decision {
        match self.query() {
            Some(query) => ruleset.decide(&query),
            None => Decision::Deny(Deny {
                reason: DenyReason::NoGrant,
                grant: None,
            }),
        }
    }
}

/// What was decided, approvals included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Sent to a runner.
    Permit {
        /// The grant that permits.
        grant: GrantId,
        /// The approval that let it through, where one was needed.
        approval: Option<ApprovalId>,
    },
    /// A person is asked.
    Ask {
        /// The approval that waits, where it was asked.
        approval: Option<ApprovalId>,
    },
    /// Not let through.
    Deny {
        /// Why.
        reason: DenyReason,
        /// The grant that says so, where one does.
        grant: Option<GrantId>,
    },
}

impl Verdict {
    /// A permit, by this approval if one was needed.
    pub fn permit(permit: &Permit, approval: Option<ApprovalId>) -> Verdict {
        let grant = permit.grant.clone();
        Verdict::Permit { grant, approval }
    }

    /// A denial.
    pub fn deny(deny: &Deny) -> Verdict {
        Verdict::Deny {
            reason: deny.reason,
            grant: deny.grant.clone(),
        }
    }

    /// The decision and each grant's part in it, under the ruleset of its time; `digest` is that of the
    /// configuration. No value of the arguments is in it. Sentences are cut at [`MAX_WORDS`] bytes.
    pub fn explained(
        &self,
        call: &PastCall<'_>,
        ruleset: &Ruleset,
        digest: &Digest,
    ) -> (Judgement, Vec<TraceStatus>) {
        let (rules, trace) = match call.query() {
            Some(query) => {
                let (decision, trace) = ruleset.explain(&query);
                (decision.in_words(), trace)
            }
            None => (NO_TOOL.to_owned(), Vec::new()),
        };
        let trace = trace.into_iter().map(|line| TraceStatus {
            grant: line.grant,
            standing: told(line.standing),
            what: cut(line.what),
        });
        let judgement = Judgement {
            tool: call.name.clone(),
            at: call.at,
            label: call.label,
            ruleset: digest.clone(),
            decided: self.decided(),
            reason: self.reason().to_owned(),
            grant: self.grant(),
            approval: self.approval(),
            words: cut(self.words(&rules)),
        };
        (judgement, trace.collect())
    }

    fn decided(&self) -> Decided {
        match self {
            Verdict::Permit { .. } => Decided::Permit,
            Verdict::Ask { .. } => Decided::Ask,
            Verdict::Deny { .. } => Decided::Deny,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Verdict::Permit { .. } | Verdict::Ask { .. } => "",
            Verdict::Deny { reason, .. } => reason.as_str(),
        }
    }

    fn grant(&self) -> String {
        let grant = match self {
            Verdict::Permit { grant, .. } => Some(grant),
            Verdict::Ask { .. } => None,
            Verdict::Deny { grant, .. } => grant.as_ref(),
        };
        grant.map(GrantId::to_string).unwrap_or_default()
    }

    fn approval(&self) -> String {
        let approval = match self {
            Verdict::Permit { approval, .. } | Verdict::Ask { approval } => approval.as_ref(),
            Verdict::Deny { .. } => None,
        };
        approval.map(ApprovalId::to_string).unwrap_or_default()
    }

    /// The decision in a sentence; `rules` is what the ruleset alone says.
    fn words(&self, rules: &str) -> String {
        match self {
            Verdict::Permit {
                approval: Some(approval),
                ..
            } => format!("permitted by approval {approval}; the rules alone: {rules}"),
            Verdict::Ask {
                approval: Some(approval),
            } => format!("approval {approval} waits for a person; {rules}"),
            Verdict::Deny {
                reason: DenyReason::ApprovalRefused,
                ..
            } => format!("denied: a person said no; the rules alone: {rules}"),
            Verdict::Deny {
                reason: DenyReason::ApprovalExpired,
                ..
            } => format!(
                "denied: nobody answered in time, or nobody could be asked; the rules alone: {rules}"
            ),
            Verdict::Permit { approval: None, .. }
            | Verdict::Ask { approval: None }
            | Verdict::Deny { .. } => rules.to_owned(),
        }
    }
}

const NO_TOOL: &str = "denied: no tool of that name is declared, and nobody may offer it";

/// A sentence that a small frame has room for.
fn cut(mut words: String) -> String {
    if words.len() > MAX_WORDS {
        words.truncate(words.floor_char_boundary(MAX_WORDS));
        words.push_str("...");
    }
    words
}

fn told(standing: Standing) -> Told {
    match standing {
        Standing::Elsewhere => Told::Elsewhere,
        Standing::Falls => Told::Falls,
        Standing::Counts => Told::Counts,
    }
}
