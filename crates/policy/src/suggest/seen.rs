//! A few grants that would have permitted a set of calls, as TOML: never wider than what was seen.

use std::collections::{BTreeMap, BTreeSet};

use proto::{Access, DataClass, GrantId, RoleName, SessionId, ToolName};

use super::block::{self, Block};
use super::free::Free;
use super::tuple::{Alike, Form, Gathered, Tuple};
use super::{asks, someone_to_ask};
use crate::decision::{Decision, Query};
use crate::limits::{MAX_DIFFERENT, MAX_GRANTS, MAX_LIST, MAX_SUGGESTED, MAX_SUGGESTED_TEXT};
use crate::pins;
use crate::ruleset::Ruleset;
use crate::words;

/// For whom grants are suggested.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct How {
    /// Sessions of which untrusted calls count too; those of all others are left out.
    pub named: BTreeSet<SessionId>,
    /// Whether the grants are for any session, where it is trusted, and not for those seen alone.
    pub any_session: bool,
}

/// What would let a set of calls run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seen {
    /// Those for the most calls first.
    pub grants: Vec<SeenGrant>,
    /// The places of the calls that they let through, in what was given.
    pub covered: BTreeSet<usize>,
    /// How many others there are, by why.
    pub left: BTreeMap<Left, u64>,
}

/// A grant to add to a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenGrant {
    /// Its id, which is free.
    pub id: GrantId,
    /// For which agent role.
    pub role: RoleName,
    /// For which tool.
    pub tool: ToolName,
    /// Calls of the set that it lets through.
    pub calls: u64,
    /// What they then get: they run, or a person is asked.
    pub answer: Access,
    /// The lines below `[[grant]]`; printable ASCII. They hold values of the arguments.
    pub toml: String,
}

/// Calls that no suggested grant is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Left {
    /// Why.
    pub why: Why,
    /// Their agent role.
    pub role: RoleName,
    /// Their tool.
    pub tool: ToolName,
    /// What else to know: which grants, which session; no value of the arguments.
    pub words: String,
}

/// Why no suggested grant is for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// It runs already.
    Permitted,
    /// A person is asked: approving is what lets it run.
    Asked,
    /// No further grant helps: some say no, whatever else is granted.
    Restricted,
    /// Its session is untrusted, and was not named.
    Untrusted,
    /// There are more than the limits have room for.
    TooMany,
    /// No grant can be written for exactly this call.
    Impossible,
}

impl Why {
    /// A word for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Why::Permitted => "permitted",
            Why::Asked => "asked",
            Why::Restricted => "restricted",
            Why::Untrusted => "untrusted",
            Why::TooMany => "too_many",
            Why::Impossible => "impossible",
        }
    }

    /// The same in a few words.
    pub fn words(self) -> &'static str {
        match self {
            Why::Permitted => "they run already",
            Why::Asked => "a person is asked",
            Why::Restricted => "no further grant helps: these say no, whatever else is granted",
            Why::Untrusted => {
                "the session is untrusted: a stranger may have steered it; they count where it is named"
            }
            Why::TooMany => "more than are suggested at once",
            Why::Impossible => "no grant can be written for exactly these calls",
        }
    }
}

impl Seen {
    /// The grants as they can be appended to a configuration; empty where there is none.
    pub fn toml(&self) -> String {
        let below = |grant: &SeenGrant| format!("[[grant]]\n{}", grant.toml);
        self.grants.iter().map(below).collect::<Vec<_>>().join("\n")
    }
}

/// Grants that would permit these calls and nothing else, few but not always the fewest: a block of them is for all
/// combinations of its sessions and the values of its pointers only where each was seen. Values are
/// equal as `equals` compares them; `where` does not tell a list from an object whose keys are 0, 1
/// and so on. A grant holds up to the tool's clearance, or where calls were seen above it up to
/// their class; for trusted sessions alone, or for the named untrusted ones, of which then a person
/// is asked where anybody can be. They are the same for any order of the calls.
///
/// There are at most [`MAX_SUGGESTED`] grants of [`MAX_SUGGESTED_TEXT`] bytes, for at most
/// [`MAX_DIFFERENT`] different arguments of one role, tool and set of pointers: those with the most
/// calls. The others are [`Why::TooMany`].
///
/// # Errors
/// In words: the grants do not load, or deciding again under them shows that they do not permit just
/// these calls. Then none may be used.
pub fn suggest_seen(ruleset: &Ruleset, queries: &[Query<'_>], how: &How) -> Result<Seen, String> {
    let mut gathered = Gathered::of(ruleset, queries, how);
    let mut drafts = Vec::new();
    for (form, tuples) in std::mem::take(&mut gathered.forms) {
        let tuples = eligible(&mut gathered, queries, &form, tuples);
        drafts.extend(drafted(&form, &tuples));
    }
    drafts.sort_by(|a, b| (b.calls.len(), &a.kind).cmp(&(a.calls.len(), &b.kind)));
    let mut writer = Writer {
        ruleset,
        queries,
        free: Free::of(ruleset, queries),
        room: MAX_SUGGESTED_TEXT,
        seen: Seen::default(),
    };
    for draft in drafts {
        if let Err(draft) = writer.take(draft)? {
            for place in &draft.calls {
                if let Some(query) = queries.get(*place) {
                    gathered.leave(query, Why::TooMany, String::new());
                }
            }
        }
    }
    let mut seen = writer.seen;
    seen.left = gathered.left;
    check(ruleset, queries, &seen)?;
    Ok(seen)
}

/// What a grant is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    form: Form,
    trust: Trust,
    max_class: Option<DataClass>,
    /// Its sessions and values.
    sides: Vec<BTreeSet<String>>,
}

/// Whether the sessions are untrusted, and what then may be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Trust {
    Trusted,
    Harmless,
    Untrusted,
}

/// A grant that is not written yet.
#[derive(Debug)]
struct Draft {
    kind: Kind,
    calls: Vec<usize>,
}

/// The tuples that grants are suggested for; the calls of all others are counted.
fn eligible(
    gathered: &mut Gathered,
    queries: &[Query<'_>],
    form: &Form,
    tuples: BTreeMap<Tuple, Alike>,
) -> Vec<(Tuple, Alike)> {
    let unreadable = gathered.is_unreadable(form);
    let mut leave = |alike: &Alike, why, words: &str| {
        for query in alike.calls.iter().filter_map(|place| queries.get(*place)) {
            gathered.leave(query, why, words.to_owned());
        }
    };
    let mut kept = Vec::new();
    for (tuple, alike) in tuples {
        if alike.calls.is_empty() {
        } else if unreadable {
            let why = "such calls run with arguments that are no JSON object, and a grant that \
                       looks at arguments would end that";
            leave(&alike, Why::Impossible, why);
        } else if alike.asked && !tuple.untrusted {
            leave(&alike, Why::Asked, "in other sessions");
        } else {
            kept.push((tuple, alike));
        }
    }
    kept.sort_by(|(a, these), (b, those)| (those.calls.len(), a).cmp(&(these.calls.len(), b)));
    for (_, alike) in kept.iter().skip(MAX_DIFFERENT) {
        leave(alike, Why::TooMany, "");
    }
    kept.truncate(MAX_DIFFERENT);
    kept
}

/// Their blocks: tuples that need different labels are kept apart.
fn drafted(form: &Form, tuples: &[(Tuple, Alike)]) -> Vec<Draft> {
    let mut apart: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for pair in tuples {
        let (tuple, alike) = pair;
        let trust = match tuple.untrusted {
            false => Trust::Trusted,
            true if alike.harmful || alike.asked => Trust::Untrusted,
            true => Trust::Harmless,
        };
        apart
            .entry((trust, alike.max_class()))
            .or_default()
            .push(pair);
    }
    let mut drafts = Vec::new();
    for ((trust, max_class), mut pairs) in apart {
        pairs.sort_by(|(a, _), (b, _)| a.cmp(b));
        let sides = pairs.iter().map(|(tuple, _)| tuple.sides.as_slice());
        let draft = |block: Block<'_>| Draft {
            kind: Kind {
                form: form.clone(),
                trust,
                max_class,
                sides: block.sides.iter().map(owned).collect(),
            },
            calls: block
                .tuples
                .iter()
                .filter_map(|place| pairs.get(*place))
                .flat_map(|(_, alike)| alike.calls.iter().copied())
                .collect(),
        };
        drafts.extend(block::merge(sides, MAX_LIST).into_iter().map(draft));
    }
    drafts
}

fn owned(side: &BTreeSet<&str>) -> BTreeSet<String> {
    side.iter().map(|&value| value.to_owned()).collect()
}

/// Writes grants while there is room.
struct Writer<'a> {
    ruleset: &'a Ruleset,
    queries: &'a [Query<'a>],
    free: Free,
    /// Bytes that are left.
    room: usize,
    seen: Seen,
}

impl Writer<'_> {
    /// Gives the draft back where there is no room for it.
    fn take(&mut self, draft: Draft) -> Result<Result<(), Draft>, String> {
        let most = MAX_SUGGESTED.min(MAX_GRANTS.saturating_sub(self.ruleset.all().count()));
        if self.seen.grants.len() >= most {
            return Ok(Err(draft));
        }
        let mut free = self.free.clone();
        let id = free.next("seen", &draft.kind.form.tool)?;
        let (terms, answer) = self.untrusted(draft.kind.trust);
        let toml = self.toml(&id, &draft, &terms);
        if toml.len() > self.room {
            return Ok(Err(draft));
        }
        self.room -= toml.len();
        self.free = free;
        let Form { role, tool, .. } = draft.kind.form;
        self.seen.grants.push(SeenGrant {
            id,
            role,
            tool,
            calls: count(&draft.calls),
            answer,
            toml,
        });
        self.seen.covered.extend(draft.calls);
        Ok(Ok(()))
    }

    fn toml(&self, id: &GrantId, draft: &Draft, terms: &str) -> String {
        let Kind {
            form,
            max_class,
            sides,
            ..
        } = &draft.kind;
        let sides: Vec<BTreeSet<&str>> = sides
            .iter()
            .map(|side| side.iter().map(String::as_str).collect())
            .collect();
        let sessions = sides.first().into_iter().flatten();
        let sessions: Vec<_> = sessions.map(|name| format!("\"{name}\"")).collect();
        let places = form.pointers.iter().map(String::as_str);
        let max_class = max_class.map(|class| format!("max_class = \"{class}\"\n"));
        format!(
            "id = \"{id}\"\nroles = [\"{}\"]\nsessions = [{}]\ntools = [\"{}\"]\neffect = \"allow\"\n\
             {}{}{terms}why = \"{}; a person should say here why they may run\"\n",
            form.role,
            sessions.join(", "),
            form.tool,
            pins::any_of(places.zip(sides.iter().skip(1))),
            max_class.unwrap_or_default(),
            self.seen_between(&draft.calls),
        )
    }

    fn seen_between(&self, calls: &[usize]) -> String {
        let times = || calls.iter().filter_map(|place| self.queries.get(*place));
        let first = times().map(|query| query.now).min().unwrap_or_default();
        let last = times().map(|query| query.now).max().unwrap_or_default();
        let (calls, first, last) = (calls.len(), words::date(first), words::date(last));
        match calls {
            1 => format!("from 1 call seen at {first}"),
            _ => format!("from {calls} calls seen between {first} and {last}"),
        }
    }

    /// What a grant says of untrusted sessions, and what its calls get.
    fn untrusted(&self, trust: Trust) -> (String, Access) {
        let allow = || ("untrusted = \"allow\"\n".to_owned(), Access::Allow);
        match (trust, someone_to_ask(self.ruleset)) {
            (Trust::Trusted, _) => ("untrusted = \"deny\"\n".to_owned(), Access::Allow),
            (Trust::Harmless, _) | (Trust::Untrusted, None) => allow(),
            (Trust::Untrusted, Some(approvers)) => (asks(self.ruleset, &approvers), Access::Ask),
        }
    }
}

fn count(calls: &[usize]) -> u64 {
    u64::try_from(calls.len()).unwrap_or(u64::MAX)
}

/// Decides every call again: the covered ones are let through, and no other gets another answer.
fn check(ruleset: &Ruleset, queries: &[Query<'_>], seen: &Seen) -> Result<(), String> {
    let more = ruleset.with_grants(&seen.toml())?;
    let asking = |id: &GrantId| {
        let mut grants = seen.grants.iter();
        grants.any(|grant| grant.id == *id && grant.answer == Access::Ask)
    };
    for (place, query) in queries.iter().enumerate() {
        let as_expected = match (seen.covered.contains(&place), more.decide(query)) {
            (true, Decision::Permit(_)) => true,
            (true, Decision::Ask(ask)) => ask.grants.iter().all(|grant| asking(&grant.id)),
            (true, Decision::Deny(_)) => false,
            (false, after) => is_alike(&ruleset.decide(query), &after),
        };
        if !as_expected {
            return Err(format!(
                "the suggested grants were decided under again, and a call of role {} for tool {} \
                 did not get what it should: this is a fault of rolebroker; report it",
                query.role, query.tool.name
            ));
        }
    }
    Ok(())
}

/// The same answer; a denial's reason may be another.
fn is_alike(one: &Decision, other: &Decision) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other)
}
