//! Which tools a role can reach unasked, by which grant, in which sessions.

use std::collections::BTreeSet;

use proto::{Content, DataClass, GrantId, Label, RoleName, Timestamp, ToolName};

use super::{Bring, PathTool, Step};
use crate::cover::{self, Over};
use crate::glob::NameGlob;
use crate::grant::{Grant, Word};
use crate::ruleset::{EffectiveTool, Ruleset, ToolFloor};
use crate::tool::OfferFloor;

/// Restrictions that one step names.
const MAX_AVOIDING: usize = 4;

/// A tool, or those that a rule of an `offers` admits and nothing names.
#[derive(Debug)]
pub(super) struct Candidate<'a> {
    pub(super) name: PathTool,
    /// Of those that are offered: the rule's glob.
    offered: Option<&'a NameGlob>,
    /// As it counts, or with the highest clearance that it could have.
    tool: EffectiveTool,
    /// The least and the highest label that the rules say it brings in. They differ only where it
    /// depends on the name which rules of an `offers` admit it.
    pub(super) low: Label,
    high: Label,
    pub(super) egress: bool,
}

/// A way to call a tool unasked, as far as its grant's words allow: see [`Open::is_permitted`].
#[derive(Debug)]
pub(super) struct Open<'a> {
    pub(super) tool: &'a Candidate<'a>,
    pub(super) grant: &'a Grant,
    /// One of the grant's globs.
    pub(super) sessions: &'a NameGlob,
    /// The first restrictions that may apply to some of what the grant permits, but not provably
    /// to all; and how many there are.
    avoiding: Vec<&'a Grant>,
    doubts: usize,
}

impl Open<'_> {
    /// Whether the grant says allow at this label.
    pub(super) fn is_permitted(&self, label: Label) -> bool {
        self.grant.word(&self.tool.tool, label) == Word::Allow
    }

    /// The labels that its results may bring in.
    pub(super) fn brings(&self, bring: Bring) -> Vec<Label> {
        let (low, high) = match bring {
            Bring::Floors => (self.tool.low, self.tool.high),
            Bring::Anything => (self.tool.low, Label::TOP),
        };
        let classes = DataClass::ALL
            .into_iter()
            .filter(|class| (low.class..=high.class).contains(class));
        let trusts = [false, true]
            .into_iter()
            .filter(|u| (low.untrusted..=high.untrusted).contains(u));
        classes
            .flat_map(|class| {
                trusts
                    .clone()
                    .map(move |untrusted| Label { class, untrusted })
            })
            .collect()
    }

    /// What a reader would rather see: no restriction to avoid, and all sessions.
    pub(super) fn rank(&self) -> (usize, bool) {
        (self.doubts, self.sessions.as_str() != "*")
    }

    pub(super) fn step(&self, brings: Label, label: Label) -> Step {
        let avoiding: Vec<GrantId> = self.avoiding.iter().map(|grant| grant.id.clone()).collect();
        Step {
            tool: self.tool.name.clone(),
            grant: self.grant.id.clone(),
            sessions: self.sessions.as_str().to_owned(),
            brings,
            label,
            avoiding,
        }
    }
}

/// All that one role can reach.
#[derive(Debug)]
pub(super) struct Reach<'a> {
    pub(super) open: Vec<Open<'a>>,
    /// How often a grant was held against a tool or a restriction.
    pub(super) looks: u64,
}

/// The tools that the rules speak of: those that are declared, those that a grant or an offer rule
/// names and an offer rule admits, and for every other offer rule those that nobody names.
pub(super) fn candidates(ruleset: &Ruleset) -> Vec<Candidate<'_>> {
    let literals = |globs: &[NameGlob]| -> Vec<ToolName> {
        let names = globs.iter().filter_map(NameGlob::literal);
        names.filter_map(|name| ToolName::new(name).ok()).collect()
    };
    let mut names: BTreeSet<ToolName> = ruleset.declared().map(|tool| tool.name.clone()).collect();
    names.extend(ruleset.all().flat_map(|grant| literals(&grant.tools)));
    names.extend(
        ruleset
            .offers()
            .iter()
            .flat_map(|offer| literals(&offer.globs)),
    );
    let named = names.iter().filter_map(|name| ruleset.tool(name.as_str()));
    let mut all: Vec<Candidate<'_>> = named.map(|floor| of_name(&floor)).collect();
    let unnamed = (0_u32..).filter_map(|n| ToolName::new(format!("offered-{n}")).ok());
    let Some(unnamed) = unnamed.into_iter().find(|name| !names.contains(name)) else {
        return all;
    };
    for offer in ruleset.offers() {
        let globs = offer.globs.iter().filter(|glob| glob.literal().is_none());
        all.extend(globs.map(|glob| of_offer(offer, glob, &unnamed, ruleset.offers())));
    }
    all
}

fn of_name(floor: &ToolFloor) -> Candidate<'static> {
    let label = Label {
        class: floor.class,
        untrusted: floor.untrusted,
    };
    Candidate {
        name: PathTool::Named(floor.name.to_string()),
        offered: None,
        tool: floor.effective(None),
        low: label,
        high: label,
        egress: floor.egress,
    }
}

/// The tools that a glob of an offer rule admits. Where other rules of the runner may admit some of
/// them too, these are stricter: what they then count as lies between what surely holds and what
/// may.
fn of_offer<'a>(
    offer: &'a OfferFloor,
    glob: &'a NameGlob,
    unnamed: &ToolName,
    offers: &'a [OfferFloor],
) -> Candidate<'a> {
    let own = |other: &&OfferFloor| other.runner == offer.runner;
    let label = |other: &OfferFloor| Label {
        class: other.rule.class,
        untrusted: other.rule.untrusted,
    };
    let mut candidate = Candidate {
        name: PathTool::Offered {
            runner: offer.runner.clone(),
            glob: glob.as_str().to_owned(),
        },
        offered: Some(glob),
        tool: EffectiveTool {
            name: unnamed.clone(),
            runner: offer.runner.clone(),
            class: offer.rule.class,
            untrusted: offer.rule.untrusted,
            effects: offer.rule.effects,
            egress: offer.rule.egress,
            content: Content::Text,
            clearance: offer.rule.class,
        },
        low: label(offer),
        high: label(offer),
        egress: offer.rule.egress,
    };
    for other in offers.iter().filter(own) {
        let patterns = || other.globs.iter().filter(|other| other.literal().is_none());
        if patterns().any(|other| other.covers(glob)) {
            candidate.low = candidate.low.join(label(other));
            candidate.tool.effects = candidate.tool.effects.max(other.rule.effects);
            candidate.tool.egress |= other.rule.egress;
        }
        if patterns().any(|other| other.overlaps(glob)) {
            candidate.high = candidate.high.join(label(other));
            candidate.egress |= other.rule.egress;
        }
    }
    candidate.tool.clearance = candidate.high.class;
    candidate
}

impl<'a> Reach<'a> {
    /// What `role` can reach by allows that have not expired. Uses are taken to be left.
    pub(super) fn of(
        ruleset: &'a Ruleset,
        candidates: &'a [Candidate<'a>],
        role: &RoleName,
        now: Timestamp,
    ) -> Reach<'a> {
        let mut reach = Reach {
            open: Vec::new(),
            looks: 0,
        };
        let own: Vec<&Grant> = ruleset
            .all()
            .filter(|grant| grant.names_role(role.as_str()))
            .collect();
        for grant in &own {
            let live = grant.effect == Word::Allow && !grant.is_expired(now);
            if !live || cover::is_contradictory(grant) {
                continue;
            }
            let restrictions = own.iter().filter(|other| other.effect != Word::Allow);
            let speaking: Vec<(&'a Grant, Over)> = restrictions
                .map(|other| {
                    reach.looks += 1;
                    (*other, cover::over(grant, other))
                })
                .filter(|(_, over)| *over != Over::None)
                .collect();
            for candidate in candidates {
                reach.looks += 1;
                reach.add(grant, candidate, &speaking);
            }
        }
        reach
    }

    fn add(&mut self, grant: &'a Grant, tool: &'a Candidate<'a>, speaking: &[(&'a Grant, Over)]) {
        for names in tool.named_by(grant) {
            for sessions in &grant.sessions {
                let mut open = Open {
                    tool,
                    grant,
                    sessions,
                    avoiding: Vec::new(),
                    doubts: 0,
                };
                let blocked = speaking.iter().any(|(other, over)| {
                    self.looks += 1;
                    let stands = tool.meets(&names, other).and(spans(sessions, other));
                    match (stands, over) {
                        (Over::All, Over::All) => return true,
                        (Over::None, _) | (_, Over::None) => {}
                        (Over::All | Over::Unsure, Over::All | Over::Unsure) => {
                            open.doubts += 1;
                            if open.avoiding.len() < MAX_AVOIDING {
                                open.avoiding.push(other);
                            }
                        }
                    }
                    false
                });
                if !blocked {
                    self.open.push(open);
                }
            }
        }
    }
}

/// How the sessions that a restriction names stand to those of a glob.
fn spans(sessions: &NameGlob, other: &Grant) -> Over {
    if other.sessions.iter().any(|glob| glob.covers(sessions)) {
        Over::All
    } else if other.sessions.iter().any(|glob| glob.overlaps(sessions)) {
        Over::Unsure
    } else {
        Over::None
    }
}

/// Which of a candidate's names a grant means.
#[derive(Debug)]
enum Names<'a> {
    /// The one that it has.
    One(&'a str),
    /// Those that are under both globs.
    Both(&'a NameGlob, &'a NameGlob),
}

impl<'a> Candidate<'a> {
    /// Which of its names the grant means: one entry, or one for each of the grant's globs.
    fn named_by(&'a self, grant: &'a Grant) -> Vec<Names<'a>> {
        match (&self.name, self.offered) {
            (PathTool::Offered { .. }, Some(offered)) => {
                let globs = grant.tools.iter().filter(|glob| glob.literal().is_none());
                let globs = globs.filter(|glob| glob.overlaps(offered));
                globs.map(|glob| Names::Both(offered, glob)).collect()
            }
            (PathTool::Named(name), _) if grant.names_tool(name) => vec![Names::One(name)],
            (PathTool::Named(_) | PathTool::Offered { .. }, _) => Vec::new(),
        }
    }

    /// How the tools that a restriction names stand to these names.
    fn meets(&self, names: &Names<'_>, other: &Grant) -> Over {
        match names {
            Names::One(name) if other.names_tool(name) => Over::All,
            Names::One(_) => Over::None,
            Names::Both(a, b) => {
                let mut globs = other.tools.iter().filter(|glob| glob.literal().is_none());
                if globs.clone().any(|glob| glob.covers(a) || glob.covers(b)) {
                    Over::All
                } else if globs.any(|glob| glob.overlaps(a) && glob.overlaps(b)) {
                    Over::Unsure
                } else {
                    Over::None
                }
            }
        }
    }
}
