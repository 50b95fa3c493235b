//! The record gone over in order: which of its records are decisions, and which rules counted for each.

use std::collections::BTreeMap;
use std::rc::Rc;

use client::proto::{DenyReason, GrantId};
use policy::Verdict;
use store::Store;
use store::record::{Basis, CallKey, Record, SessionKey};

use super::rules::RulesSoFar;
use super::{Past, Rules};
use crate::cli::PastArgs;
use crate::exit::Unread;
use crate::progress::Progress;

/// Goes over the record in order, and makes decisions of it.
#[derive(Debug, Default)]
pub struct Decisions {
    rules: RulesSoFar,
}

impl Decisions {
    /// The decision that a record is, if it is one that is `wanted`. Every record must be given, in order.
    pub fn follow(&mut self, record: Record, wanted: &PastArgs) -> Option<Past> {
        self.rules.follow(&record);
        let mut past = decision(record)?;
        if !wanted.is_meant(&past.call.session, &past.tool, past.at) {
            return None;
        }
        past.rules = self.rules();
        Some(past)
    }

    /// The rules after the last record. `None`: they are not recorded, or this version does not read them.
    pub fn rules(&mut self) -> Option<Rc<Rules>> {
        self.rules.now()
    }

    /// The grants of run time after the last record.
    pub fn granted(&self) -> Rc<[(GrantId, String)]> {
        self.rules.granted.as_slice().into()
    }

    /// Uses spent up to the last record, by grant.
    pub fn uses(&self) -> &BTreeMap<GrantId, u64> {
        &self.rules.uses
    }
}

/// Decisions between two looks at how far it is.
const STEP: u64 = 5_000;

/// Gives each decision of a store that is wanted to `take`, in order, and says how far it is; then what counts at the
/// record's end.
///
/// # Errors
/// [`Unread`]: what was taken before it must not be used.
pub fn each(
    store: &mut Store,
    wanted: &PastArgs,
    progress: &mut Progress,
    mut take: impl FnMut(Past),
) -> Result<Decisions, Unread> {
    let mut decisions = Decisions::default();
    let mut taken = 0;
    let read = store.read(|entries| {
        for entry in entries {
            let Some(past) = decisions.follow(entry.record, wanted) else {
                continue;
            };
            take(past);
            taken += 1;
            if taken % STEP == 0 {
                progress.say(&format!("{taken} decisions read"));
            }
        }
    });
    read.map_err(|error| Unread(error.to_string()))?;
    Ok(decisions)
}

/// The decision that a record is; its rules are not in it.
fn decision(record: Record) -> Option<Past> {
    let past = |at, call, tool, fingerprint, verdict, basis: Option<Box<Basis>>| Past {
        at,
        call,
        tool,
        fingerprint,
        verdict,
        arguments: basis.as_ref().and_then(|basis| basis.arguments.clone()),
        basis,
        rules: None,
    };
    match record {
        // The decision was to ask.
        Record::Denied {
            reason: DenyReason::ApprovalRefused | DenyReason::ApprovalExpired,
            basis: None,
            ..
        } => None,
        Record::Denied {
            at,
            call,
            tool,
            fingerprint,
            reason,
            grant,
            basis,
        } => {
            let verdict = Verdict::Deny { reason, grant };
            Some(past(at, call, tool, fingerprint, verdict, basis))
        }
        Record::Dispatched {
            at,
            call,
            tool,
            fingerprint,
            grant,
            approval,
            basis,
            ..
        } => {
            let verdict = Verdict::Permit { grant, approval };
            Some(past(at, call, tool, fingerprint, verdict, basis))
        }
        Record::Asked {
            request,
            fingerprint,
            basis,
            ..
        } => {
            let call = CallKey {
                session: SessionKey {
                    role: request.role,
                    session: request.session,
                },
                call: request.call,
            };
            let verdict = Verdict::Ask {
                approval: Some(request.approval),
            };
            let asked = past(
                request.created,
                call,
                request.tool,
                fingerprint,
                verdict,
                basis,
            );
            Some(Past {
                // Empty: forgotten. Nobody is asked about arguments that are no object.
                arguments: Some(request.arguments).filter(|text| !text.is_empty()),
                ..asked
            })
        }
        _ => None,
    }
}
