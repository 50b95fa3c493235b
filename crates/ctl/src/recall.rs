//! `explain --record` and `suggest --record`: a decision is read from the store, with the rules of its time, as the
//! daemon tells of those that it remembers.

use std::collections::BTreeMap;
use std::rc::Rc;

use client::proto::{ControlReply, DenyReason, GrantId, Outcome};
use policy::{PastCall, Verdict, suggest};
use store::Entry;
use store::record::{CallKey, Record};

use crate::cli::{PastArgs, StoreArgs};
use crate::exit::NotDone;
use crate::past::{Decisions, Gone, Past, Rules};
use crate::{audit, check};

/// What the record has of a call.
struct Recalled {
    /// The newest decision about it.
    past: Past,
    /// The rules at the record's end.
    newest: Option<Rc<Rules>>,
    /// Uses spent by then.
    uses: BTreeMap<GrantId, u64>,
}

/// The newest decision about a call, explained under the rules of its time.
///
/// # Errors
/// The record cannot be read, has no such decision, or not all of it any more.
pub fn explain(store: &StoreArgs, key: &CallKey) -> anyhow::Result<ControlReply> {
    let Recalled { past, .. } = find(store, key)?;
    let gone = |gone| gone_of(key, gone);
    let rules = past.rules().map_err(gone)?;
    let explained = past.with_call(&rules.ruleset, |call| {
        past.verdict
            .explained(call, &rules.ruleset, &rules.config.digest)
    });
    let (judgement, trace) = explained.map_err(gone)?;
    Ok(ControlReply::Explained { judgement, trace })
}

/// The smallest grant that would let such a call through now, under the newest rules and uses of the record. The label
/// is that of the decision: what the session has seen since only the daemon knows.
///
/// # Errors
/// As [`explain`].
pub fn propose(store: &StoreArgs, key: &CallKey) -> anyhow::Result<ControlReply> {
    let Recalled { past, newest, uses } = find(store, key)?;
    let gone = |gone| gone_of(key, gone);
    let rules = newest.ok_or(Gone::Rules).map_err(gone)?;
    let suggestion = past.with_call(&rules.ruleset, |call| {
        let call = PastCall {
            at: check::now(),
            uses: &uses,
            ..*call
        };
        call.query().map(|query| suggest(&rules.ruleset, &query))
    });
    let suggestion = suggestion.map_err(gone)?.ok_or_else(|| {
        let why = "no grant helps: its tool is not declared; declare it in the configuration, and `rolebroker reload`";
        NotDone(why.to_owned())
    })?;
    let (grant, mut notes) = suggestion.in_lines();
    let label = past.basis.as_ref().map(|basis| basis.label);
    notes.extend(label.map(|label| {
        format!(
            "from the record: at the label of then ({label}), under the newest rules of the record"
        )
    }));
    Ok(ControlReply::Suggested { grant, notes })
}

fn find(store: &StoreArgs, key: &CallKey) -> anyhow::Result<Recalled> {
    let wanted = PastArgs {
        role: Some(key.session.role.clone()),
        session: Some(key.session.session.clone()),
        ..PastArgs::default()
    };
    let mut decisions = Decisions::default();
    let mut found: Option<Past> = None;
    audit::open(store)?
        .read(|entries| {
            for Entry { record, .. } in entries {
                settle(found.as_mut(), &record);
                let past = decisions.follow(record, &wanted);
                if let Some(past) = past.filter(|past| past.call == *key) {
                    found = Some(past);
                }
            }
        })
        .map_err(|error| NotDone(error.to_string()))?;
    match found {
        Some(past) => Ok(Recalled {
            past,
            newest: decisions.rules(),
            uses: decisions.uses().clone(),
        }),
        None => {
            let (role, session) = (&key.session.role, &key.session.session);
            Err(NotDone(format!(
                "the record has no decision about {role}/{session}#{}; `rolebroker audit --role {role} --session \
                 {session}` lists what it has",
                key.call
            ))
            .into())
        }
    }
}

/// A person's no, or nobody's answer, is what was decided in the end.
fn settle(found: Option<&mut Past>, record: &Record) {
    let Some(past) = found else { return };
    let Record::Settled {
        at,
        approval,
        outcome,
        ..
    } = record
    else {
        return;
    };
    let asked = Verdict::Ask {
        approval: Some(approval.clone()),
    };
    let reason = match outcome {
        Outcome::Refused => DenyReason::ApprovalRefused,
        Outcome::Expired => DenyReason::ApprovalExpired,
        Outcome::Approved | Outcome::Counted | Outcome::Cancelled | Outcome::Superseded => return,
    };
    if past.verdict == asked {
        past.at = *at;
        past.verdict = Verdict::Deny {
            reason,
            grant: None,
        };
    }
}

fn gone_of(key: &CallKey, gone: Gone) -> NotDone {
    let (role, session) = (&key.session.role, &key.session.session);
    let what = match gone {
        Gone::Basis => {
            "what the decision was made of is not recorded; the daemon explains it while it remembers it (without \
             --record)"
        }
        Gone::Arguments => {
            "its arguments are not kept, or no longer; `audit_arguments_ttl` says how long they are"
        }
        Gone::Rules => {
            "the rules of its time are not recorded, or this version does not read them; the version of then does"
        }
    };
    NotDone(format!("{role}/{session}#{}: {what}", key.call))
}
