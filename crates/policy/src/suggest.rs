//! The smallest grant that would have permitted one call, as TOML.

use proto::{Access, Effects, GrantId, RoleKind, RoleName, Timestamp};
use serde_json::Value;

use crate::decide::{self, Heard};
use crate::decision::{Ask, Decision, Query};
use crate::grant::{Grant, Word};
use crate::pins::{self, Pinned};
use crate::ruleset::{EffectiveTool, Ruleset};
use crate::words;

mod block;
mod free;
mod lines;
mod seen;
mod tuple;

use free::Free;
pub use seen::{How, Left, Seen, SeenGrant, Why, suggest_seen};

/// Milliseconds that a suggested grant lasts.
pub const SUGGESTED_TTL: u64 = 3_600_000;

/// What would let a call run.
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Suggestion {
    /// It runs already.
    Permitted {
        /// The grant that permits it.
        grant: GrantId,
    },
    /// This grant, which permits exactly this call (equal values), once, within the hour.
    Grant(Proposal),
    /// This grant, which permits more than this call.
    Wider {
        /// The grant.
        proposal: Proposal,
        /// The pointers at which it is wider, and what may stand there.
        pointers: Vec<(String, String)>,
    },
    /// A person is asked already: approving is what lets it run. What would end the asking.
    Asked {
        /// In file order; never empty.
        by: Vec<Restriction>,
    },
    /// No further grant helps: these say no, whatever else is granted. What would end that.
    Restricted {
        /// In file order; never empty.
        by: Vec<Restriction>,
    },
    /// No grant can be written for exactly this call.
    Impossible {
        /// Why, in words; no value of the arguments.
        why: String,
    },
}

/// A grant to add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// Its id, which is free.
    pub id: GrantId,
    /// The lines below `[[grant]]`; printable ASCII. They hold values of the arguments.
    pub toml: String,
    /// What the call then gets: it runs, or a person is asked.
    pub answer: Access,
    /// What else to know, a sentence each.
    pub notes: Vec<String>,
}

/// A grant that stands in the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restriction {
    /// Which.
    pub grant: GrantId,
    /// What would end it, in words.
    pub instead: String,
    /// The lines to write into it, as TOML, where that is enough; printable ASCII. They hold values
    /// of the arguments.
    pub lines: Option<String>,
}

/// The smallest change of the rules that would permit exactly this call: in general a grant with an
/// `equals` for each leaf of the arguments. `where` does not tell a list from an object whose keys
/// are 0, 1 and so on; values are equal as `equals` compares them.
pub fn suggest(ruleset: &Ruleset, query: &Query<'_>) -> Suggestion {
    match Call::open(ruleset, query) {
        Ok((call, pinned)) => call
            .propose(pinned)
            .unwrap_or_else(|why| Suggestion::Impossible { why }),
        Err(otherwise) => otherwise,
    }
}

/// A call that does not run.
struct Call<'a> {
    ruleset: &'a Ruleset,
    query: &'a Query<'a>,
    heard: Vec<Heard<'a>>,
    arguments: Value,
}

impl<'a> Call<'a> {
    /// A call that a further grant may let through, and its arguments pinned; else what to know of
    /// it.
    fn open(ruleset: &'a Ruleset, query: &'a Query<'a>) -> Result<(Call<'a>, Pinned), Suggestion> {
        let decision = ruleset.decide(query);
        if let Decision::Permit(permit) = &decision {
            let grant = permit.grant.clone();
            return Err(Suggestion::Permitted { grant });
        }
        let Some(arguments) = decide::parse(query.arguments) else {
            let why = "the arguments are no JSON object without duplicate keys, and only a grant \
                       that looks at no argument of any call could permit them";
            return Err(Suggestion::Impossible {
                why: why.to_owned(),
            });
        };
        let pinned = pins::pin(&arguments);
        let call = Call {
            ruleset,
            query,
            heard: ruleset
                .candidates(query)
                .map(|grant| Heard::of(grant, query, Some(&arguments)))
                .collect(),
            arguments,
        };
        let by = call.restrictions(Word::Deny, pinned.as_ref().ok());
        if !by.is_empty() {
            return Err(Suggestion::Restricted { by });
        }
        if let Decision::Ask(ask) = &decision {
            let by = call.asking(ask, pinned.as_ref().ok());
            if !by.is_empty() {
                return Err(Suggestion::Asked { by });
            }
        }
        match pinned {
            Ok(pinned) => Ok((call, pinned)),
            Err(why) => Err(Suggestion::Impossible { why }),
        }
    }
}

impl Call<'_> {
    /// The restrictions that apply and say `word`.
    fn restrictions(&self, word: Word, pinned: Option<&Pinned>) -> Vec<Restriction> {
        let applying = self.heard.iter().filter(|heard| heard.applies());
        applying
            .filter(|heard| heard.word == word)
            .map(|heard| self.restriction(heard.grant, pinned))
            .collect()
    }

    fn restriction(&self, grant: &Grant, pinned: Option<&Pinned>) -> Restriction {
        let mut would = Vec::new();
        let query = self.query;
        if grant.effect == Word::Ask && grant.word(query.tool, query.label) == Word::Deny {
            would.extend(self.milder(grant));
        }
        // An `unless` needs a value to hold on to, and must name each exactly.
        let exact = pinned.filter(|pinned| pinned.wider.is_empty() && self.has_leaves());
        let lines = exact.filter(|_| grant.unless.is_none());
        if grant.unless.is_some() {
            would.push(
                "its `unless` would have to match, and it does not; what it leaves out is all of \
                 its pointers together"
                    .to_owned(),
            );
        } else if lines.is_some() {
            would.push(
                "an `unless` with these values lets them off, whatever else stands beside them"
                    .to_owned(),
            );
        } else {
            would.push("an `unless` that names these arguments would let them off".to_owned());
        }
        Restriction {
            grant: grant.id.clone(),
            instead: would.join("; or "),
            lines: lines.map(|pinned| pinned.toml("unless")),
        }
    }

    fn has_leaves(&self) -> bool {
        self.arguments
            .as_object()
            .is_some_and(|fields| !fields.is_empty())
    }

    /// What a grant that says deny at this label would have to say.
    fn milder(&self, grant: &Grant) -> Option<String> {
        let (tool, label) = (self.query.tool, self.query.label);
        let mut parts = Vec::new();
        if label.class > grant.highest_class(tool) && grant.above_max == Word::Deny {
            parts.push(format!("`max_class = \"{}\"`", label.class));
        }
        if label.untrusted && grant.word_untrusted(tool) == Word::Deny {
            parts.push("`untrusted = \"ask\"`".to_owned());
        }
        if parts.is_empty() && grant.terms.approvers.is_empty() {
            parts.push("`approvers`, because it names nobody to ask".to_owned());
        }
        let said = parts.join(" and ");
        (!said.is_empty()).then(|| format!("it would not deny at this label if it said {said}"))
    }

    /// What asks, where adding a grant cannot or should not end it: asks that apply, and any at all
    /// in an untrusted session, whose caller a stranger may steer.
    fn asking(&self, ask: &Ask, pinned: Option<&Pinned>) -> Vec<Restriction> {
        let by = self.restrictions(Word::Ask, pinned);
        if !by.is_empty() || !self.query.label.untrusted {
            return by;
        }
        let one = |grant: &crate::decision::AskingGrant| Restriction {
            grant: grant.id.clone(),
            instead: "the session has taken in what a stranger may have written: approve the \
                      call; `untrusted = \"allow\"` there, and a `max_class` that covers the \
                      label, would let such calls run unseen"
                .to_owned(),
            lines: None,
        };
        ask.grants.iter().map(one).collect()
    }

    fn propose(&self, pinned: Pinned) -> Result<Suggestion, String> {
        let id = Free::of(self.ruleset, [self.query]).next("once", &self.query.tool.name)?;
        let mut notes = Vec::new();
        let toml = self.toml(&id, &pinned, &mut notes);
        let (more, _) = self
            .ruleset
            .with_grant(&toml)
            .map_err(|fault| format!("no grant can be added: {fault}"))?;
        let answer = match more.decide(self.query) {
            Decision::Permit(_) => Access::Allow,
            Decision::Ask(_) => Access::Ask,
            Decision::Deny(_) => {
                return Err("a grant for exactly this call would still be denied".to_owned());
            }
        };
        self.notes(&mut notes);
        let proposal = Proposal {
            id,
            toml,
            answer,
            notes,
        };
        Ok(if pinned.wider.is_empty() {
            Suggestion::Grant(proposal)
        } else {
            let pointers = pinned.wider;
            Suggestion::Wider { proposal, pointers }
        })
    }

    fn toml(&self, id: &GrantId, pinned: &Pinned, notes: &mut Vec<String>) -> String {
        let query = self.query;
        let until = query.now.millis().saturating_add(SUGGESTED_TTL);
        let expires = Timestamp::from_millis(until).unwrap_or(query.now);
        format!(
            "id = \"{id}\"\nroles = [\"{}\"]\nsessions = [\"{}\"]\ntools = [\"{}\"]\n\
             effect = \"allow\"\n{}{}max_uses = 1\nexpires = \"{}\"\n\
             why = \"for one call that was denied; say here why it may run\"\n",
            query.role,
            query.session,
            query.tool.name,
            pinned.toml("where"),
            self.label_terms(notes),
            words::date(expires),
        )
    }

    /// What the grant says of labels: only what it must.
    fn label_terms(&self, notes: &mut Vec<String>) -> String {
        let (tool, label) = (self.query.tool, self.query.label);
        let mut terms = String::new();
        if label.class > tool.clearance {
            terms += &format!("max_class = \"{}\"\n", label.class);
            notes.push(format!(
                "the session has seen {} data, over the tool's clearance {}: with `max_class` it \
                 may go there",
                label.class, tool.clearance
            ));
        }
        let harmless = is_harmless(tool);
        if harmless && self.loads_as_harmless() {
            return terms;
        }
        let asks_by_itself = !self.ruleset.context.approvers.is_empty();
        match (label.untrusted, someone_to_ask(self.ruleset)) {
            (false, _) if asks_by_itself => {}
            (false, _) => terms += "untrusted = \"deny\"\n",
            (true, _) if harmless => terms += "untrusted = \"allow\"\n",
            (true, Some(approvers)) => {
                terms += &asks(self.ruleset, &approvers);
                notes.push(
                    "the session has taken in what a stranger may have written, so this asks a \
                     person instead of letting it run"
                        .to_owned(),
                );
            }
            (true, None) => {
                terms += "untrusted = \"allow\"\n";
                notes.push(
                    "the session has taken in what a stranger may have written, and there is no \
                     approver role to ask: this lets it run unseen"
                        .to_owned(),
                );
            }
        }
        terms
    }

    /// Whether a grant for this tool alone may leave `untrusted` out (see `config::people`).
    fn loads_as_harmless(&self) -> bool {
        let declared = self.ruleset.tool(self.query.tool.name.as_str());
        declared.is_some_and(|tool| tool.declared && tool.effects == Effects::Read && !tool.egress)
            || !self.ruleset.context.approvers.is_empty()
    }

    /// Which grants nearly permit it, and what they would have to say.
    fn notes(&self, notes: &mut Vec<String>) {
        for heard in self.heard.iter().filter(|heard| heard.permits()) {
            let id = &heard.grant.id;
            if heard.expired.is_some() {
                notes.push(format!(
                    "grant `{id}` would permit it, and has expired: renew it"
                ));
            } else if heard.spent {
                notes.push(format!(
                    "grant `{id}` would permit it, and its uses are spent"
                ));
            } else if heard.word == Word::Deny
                && let Some(milder) = self.milder(heard.grant)
            {
                notes.push(format!("grant `{id}` permits these arguments: {milder}"));
            }
        }
    }
}

/// The configuration's approvers, else every approver role; `None`: there is none.
fn someone_to_ask(ruleset: &Ruleset) -> Option<Vec<RoleName>> {
    let context = &ruleset.context;
    if !context.approvers.is_empty() {
        return Some(context.approvers.clone());
    }
    let approvers = context.roles.iter();
    let approvers: Vec<_> = approvers
        .filter(|(_, (kind, _))| *kind == RoleKind::Approver)
        .map(|(name, _)| name.clone())
        .collect();
    (!approvers.is_empty()).then_some(approvers)
}

/// That an untrusted session is asked about, as lines of a grant; nobody is named who is asked by
/// default.
fn asks(ruleset: &Ruleset, approvers: &[RoleName]) -> String {
    let mut terms = "untrusted = \"ask\"\n".to_owned();
    if ruleset.context.approvers.is_empty() {
        let names: Vec<_> = approvers.iter().map(|n| format!("\"{n}\"")).collect();
        terms += &format!("approvers = [{}]\n", names.join(", "));
    }
    terms
}

/// Whether it neither changes anything nor carries anything out.
fn is_harmless(tool: &EffectiveTool) -> bool {
    tool.effects == Effects::Read && !tool.egress
}
