//! Nothing runs without a Permit of that moment (invariant 2): `decide` is asked again, with the
//! model's label, uses and ruleset.

use std::collections::BTreeMap;

use engine::{CallKey, RecordId, SessionKey};
use policy::{Decision, EffectiveTool, Query};
use proto::{ApprovalId, DenyReason, Effects, GrantId, Label, ListedTool, ToolName};

use crate::model::Model;

/// A dispatch as it was recorded; its send follows in the same batch.
#[derive(Debug, Clone)]
pub(crate) struct Recorded {
    pub(crate) id: RecordId,
    pub(crate) tool: ToolName,
    pub(crate) effects: Effects,
    pub(crate) grant: GrantId,
    pub(crate) spend: Vec<GrantId>,
    pub(crate) approval: Option<ApprovalId>,
}

impl Model {
    /// Uses spent so far.
    pub(crate) fn uses(&self) -> BTreeMap<GrantId, u64> {
        let mut uses = BTreeMap::new();
        for (_, grant) in &self.spent {
            *uses.entry(grant.clone()).or_default() += 1;
        }
        uses
    }

    /// Decides as of now, at one label.
    pub(crate) fn decide(
        &self,
        session: &SessionKey,
        tool: &EffectiveTool,
        arguments: &str,
        label: Label,
        uses: &BTreeMap<GrantId, u64>,
    ) -> Decision {
        self.ruleset.decide(&Query {
            role: &session.role,
            session: &session.session,
            tool,
            arguments,
            label,
            now: self.now,
            uses,
        })
    }

    /// Invariant 2: a call goes to a runner.
    pub(crate) fn must_be_permitted(
        &mut self,
        key: &CallKey,
        tool: &EffectiveTool,
        arguments: &str,
        recorded: Option<&Recorded>,
    ) {
        let uses = self.uses();
        let labels = self
            .labels
            .range(&key.session, self.scope(&key.session.role));
        let spent = recorded.and_then(|recorded| recorded.approval.clone());
        // What its first dispatch spent covers the second one.
        let again = self.calls[key]
            .covered
            .clone()
            .map(|(_, approval)| approval);
        let (approval, rerun) = (spent.clone().or(again), spent.is_none());
        let spend: &[GrantId] = recorded.map_or(&[], |recorded| &recorded.spend);
        let named = recorded.map(|recorded| &recorded.grant);
        let mut why = Vec::new();
        for label in labels {
            let decision = self.decide(&key.session, tool, arguments, label, &uses);
            let fits = match (&decision, &approval) {
                (Decision::Permit(permit), _) if spent.is_none() => {
                    permit.spend == spend && named.is_none_or(|grant| *grant == permit.grant)
                }
                (Decision::Ask(ask), Some(id)) => {
                    match self.covers(id, key, (tool, arguments, label), ask, rerun) {
                        Ok(()) => ask.permit.spend == spend,
                        Err(reason) => {
                            why.push(format!("approval {id} does not cover it: {reason}"));
                            false
                        }
                    }
                }
                (Decision::Permit(_), _) | (Decision::Ask(_), None) => false,
                (Decision::Deny(_), _) => false,
            };
            if fits {
                self.spends(key, recorded, tool);
                return;
            }
            why.push(format!("at {label}: {decision:?}"));
        }
        panic!(
            "invariant 2: {key:?} runs {} without a permit of this moment: recorded {recorded:?}; {}",
            tool.name,
            why.join("; ")
        );
    }

    fn spends(&mut self, key: &CallKey, recorded: Option<&Recorded>, tool: &EffectiveTool) {
        let Some(recorded) = recorded else { return };
        assert_eq!(
            recorded.tool, tool.name,
            "the record names the tool that runs"
        );
        assert_eq!(
            recorded.effects, tool.effects,
            "the record says what running it twice does"
        );
        let uses = self.uses();
        for grant in &recorded.spend {
            self.coverage.uses_spent += 1;
            let view = self
                .ruleset
                .grants()
                .into_iter()
                .find(|view| view.id == *grant);
            let most = view.and_then(|view| view.max_uses).unwrap_or(u64::MAX);
            let spent = uses.get(grant).copied().unwrap_or(0);
            assert!(
                spent < most,
                "invariant 2: {grant} is used {spent} times of {most}"
            );
            self.spent.push((recorded.id, grant.clone()));
        }
        if let Some(approval) = &recorded.approval {
            self.spends_approval(approval, key, recorded.id);
        }
    }

    /// A kept answer is held back only because a deny applies now.
    pub(crate) fn must_be_denied(&self, key: &CallKey, fingerprint: Option<u64>) {
        let call = &self.calls[key];
        let uses = self.uses();
        // A cancel says no arguments: a deny that looks at them counts as applying.
        let none = fingerprint.is_none();
        let denied = call
            .asked
            .iter()
            .filter(|(asked, _)| fingerprint.is_none_or(|wanted| wanted == **asked))
            .map(|(_, (tool, arguments))| (tool, if none { "" } else { arguments }))
            .any(|(tool, arguments)| {
                self.effective(tool).iter().any(|tool| {
                    let decision = self.decide(&key.session, tool, arguments, Label::TOP, &uses);
                    matches!(&decision, Decision::Deny(deny) if deny.reason == DenyReason::DeniedByGrant)
                })
            });
        assert!(
            denied,
            "a kept answer of {key:?} is denied, but no deny applies"
        );
    }

    /// A tool in a list: the session could call it, and its text is one that was read.
    pub(crate) fn must_be_listable(
        &self,
        session: &SessionKey,
        name: &ToolName,
        listed: &ListedTool,
    ) {
        let Some(floor) = self.ruleset.tool(name.as_str()) else {
            panic!("{name} is listed, but the ruleset knows no such tool");
        };
        let declared = floor
            .definition
            .as_ref()
            .is_some_and(|(description, schema)| {
                *description == listed.spec.description && *schema == listed.spec.input_schema
            });
        let pinned = self.pins.iter().any(|(_, role, spec)| {
            *role == floor.runner && spec.name == *name && same_text(spec, &listed.spec)
        });
        let said_nothing = listed.spec.description.is_empty() && floor.declared;
        assert!(
            declared || pinned || said_nothing,
            "the text of {name} was read by nobody: {listed:?}"
        );
        let uses = self.uses();
        let labels = self.labels.range(session, self.scope(&session.role));
        let possible = labels.into_iter().any(|label| {
            self.effective(name.as_str()).iter().any(|tool| {
                let access = self.ruleset.access(&Query {
                    role: &session.role,
                    session: &session.session,
                    tool,
                    arguments: "",
                    label,
                    now: self.now,
                    uses: &uses,
                });
                access.is_some_and(|access| access >= listed.access)
            })
        });
        assert!(
            possible,
            "invariant 2: {session:?} is told it may call {name} ({:?})",
            listed.access
        );
    }

    /// A tool as it may count now: as the ruleset has it, and as each runner offers it.
    pub(crate) fn effective(&self, tool: &str) -> Vec<EffectiveTool> {
        let Some(floor) = self.ruleset.tool(tool) else {
            return Vec::new();
        };
        let mut tools = vec![floor.effective(None)];
        for conn in self.conns.values().filter(|conn| conn.role == floor.runner) {
            for offer in [&conn.offer, &conn.offer_before] {
                let spec = offer.as_ref().and_then(|offer| offer.get(&floor.name));
                tools.extend(spec.map(|spec| floor.effective(Some(spec))));
            }
        }
        let pinned = self.pinned(&floor.runner, &floor.name);
        tools.extend(pinned.map(|spec| floor.effective(Some(spec))));
        tools.dedup();
        tools
    }
}

/// Whether two specs are the same definition.
pub(crate) fn same_text(a: &proto::ToolSpec, b: &proto::ToolSpec) -> bool {
    a.name == b.name && a.description == b.description && a.input_schema == b.input_schema
}
