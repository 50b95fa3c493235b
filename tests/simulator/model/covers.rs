//! Whether what people gave covers a dispatch, and what a dispatch spends of it (invariant 2).

use std::collections::BTreeSet;

use engine::{CallKey, RecordId};
use policy::{Ask, EffectiveTool};
use proto::{ApprovalId, Digest, Label};

use crate::model::{Approval, Model, Standing};

impl Model {
    /// Whether an approval makes a Permit of this ask, now.
    pub(crate) fn covers(
        &self,
        id: &ApprovalId,
        key: &CallKey,
        asked: (&EffectiveTool, &str, Label),
        ask: &Ask,
        rerun: bool,
    ) -> Result<(), String> {
        let once = self.approvals.get(id);
        let once = once.map(|once| self.covers_once(once, key, asked, ask, rerun));
        let standing = self.standings.get(id);
        let standing = standing.map(|held| self.stands(held, key, asked, ask, rerun));
        match (once, standing) {
            (Some(Ok(())), _) | (_, Some(Ok(()))) => Ok(()),
            (Some(Err(why)), None) | (None, Some(Err(why))) => Err(why.into()),
            (Some(Err(a)), Some(Err(b))) => Err(format!("{a}; {b}")),
            (None, None) => Err("there is no such approval".into()),
        }
    }

    fn covers_once(
        &self,
        approval: &Approval,
        key: &CallKey,
        (tool, arguments, label): (&EffectiveTool, &str, Label),
        ask: &Ask,
        rerun: bool,
    ) -> Result<(), &'static str> {
        let request = &approval.request;
        check(!approval.void, "it was of a copy that was put back")?;
        check(approval.key == *key, "it is another call's")?;
        check(approval.runner == tool.runner, "it is for another runner")?;
        check(request.arguments == arguments, "it is for other arguments")?;
        check(label.is_within(request.label), "the label rose")?;
        check(approval.granted(), "it was not granted")?;
        check(rerun || approval.spent.is_empty(), "it was spent")?;
        check(rerun || self.now < request.expires, "it expired")?;
        check(approval.grants == ask.grants, "other grants ask")?;
        Ok(())
    }

    fn stands(
        &self,
        standing: &Standing,
        key: &CallKey,
        (tool, arguments, label): (&EffectiveTool, &str, Label),
        ask: &Ask,
        rerun: bool,
    ) -> Result<(), &'static str> {
        check(
            standing.session == key.session,
            "it stands in another session",
        )?;
        check(
            standing.tool == tool.name && standing.runner == tool.runner,
            "another tool's",
        )?;
        check(label.is_within(standing.label), "the label rose")?;
        check(rerun || self.now < standing.expires, "it lapsed")?;
        check(
            rerun || (standing.spent.len() as u64) < standing.uses,
            "it is used up",
        )?;
        let asking: BTreeSet<_> = ask
            .grants
            .iter()
            .map(|grant| (grant.id.clone(), Digest::from_bytes(grant.hash)))
            .collect();
        check(standing.grants == asking, "other grants ask")?;
        let pins = ask
            .pins(arguments)
            .map(|pins| pins.0.into_iter().collect::<Vec<_>>());
        check(
            pins.as_ref() == Some(&standing.pins),
            "pinned to other values",
        )
    }

    /// A dispatch spends it.
    pub(crate) fn spends_approval(&mut self, id: &ApprovalId, key: &CallKey, record: RecordId) {
        if let Some(call) = self.calls.get_mut(key) {
            call.covered = Some((record, id.clone()));
        }
        if let Some(once) = self.approvals.get_mut(id).filter(|once| once.key == *key) {
            self.coverage.approvals_spent += 1;
            once.spent.push(record);
        } else if let Some(standing) = self.standings.get_mut(id) {
            self.coverage.standings_used += 1;
            standing.spent.push(record);
        }
    }
}

fn check(holds: bool, otherwise: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(otherwise) }
}
