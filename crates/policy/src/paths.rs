//! The ways by which data can leak with no person in between: the shortest sequences of granted
//! tools by which a session takes in what a stranger wrote, sees data of a class, and then reaches
//! a tool that carries data out.
//!
//! Nothing that `decide` would permit is missed. That raising a label never moves an answer up (see
//! `decide`) makes the search small: whatever a session can do late, it could do first. So a leak
//! needs three steps at most: one tool that brings in untrusted content and one that brings in the
//! class, both as a new session may call them, and one with egress that is still permitted at the
//! join of what these bring. Labels of different sessions of a role meet by `join_session`, or
//! because the role has one label; answers of calls that run at the same time meet in one session.
//! Where it is not certain that a restriction applies to all that a grant permits, it is taken not
//! to, and the step names it.

use std::collections::{BTreeMap, BTreeSet};

use proto::{DataClass, GrantId, Label, LabelScope, RoleName, Timestamp};

use crate::config::{Config, RoleKind};
use crate::limits::MAX_PATHS;

use self::reach::{Open, Reach};

mod reach;

/// What tools are taken to bring into a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bring {
    /// Their floors: what the rules themselves say.
    Floors,
    /// Anything at or above their floors: runners may say more of a result than the rules do.
    Anything,
}

/// What [`paths`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// The shortest for each agent role and each tool with egress, shorter ones first.
    pub found: Vec<Path>,
    /// How many more there are: [`MAX_PATHS`] are told.
    pub more: usize,
    /// How often a grant was held against a tool and a restriction: what the search cost.
    pub looks: u64,
}

/// One way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// Whose sessions.
    pub role: RoleName,
    /// Whose label decides.
    pub label_scope: LabelScope,
    /// One to three; the last carries data out.
    pub steps: Vec<Step>,
    /// How the labels of the steps meet.
    pub meeting: Meeting,
    /// The grants that let the last step run unseen, by this path or a longer one: with
    /// `untrusted = "ask"` in each, a person is asked before it.
    pub remedy: Vec<GrantId>,
}

/// How the labels of a path's steps meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meeting {
    /// One after the other, in one session.
    OneSession,
    /// In different sessions of a role that has one label for all of them.
    OneLabel,
    /// In different sessions, whose labels `join_session` carries into the last one's.
    Joined,
    /// The first two run at the same time: neither would be permitted after the other.
    Together,
}

/// One call of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Which tool.
    pub tool: PathTool,
    /// The grant that permits it.
    pub grant: GrantId,
    /// In which sessions: a glob of the grant.
    pub sessions: String,
    /// What its results bring in.
    pub brings: Label,
    /// The session's label once it has answered.
    pub label: Label,
    /// The first few restrictions that may apply, and were not proved to apply to all that the grant
    /// permits.
    pub avoiding: Vec<GrantId>,
}

/// A tool, or those that a runner may offer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathTool {
    /// This one.
    Named(String),
    /// Any tool that a runner role offers under such a name.
    Offered {
        /// The runner role.
        runner: RoleName,
        /// A glob of its `offers`.
        glob: String,
    },
}

/// Finds the shortest path for each agent role and each tool with egress, as of `now`, for data of
/// `above` or a higher class.
pub fn paths(config: &Config, above: DataClass, now: Timestamp, bring: Bring) -> Paths {
    let mut found = Vec::new();
    let mut looks = 0;
    let candidates = reach::candidates(&config.ruleset);
    for role in config
        .roles
        .values()
        .filter(|role| role.kind == RoleKind::Agent)
    {
        let reach = Reach::of(&config.ruleset, &candidates, &role.name, now);
        looks += reach.looks;
        let search = Search {
            role: &role.name,
            label_scope: role.label_scope,
            sources: sources(&reach, bring),
            reach: &reach,
            above,
        };
        found.extend(search.paths());
    }
    found.sort_by_key(|path: &Path| path.steps.len());
    let more = found.len().saturating_sub(MAX_PATHS);
    found.truncate(MAX_PATHS);
    Paths { found, more, looks }
}

/// Ways to one label that are kept.
const MAX_WAYS: usize = 4;

/// For each label, how a new session gets it in one step.
type Sources<'a> = BTreeMap<(DataClass, bool), Vec<&'a Open<'a>>>;

fn sources<'a>(reach: &'a Reach<'a>, bring: Bring) -> Sources<'a> {
    let mut sources: Sources<'a> = BTreeMap::new();
    for open in reach
        .open
        .iter()
        .filter(|open| open.is_permitted(Label::BOTTOM))
    {
        for label in open.brings(bring) {
            let ways = sources.entry((label.class, label.untrusted)).or_default();
            // Those that name a restriction, or few sessions, come last.
            let place = ways.partition_point(|way| way.rank() <= open.rank());
            ways.insert(place, open);
            ways.truncate(MAX_WAYS);
        }
    }
    sources
}

/// The search in one role.
struct Search<'a> {
    role: &'a RoleName,
    label_scope: LabelScope,
    sources: Sources<'a>,
    reach: &'a Reach<'a>,
    above: DataClass,
}

/// What a step brings in, and how it is permitted.
type Way<'a> = (&'a Open<'a>, Label);

impl<'a> Search<'a> {
    /// The shortest for each tool with egress.
    fn paths(&self) -> Vec<Path> {
        let mut by_tool: BTreeMap<&PathTool, Vec<&'a Open<'a>>> = BTreeMap::new();
        for open in self.reach.open.iter().filter(|open| open.tool.egress) {
            by_tool.entry(&open.tool.name).or_default().push(open);
        }
        by_tool
            .values()
            .filter_map(|exits| self.shortest(exits))
            .collect()
    }

    fn shortest(&self, exits: &[&'a Open<'a>]) -> Option<Path> {
        let mut best: Option<(usize, Path)> = None;
        let mut remedy = BTreeSet::new();
        for (first, second) in self.entries() {
            let label = second
                .iter()
                .fold(first.1, |sum, (_, label)| sum.join(*label));
            let permitting: Vec<_> = exits.iter().filter(|e| e.is_permitted(label)).collect();
            for exit in permitting.iter().take(MAX_WAYS) {
                let (cost, path) = self.path(first, second, exit);
                if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                    best = Some((cost, path));
                }
            }
            remedy.extend(permitting.iter().map(|e| e.grant.id.clone()));
        }
        best.map(|(_, path)| Path {
            remedy: remedy.into_iter().collect(),
            ..path
        })
    }

    /// Every way to have taken in untrusted content and seen the class: one step, or two.
    fn entries(&self) -> Vec<(Way<'a>, Option<Way<'a>>)> {
        let all = || {
            self.sources.iter().flat_map(|((class, untrusted), ways)| {
                let label = Label {
                    class: *class,
                    untrusted: *untrusted,
                };
                ways.iter().map(move |open| (*open, label))
            })
        };
        let mut entries = Vec::new();
        for first in all().filter(|(_, label)| label.untrusted) {
            if first.1.class >= self.above {
                entries.push((first, None));
                continue;
            }
            let seeing = all().filter(|(_, label)| label.class >= self.above && !label.untrusted);
            entries.extend(seeing.map(|second| (first, Some(second))));
        }
        entries
    }

    /// The path, and what orders paths: the fewest steps, then the simplest.
    fn path(&self, first: Way<'a>, second: Option<Way<'a>>, exit: &'a Open<'a>) -> (usize, Path) {
        let (entries, together) = match second {
            None => (vec![first], false),
            Some(second) if second.0.is_permitted(first.1) => (vec![first, second], false),
            Some(second) if first.0.is_permitted(second.1) => (vec![second, first], false),
            Some(second) => (vec![first, second], true),
        };
        let ways: Vec<Way<'a>> = entries.into_iter().chain([(exit, exit.tool.low)]).collect();
        let apart = ways
            .iter()
            .any(|(a, _)| ways.iter().any(|(b, _)| !a.sessions.overlaps(b.sessions)));
        let meeting = match (self.label_scope, together, apart) {
            (LabelScope::Role, true, _) => Meeting::Together,
            (LabelScope::Role, false, true) => Meeting::OneLabel,
            (LabelScope::Session | LabelScope::None, _, true) => Meeting::Joined,
            (LabelScope::Session | LabelScope::None, true, false) => Meeting::Together,
            (_, false, false) => Meeting::OneSession,
        };
        let mut label = Label::BOTTOM;
        let steps: Vec<Step> = ways
            .iter()
            .map(|(open, brings)| {
                label = label.join(*brings);
                open.step(*brings, label)
            })
            .collect();
        let doubts: usize = ways.iter().map(|(open, _)| open.rank().0).sum();
        let simple = usize::from(together) + usize::from(apart);
        let cost = steps.len() * 1_000_000 + doubts.min(9_999) * 100 + simple * 10;
        let path = Path {
            role: self.role.clone(),
            label_scope: self.label_scope,
            steps,
            meeting,
            remedy: Vec::new(),
        };
        (cost, path)
    }
}
