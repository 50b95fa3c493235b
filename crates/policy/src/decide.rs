//! The judgement of DESIGN 6: which grants speak on a call, and what they say together.

use proto::{Access, DenyReason, Timestamp};
use serde_json::Value;

use crate::decision::{Ask, Decision, Deny, Permit, Query, TraceLine};
use crate::explain;
use crate::grant::{Grant, Reading, Word};

/// Decides over the candidates: grants whose roles, sessions and tools match, in file order.
pub(crate) fn decide(
    candidates: &[&Grant],
    query: &Query<'_>,
    mut trace: Option<&mut Vec<TraceLine>>,
) -> Decision {
    let mut arguments = None;
    if candidates.iter().any(|grant| grant.is_conditional()) {
        arguments = parse(query.arguments);
        if arguments.is_none() {
            return unreadable(candidates, trace);
        }
    }
    let mut tally = Tally::default();
    for grant in candidates {
        let heard = Heard::of(grant, query, arguments.as_ref());
        if let Some(trace) = trace.as_deref_mut() {
            trace.push(explain::heard(&heard, query, arguments.as_ref()));
        }
        tally.add(heard);
    }
    let decision = tally.conclude();
    // A person is shown the arguments, so they must be such that a person and a runner read the
    // same. With a conditional candidate they were parsed above.
    let asks = matches!(decision, Decision::Ask(_));
    if asks && arguments.is_none() && parse(query.arguments).is_none() {
        return unreadable(candidates, trace);
    }
    decision
}

/// The best that any arguments could get.
pub(crate) fn access<'g>(
    candidates: impl Iterator<Item = &'g Grant>,
    query: &Query<'_>,
) -> Option<Access> {
    let mut best = Word::Deny;
    let mut cap = Word::Allow;
    for grant in candidates {
        let word = grant.word(query.tool, query.label);
        // A restriction with a condition may not apply to the best arguments.
        if grant.effect != Word::Allow && !grant.is_conditional() {
            cap = cap.min(word);
        }
        if is_live(grant, query) {
            best = best.max(word);
        }
    }
    match best.min(cap) {
        Word::Allow => Some(Access::Allow),
        Word::Ask => Some(Access::Ask),
        Word::Deny => None,
    }
}

/// Parses arguments strictly: an object, no duplicate keys at any depth.
pub(crate) fn parse(arguments: &str) -> Option<Value> {
    proto::json::parse(arguments).ok().filter(Value::is_object)
}

fn is_live(grant: &Grant, query: &Query<'_>) -> bool {
    !is_spent(grant, query) && !grant.is_expired(query.now)
}

fn is_spent(grant: &Grant, query: &Query<'_>) -> bool {
    grant.max_uses.is_some() && grant.is_spent(query.uses.get(&grant.id).copied().unwrap_or(0))
}

/// The answer where arguments must be read and cannot be.
fn unreadable(candidates: &[&Grant], trace: Option<&mut Vec<TraceLine>>) -> Decision {
    if let Some(trace) = trace {
        trace.clear();
        trace.extend(candidates.iter().map(|grant| explain::unread(grant)));
    }
    match candidates.iter().find(|grant| grant.effect == Word::Deny) {
        Some(grant) => deny(DenyReason::DeniedByGrant, Some(grant)),
        None => deny(DenyReason::NoGrant, None),
    }
}

fn deny(reason: DenyReason, grant: Option<&Grant>) -> Decision {
    Decision::Deny(Deny {
        reason,
        grant: grant.map(|grant| grant.id.clone()),
    })
}

/// One candidate, and all that counts of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Heard<'g> {
    pub(crate) grant: &'g Grant,
    pub(crate) reading: Reading,
    pub(crate) word: Word,
    pub(crate) spent: bool,
    pub(crate) expired: Option<Timestamp>,
}

impl<'g> Heard<'g> {
    pub(crate) fn of(grant: &'g Grant, query: &Query<'_>, arguments: Option<&Value>) -> Self {
        Heard {
            grant,
            reading: grant.read(arguments),
            word: grant.word(query.tool, query.label),
            spent: is_spent(grant, query),
            expired: grant.expires.filter(|_| grant.is_expired(query.now)),
        }
    }

    pub(crate) fn permits(&self) -> bool {
        self.grant.permits(self.reading)
    }

    pub(crate) fn applies(&self) -> bool {
        self.grant.applies(self.reading)
    }
}

/// What the candidates say together.
#[derive(Debug, Default)]
struct Tally<'g> {
    /// The first deny that applies.
    denied: Option<&'g Grant>,
    /// Whether an ask applies.
    ask_applies: bool,
    /// The first ask that applies and says deny.
    ask_denies: Option<&'g Grant>,
    /// The first that would permit, had it not expired.
    expired: Option<&'g Grant>,
    /// What permits, is neither spent nor expired, and its word.
    permitting: Vec<(&'g Grant, Word)>,
    /// Asks that apply, and what permits with the word ask; and whether each permits.
    asking: Vec<(&'g Grant, bool)>,
}

impl<'g> Tally<'g> {
    fn add(&mut self, heard: Heard<'g>) {
        let grant = heard.grant;
        let applies = heard.applies();
        if applies && grant.effect == Word::Deny {
            self.denied = self.denied.or(Some(grant));
            return;
        }
        if applies {
            self.ask_applies = true;
            if heard.word == Word::Deny {
                self.ask_denies = self.ask_denies.or(Some(grant));
            }
        }
        let mut permits = heard.permits() && !heard.spent;
        if permits && heard.expired.is_some() {
            self.expired = self.expired.or(Some(grant));
            permits = false;
        }
        if permits {
            self.permitting.push((grant, heard.word));
        }
        if applies || (permits && heard.word == Word::Ask) {
            self.asking.push((grant, permits));
        }
    }

    /// Steps 2 to 6 of DESIGN 6.
    fn conclude(&self) -> Decision {
        if let Some(grant) = self.denied {
            return deny(DenyReason::DeniedByGrant, Some(grant));
        }
        if self.permitting.is_empty() {
            return match self.expired {
                Some(grant) => deny(DenyReason::GrantExpired, Some(grant)),
                None => deny(DenyReason::NoGrant, None),
            };
        }
        if let Some(grant) = self.ask_denies {
            return deny(DenyReason::TaintTooHigh, Some(grant));
        }
        let more_than_deny = self.permitting.iter().find(|(_, word)| *word > Word::Deny);
        let Some((first, _)) = more_than_deny else {
            let grant = self.permitting.first().map(|(grant, _)| *grant);
            return deny(DenyReason::TaintTooHigh, grant);
        };
        match self.allowing() {
            Some(grant) if !self.ask_applies => Decision::Permit(permit(grant, [grant])),
            Some(_) | None => Decision::Ask(self.ask(first)),
        }
    }

    /// The first that says allow: those without `max_uses` first.
    fn allowing(&self) -> Option<&'g Grant> {
        let mut allowing = self
            .permitting
            .iter()
            .filter(|(_, word)| *word == Word::Allow)
            .map(|(grant, _)| *grant);
        let first = allowing.next()?;
        if first.max_uses.is_none() {
            return Some(first);
        }
        allowing
            .find(|grant| grant.max_uses.is_none())
            .or(Some(first))
    }

    /// An approved ask spends a use of the grant that it names and of every allow that asks.
    fn ask(&self, first: &'g Grant) -> Ask {
        let asking = self
            .asking
            .iter()
            .map(|(grant, permits)| grant.asking(*permits))
            .collect();
        let spent = self
            .permitting
            .iter()
            .filter(|(grant, word)| *word == Word::Ask || grant.id == first.id);
        Ask {
            grants: asking,
            permit: permit(first, spent.map(|(grant, _)| *grant)),
        }
    }
}

/// Names `grant`, and spends a use of those that count them.
pub(crate) fn permit<'g>(grant: &Grant, spend: impl IntoIterator<Item = &'g Grant>) -> Permit {
    let counted = spend.into_iter().filter(|grant| grant.max_uses.is_some());
    Permit {
        grant: grant.id.clone(),
        spend: counted.map(|grant| grant.id.clone()).collect(),
    }
}
