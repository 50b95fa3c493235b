//! The decisions of the record, each with what it was made of and the rules that counted then.

use std::collections::BTreeMap;
use std::rc::Rc;

use client::proto::{DenyReason, Digest, GrantId, Timestamp, ToolName};
use policy::{Decision, EffectiveTool, PastCall, Ruleset, Verdict};
use store::record::{Basis, CallKey};

mod decisions;
mod rules;

pub use decisions::{Decisions, each};
pub use rules::Rules;

/// A decision about a call, as the record has it.
#[derive(Debug, Clone)]
pub struct Past {
    /// When.
    pub at: Timestamp,
    /// Which call.
    pub call: CallKey,
    /// Its tool.
    pub tool: ToolName,
    /// What was asked.
    pub fingerprint: Digest,
    /// What was decided, approvals and refusals included.
    pub verdict: Verdict,
    /// What it was made of, the arguments aside. `None`: see [`Gone::Basis`].
    pub basis: Option<Box<Basis>>,
    /// The arguments. `None`: they are not kept, or no longer.
    pub arguments: Option<String>,
    /// The rules that counted. `None`: the record does not have them, or this version does not read them.
    pub rules: Option<Rc<Rules>>,
}

/// What the rules alone said, as the record tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// It may run.
    Permit {
        /// The grant that permits.
        grant: GrantId,
    },
    /// A person must be asked.
    Ask,
    /// It may not run.
    Deny {
        /// Why.
        reason: DenyReason,
        /// The grant that says so, where one does.
        grant: Option<GrantId>,
    },
}

/// Why a decision cannot be judged again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gone {
    /// The label and the offer are not in its record: it is of layout 1.
    Basis,
    /// The arguments are not kept, or no longer.
    Arguments,
    /// The rules of its time are not recorded, or this version does not read them.
    Rules,
}

impl Gone {
    /// A word for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Gone::Basis => "basis",
            Gone::Arguments => "arguments",
            Gone::Rules => "rules",
        }
    }

    /// The same in words, of several decisions.
    pub fn words(self) -> &'static str {
        match self {
            Gone::Basis => "what they were made of is not recorded",
            Gone::Arguments => "their arguments are not kept, or no longer (audit_arguments_ttl)",
            Gone::Rules => "the rules of their time are not recorded, or not read by this version",
        }
    }
}

impl Past {
    /// Whether a decision of the rules of its time is what the record has.
    pub fn agrees(&self, decision: &Decision) -> bool {
        match (&self.verdict, decision) {
            (Verdict::Permit { grant, .. }, Decision::Permit(permit)) => {
                !self.asks() && permit.grant == *grant
            }
            (Verdict::Permit { grant, .. }, Decision::Ask(ask)) => {
                self.asks() && ask.permit.grant == *grant
            }
            (Verdict::Ask { .. }, Decision::Ask(_)) => true,
            // A person's answer holds for a while, whatever the rules would say by then.
            (
                Verdict::Deny {
                    reason: DenyReason::ApprovalRefused | DenyReason::ApprovalExpired,
                    ..
                },
                _,
            ) => true,
            (Verdict::Deny { reason, grant }, Decision::Deny(deny)) => {
                deny.reason == *reason && deny.grant == *grant
            }
            (Verdict::Permit { .. } | Verdict::Ask { .. } | Verdict::Deny { .. }, _) => false,
        }
    }

    /// What the rules alone said.
    pub fn said(&self) -> Said {
        match &self.verdict {
            _ if self.asks() => Said::Ask,
            Verdict::Permit { grant, .. } => Said::Permit {
                grant: grant.clone(),
            },
            Verdict::Ask { .. } => Said::Ask,
            Verdict::Deny { reason, grant } => Said::Deny {
                reason: *reason,
                grant: grant.clone(),
            },
        }
    }

    /// Whether the rules asked a person.
    fn asks(&self) -> bool {
        self.basis.as_ref().is_some_and(|basis| basis.asks)
    }

    /// Whether the label that decided was untrusted. `None`: see [`Gone::Basis`].
    pub fn untrusted(&self) -> Option<bool> {
        self.basis.as_ref().map(|basis| basis.label.untrusted)
    }

    /// The rules of its time.
    ///
    /// # Errors
    /// [`Gone::Rules`].
    pub fn rules(&self) -> Result<&Rc<Rules>, Gone> {
        self.rules.as_ref().ok_or(Gone::Rules)
    }

    /// Gives the call to `ask` as a ruleset is asked about it: with the label, the time and the uses of then, and the
    /// tool as that ruleset has it, tightened by what was offered then. The uses are those of the grants that counted
    /// them then, by their ids.
    ///
    /// # Errors
    /// [`Gone`]: which part of it is.
    pub fn with_call<T>(
        &self,
        ruleset: &Ruleset,
        ask: impl FnOnce(&PastCall<'_>) -> T,
    ) -> Result<T, Gone> {
        let basis = self.basis.as_ref().ok_or(Gone::Basis)?;
        let arguments = self.arguments.as_ref().ok_or(Gone::Arguments)?;
        let tool = self.tool_in(ruleset, basis);
        let uses: BTreeMap<GrantId, u64> = basis.uses.iter().cloned().collect();
        Ok(ask(&PastCall {
            role: &self.call.session.role,
            session: &self.call.session.session,
            name: &self.tool,
            tool: tool.as_ref(),
            arguments,
            label: basis.label,
            at: self.at,
            uses: &uses,
        }))
    }

    /// What a ruleset says of it; see [`Past::with_call`].
    ///
    /// # Errors
    /// As [`Past::with_call`].
    pub fn decide(&self, ruleset: &Ruleset) -> Result<Decision, Gone> {
        self.with_call(ruleset, |call| call.decide(ruleset))
    }

    fn tool_in(&self, ruleset: &Ruleset, basis: &Basis) -> Option<EffectiveTool> {
        let floor = ruleset.tool(self.tool.as_str())?;
        let offered = basis.offer.map(|offer| offer.spec(self.tool.clone()));
        Some(floor.effective(offered.as_ref()))
    }
}
