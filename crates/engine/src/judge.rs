//! One call judged: the ruleset's decision, and what approvals make of it.

use std::collections::BTreeMap;

use policy::{Ask, Decision, Deny, EffectiveTool, Permit, Query};
use proto::{ApprovalId, DenyReason, Digest, GrantId, RoleName, ToolName};

use crate::digest;
use crate::engine::Engine;
use crate::limits::MAX_RECORDED_ARGUMENTS;
use crate::record::{Basis, CallKey, OfferedTool, SessionKey};
use crate::state::{Question, hashes};

/// What a call may do now.
#[derive(Debug)]
pub(crate) enum Judged {
    /// It may run.
    Permit {
        tool: EffectiveTool,
        permit: Permit,
        spend: Spend,
    },
    /// These must be asked.
    Ask {
        tool: EffectiveTool,
        ask: Ask,
        question: Question,
    },
    /// It may not run.
    Deny(Deny),
}

/// The approval that a dispatch spends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Spend {
    /// No approval was needed.
    Nothing,
    /// The call's own; nothing where it is spent already.
    Cover,
    /// One use of a standing one.
    Standing(ApprovalId, Question),
}

impl Engine {
    /// A tool as it counts now: the ruleset's word, tightened by its pinned definition.
    pub(crate) fn effective_tool(&self, name: &str) -> Option<EffectiveTool> {
        let floor = self.ruleset.tool(name)?;
        let pin = self.pins.get(&(floor.runner.clone(), floor.name.clone()));
        Some(floor.effective(pin))
    }

    /// The description and schema of a tool that agents and approvers may be shown.
    pub(crate) fn shown_definition(&self, runner: &RoleName, name: &ToolName) -> (String, String) {
        if let Some(floor) = self.ruleset.tool(name.as_str())
            && let Some(definition) = floor.definition
        {
            return definition;
        }
        match self.pins.get(&(runner.clone(), name.clone())) {
            Some(spec) => (spec.description.clone(), spec.input_schema.clone()),
            None => (String::new(), r#"{"type":"object"}"#.to_owned()),
        }
    }

    pub(crate) fn definition(&self, runner: &RoleName, name: &ToolName) -> Digest {
        let (description, input_schema) = self.shown_definition(runner, name);
        digest::definition(name.as_str(), &description, &input_schema)
    }

    /// The ruleset's decision on a call, approvals aside. `None`: there is no such tool.
    pub(crate) fn decide(
        &self,
        session: &SessionKey,
        tool: &ToolName,
        arguments: &str,
    ) -> Option<(EffectiveTool, Decision)> {
        let tool = self.effective_tool(tool.as_str())?;
        let decision = self.ruleset.decide(&Query {
            role: &session.role,
            session: &session.session,
            tool: &tool,
            arguments,
            label: self.deciding(session),
            now: self.now,
            uses: &self.uses,
        });
        Some((tool, decision))
    }

    /// What a decision on a call is made of at this moment. `asks`: see [`Basis::asks`]. Without
    /// `arguments`: they are gone, or stand elsewhere in the record.
    pub(crate) fn basis(
        &self,
        session: &SessionKey,
        tool: &ToolName,
        arguments: Option<&str>,
        asks: bool,
    ) -> Box<Basis> {
        let pin = self
            .ruleset
            .tool(tool.as_str())
            .and_then(|floor| self.pins.get(&(floor.runner, floor.name)));
        let keeps = self.config.settings.audit_arguments_ttl > 0;
        let kept = arguments.filter(|text| keeps && text.len() <= MAX_RECORDED_ARGUMENTS);
        Box::new(Basis {
            asks,
            label: self.deciding(session),
            offer: pin.map(OfferedTool::of),
            uses: self.counted_uses(session, tool).into_iter().collect(),
            arguments: kept.map(str::to_owned),
        })
    }

    /// Uses spent so far of the grants for a call that count them.
    pub(crate) fn counted_uses(&self, key: &SessionKey, tool: &ToolName) -> BTreeMap<GrantId, u64> {
        let counted = self.ruleset.counted(&key.role, &key.session, tool);
        let uses = counted.filter_map(|grant| Some((grant.clone(), *self.uses.get(grant)?)));
        uses.collect()
    }

    /// Judges a call by the ruleset, label, time and approvals of this moment.
    pub(crate) fn judge(
        &self,
        key: &CallKey,
        tool: &ToolName,
        arguments: &str,
        fingerprint: &Digest,
    ) -> Judged {
        let (tool, ask) = match self.decide(&key.session, tool, arguments) {
            None => {
                return Judged::Deny(Deny {
                    reason: DenyReason::NoGrant,
                    grant: None,
                });
            }
            Some((_, Decision::Deny(deny))) => return Judged::Deny(deny),
            Some((tool, Decision::Permit(permit))) => {
                return Judged::Permit {
                    tool,
                    permit,
                    spend: Spend::Nothing,
                };
            }
            Some((tool, Decision::Ask(ask))) => (tool, ask),
        };
        let question = Question {
            fingerprint: fingerprint.clone(),
            runner: tool.runner.clone(),
            definition: self.definition(&tool.runner, &tool.name),
            grants: hashes(&ask.grants),
            label: self.deciding(&key.session),
        };
        let Some(session) = self.sessions.get(&key.session) else {
            return Judged::Ask {
                tool,
                ask,
                question,
            };
        };
        if let Some(cover) = session.covers.get(&key.call)
            && cover.question.covers(&question)
            && (cover.spent || cover.expires > self.now)
        {
            return Judged::Permit {
                tool,
                permit: ask.permit,
                spend: Spend::Cover,
            };
        }
        if let Some(approval) = self.standing_for(session, &tool, &ask, &question, arguments) {
            let spend = Spend::Standing(approval, question);
            return Judged::Permit {
                tool,
                permit: ask.permit,
                spend,
            };
        }
        if session
            .refusals
            .get(fingerprint)
            .is_some_and(|until| *until > self.now)
        {
            return Judged::Deny(Deny {
                reason: DenyReason::ApprovalRefused,
                grant: None,
            });
        }
        Judged::Ask {
            tool,
            ask,
            question,
        }
    }

    fn standing_for(
        &self,
        session: &crate::state::Session,
        tool: &EffectiveTool,
        ask: &Ask,
        question: &Question,
        arguments: &str,
    ) -> Option<ApprovalId> {
        let fits = |held: &crate::state::Standing| {
            held.tool == tool.name
                && held.runner == question.runner
                && held.definition == question.definition
                && held.grants == question.grants
                && question.label.is_within(held.label)
                && held.uses_left > 0
                && held.expires > self.now
        };
        if !session.standing.values().any(fits) {
            return None;
        }
        let pins = ask.pins(arguments)?;
        let (approval, _) = session
            .standing
            .iter()
            .find(|(_, held)| fits(held) && held.pins == pins)?;
        Some(approval.clone())
    }
}
