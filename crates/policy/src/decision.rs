//! What is asked of the ruleset, and what it answers.

use std::collections::BTreeMap;

use proto::{DenyReason, GrantId, Label, RoleName, SessionId, Timestamp};

use crate::canonical;
use crate::decide;
use crate::pointer::Pointer;
use crate::ruleset::EffectiveTool;

/// One question: may this call run, now?
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// The agent role.
    pub role: &'a RoleName,
    /// Its session.
    pub session: &'a SessionId,
    /// The tool as it counts now: declaration, offer floor and offer joined.
    pub tool: &'a EffectiveTool,
    /// The arguments' text.
    pub arguments: &'a str,
    /// The label that decides: the session's or the role's.
    pub label: Label,
    /// The time.
    pub now: Timestamp,
    /// Uses spent so far, by grant; absent is 0.
    pub uses: &'a BTreeMap<GrantId, u64>,
}

/// The answer. Approvals are left aside here: whoever holds one that covers an [`Ask`] makes a
/// Permit of it with [`Ask::permit`].
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It may run.
    Permit(Permit),
    /// Somebody must be asked.
    Ask(Ask),
    /// It may not run.
    Deny(Deny),
}

/// It may run; and what its dispatch must spend.
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permit {
    /// The grant that permits: the first in file order that says allow, those without `max_uses`
    /// first; for an approved ask, the first that permits and says more than deny.
    pub grant: GrantId,
    /// The grants of which the dispatch spends one use each: the named one, and for an approved
    /// ask every allow that asks and permits; of those, the ones that have `max_uses`.
    pub spend: Vec<GrantId>,
}

/// It may not run.
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deny {
    /// Why.
    pub reason: DenyReason,
    /// The grant that says so, where one does.
    pub grant: Option<GrantId>,
}

/// Somebody must be asked: by each of these grants, in file order.
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// Never empty.
    pub grants: Vec<AskingGrant>,
    /// What an approved dispatch may name and spend.
    pub permit: Permit,
}

/// A grant that asks, and whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskingGrant {
    /// Its name.
    pub id: GrantId,
    /// SHA-256 over all that it says: an approval holds for exactly this.
    pub hash: [u8; 32],
    /// Its own reason.
    pub why: String,
    /// The JSON Pointers whose values a standing approval pins; `""` alone: all of the arguments.
    pub pointers: Vec<String>,
    /// Whom it asks: never empty.
    pub approvers: Vec<RoleName>,
    /// How many distinct uids must approve.
    pub quorum: u32,
    /// Milliseconds that the question stays open.
    pub approval_ttl: u64,
    /// Milliseconds that a standing approval lasts, where it may be given.
    pub standing_ttl: Option<u64>,
    /// Calls that a standing approval covers, where it may be given.
    pub standing_uses: Option<u64>,
}

/// The values that a standing approval pins: pointer to canonical JSON, `None` where absent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pins(pub BTreeMap<String, Option<String>>);

impl Ask {
    /// The values at every pointer of every asking grant; under `""` the whole of the arguments
    /// where one pins them all. A number that a double holds may have been rounded when it was
    /// read: then the arguments' own text is pinned too, so that only the same text is equal.
    /// `None` if the arguments do not parse.
    pub fn pins(&self, arguments: &str) -> Option<Pins> {
        let value = decide::parse(arguments)?;
        let mut pins = BTreeMap::new();
        let mut exact = true;
        for text in self.grants.iter().flat_map(|grant| &grant.pointers) {
            // A pointer of a compiled grant was checked when it was read.
            let found = Pointer::new(text).ok()?.resolve(&value).cloned();
            exact &= found.as_ref().is_none_or(canonical::is_exact);
            pins.insert(text.clone(), found.as_ref().map(canonical::text));
        }
        if !exact {
            pins.insert(String::new(), Some(arguments.to_owned()));
        }
        Some(Pins(pins))
    }
}

/// Why a grant counted or fell, for `explain` and for the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceLine {
    /// Which grant.
    pub grant: GrantId,
    /// How it stands to the call.
    pub standing: Standing,
    /// What became of it, in plain words; no value from the arguments.
    pub what: String,
}

/// How a grant stands to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Its roles, sessions or tools leave the call out.
    Elsewhere,
    /// It is for such calls, and says nothing of this one.
    Falls,
    /// It has a say.
    Counts,
}
