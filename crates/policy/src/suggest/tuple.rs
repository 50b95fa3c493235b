//! Calls gathered by what a grant would have to say for them: the session, and a value for each
//! pointer.

use std::collections::{BTreeMap, BTreeSet};

use proto::{DataClass, RoleName, ToolName};

use super::seen::{How, Left, Why};
use super::{Call, Restriction, Suggestion, is_harmless};
use crate::decide;
use crate::decision::Query;
use crate::grant::Word;
use crate::pins::{self, Pinned};
use crate::ruleset::Ruleset;

/// Calls of one role and tool whose arguments have these pointers, as TOML.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Form {
    pub(super) role: RoleName,
    pub(super) tool: ToolName,
    pub(super) pointers: Vec<String>,
}

/// What tells calls of one form apart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Tuple {
    pub(super) untrusted: bool,
    /// The session, or `*`; then the values, in the order of the pointers, as TOML.
    pub(super) sides: Vec<String>,
}

/// The calls that are one tuple.
#[derive(Debug, Clone, Default)]
pub(super) struct Alike {
    /// The places of those that a grant would let through.
    pub(super) calls: Vec<usize>,
    /// Whether the tool's clearance is too low for one of them.
    over: bool,
    /// The highest class of their labels.
    class: DataClass,
    /// Whether one was of a tool that changes something or carries something out.
    pub(super) harmful: bool,
    /// Whether a person was asked about one.
    pub(super) asked: bool,
}

impl Alike {
    /// The `max_class` that a grant needs for them.
    pub(super) fn max_class(&self) -> Option<DataClass> {
        self.over.then_some(self.class)
    }
}

/// All of a set of calls.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) forms: BTreeMap<Form, BTreeMap<Tuple, Alike>>,
    /// Why each of the others is left out.
    pub(super) left: BTreeMap<Left, u64>,
    /// Of which calls run with arguments that cannot be read.
    unreadable: BTreeSet<(RoleName, ToolName)>,
}

impl Gathered {
    pub(super) fn of(ruleset: &Ruleset, queries: &[Query<'_>], how: &How) -> Gathered {
        let mut gathered = Gathered::default();
        for (place, query) in queries.iter().enumerate() {
            if let Err((why, words)) = gathered.take(ruleset, place, query, how) {
                gathered.leave(query, why, words);
            }
        }
        gathered
    }

    /// Counts a call that is left out.
    pub(super) fn leave(&mut self, query: &Query<'_>, why: Why, words: String) {
        let left = Left {
            why,
            role: query.role.clone(),
            tool: query.tool.name.clone(),
            words,
        };
        *self.left.entry(left).or_default() += 1;
    }

    /// Whether a `where` would end calls of them that run (decision 0004).
    pub(super) fn is_unreadable(&self, form: &Form) -> bool {
        let key = (form.role.clone(), form.tool.clone());
        self.unreadable.contains(&key)
    }

    fn take(
        &mut self,
        ruleset: &Ruleset,
        place: usize,
        query: &Query<'_>,
        how: &How,
    ) -> Result<(), (Why, String)> {
        let (call, pinned) = Call::open(ruleset, query).map_err(|otherwise| {
            self.otherwise(query, how, &otherwise);
            words(otherwise)
        })?;
        let by = call.restrictions(Word::Ask, None);
        if !by.is_empty() {
            self.asked(query, how, &pinned);
            return Err((Why::Asked, names(&by)));
        }
        if query.label.untrusted && !how.named.contains(query.session) {
            return Err((Why::Untrusted, format!("session `{}`", query.session)));
        }
        let alike = self.alike(query, how, &pinned).ok_or_else(|| {
            let why = "no matcher matches some of its values alone";
            (Why::Impossible, why.to_owned())
        })?;
        alike.calls.push(place);
        alike.over |= query.label.class > query.tool.clearance;
        alike.class = alike.class.max(query.label.class);
        alike.harmful |= !is_harmless(query.tool);
        Ok(())
    }

    fn otherwise(&mut self, query: &Query<'_>, how: &How, otherwise: &Suggestion) {
        let arguments = decide::parse(query.arguments);
        match (otherwise, arguments) {
            (Suggestion::Permitted { .. }, None) => {
                let key = (query.role.clone(), query.tool.name.clone());
                self.unreadable.insert(key);
            }
            (Suggestion::Asked { .. }, Some(arguments)) => {
                if let Ok(pinned) = pins::pin(&arguments) {
                    self.asked(query, how, &pinned);
                }
            }
            _ => {}
        }
    }

    fn asked(&mut self, query: &Query<'_>, how: &How, pinned: &Pinned) {
        if let Some(alike) = self.alike(query, how, pinned) {
            alike.asked = true;
        }
    }

    /// Those that are the same tuple; `None`: some values of it have no matcher.
    fn alike(&mut self, query: &Query<'_>, how: &How, pinned: &Pinned) -> Option<&mut Alike> {
        let exact = pinned.exact()?;
        let form = Form {
            role: query.role.clone(),
            tool: query.tool.name.clone(),
            pointers: exact.keys().map(|&pointer| pointer.to_owned()).collect(),
        };
        let untrusted = query.label.untrusted;
        let session = match how.any_session && !untrusted {
            true => "*",
            false => query.session.as_str(),
        };
        let sides = std::iter::once(&session).chain(exact.values());
        let sides = sides.map(|&side| side.to_owned()).collect();
        let tuples = self.forms.entry(form).or_default();
        Some(tuples.entry(Tuple { untrusted, sides }).or_default())
    }
}

/// Why a call is left out that no further grant lets through.
fn words(otherwise: Suggestion) -> (Why, String) {
    match otherwise {
        Suggestion::Permitted { grant } => (Why::Permitted, format!("grant `{grant}`")),
        Suggestion::Asked { by } => (Why::Asked, names(&by)),
        Suggestion::Restricted { by } => (Why::Restricted, names(&by)),
        Suggestion::Impossible { why } => (Why::Impossible, why),
        Suggestion::Grant(_) | Suggestion::Wider { .. } => (Why::Impossible, String::new()),
    }
}

fn names(by: &[Restriction]) -> String {
    let names: Vec<_> = by
        .iter()
        .map(|one| format!("grant `{}`", one.grant))
        .collect();
    names.join(", ")
}
