//! What the ruleset says of tools, and what is left of it once a runner has offered.

use std::collections::BTreeMap;
use std::ops::Range;

use proto::{Content, DataClass, Effects, RoleName, ToolName, ToolSpec};

use crate::config::{OfferRule, Pin};
use crate::glob::NameGlob;

/// What the ruleset itself says of a tool: a declaration, or an offer's floor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolFloor {
    /// Its name.
    pub name: ToolName,
    /// The one runner role that may serve it.
    pub runner: RoleName,
    /// The least class of its results.
    pub class: DataClass,
    /// Whether its results are a stranger's.
    pub untrusted: bool,
    /// What running it twice does, at worst.
    pub effects: Effects,
    /// Whether it can carry data out.
    pub egress: bool,
    /// The form of its results, where it is declared.
    pub content: Content,
    /// When an offered definition counts as read.
    pub pin: Pin,
    /// Whether `[[tool]]` declares it.
    pub declared: bool,
    /// The declared description and input schema, where `[[tool]]` states both.
    pub definition: Option<(String, String)>,
    /// `clearance` as declared, if it is.
    pub clearance: Option<DataClass>,
}

/// A tool as it counts now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectiveTool {
    /// Its name.
    pub name: ToolName,
    /// The one runner role that may serve it.
    pub runner: RoleName,
    /// The floor's class.
    pub class: DataClass,
    /// The floor's trust.
    pub untrusted: bool,
    /// What running it twice does.
    pub effects: Effects,
    /// Whether it can carry data out.
    pub egress: bool,
    /// The form of its results.
    pub content: Content,
    /// The `max_class` of a grant that states none.
    pub clearance: DataClass,
}

impl ToolFloor {
    /// The tool without an offer, or tightened by what a runner offered: never loosened. The form
    /// of the results is the declaration's, or else the offer's.
    pub fn effective(&self, offered: Option<&ToolSpec>) -> EffectiveTool {
        let mut tool = EffectiveTool {
            name: self.name.clone(),
            runner: self.runner.clone(),
            class: self.class,
            untrusted: self.untrusted,
            effects: self.effects,
            egress: self.egress,
            content: self.content,
            clearance: self.class,
        };
        if let Some(offered) = offered {
            tool.class = tool.class.max(offered.class);
            tool.untrusted |= offered.untrusted;
            tool.effects = tool.effects.max(offered.effects);
            tool.egress |= offered.egress;
            if !self.declared {
                tool.content = offered.content;
            }
        }
        // An offer that calls itself more confidential must not be cleared for more by that: the
        // clearance falls back on the ruleset's own floor.
        let harmless = self.declared && tool.effects == Effects::Read && !tool.egress;
        let default = if harmless {
            DataClass::Secret
        } else {
            self.class
        };
        tool.clearance = self.clearance.unwrap_or(default);
        tool
    }
}

/// One rule of a runner role's `offers`, compiled.
#[derive(Debug, Clone)]
pub(crate) struct OfferFloor {
    pub(crate) runner: RoleName,
    pub(crate) globs: Vec<NameGlob>,
    pub(crate) rule: OfferRule,
    /// Where it stands.
    pub(crate) span: Range<usize>,
}

impl OfferFloor {
    fn admits(&self, name: &str) -> bool {
        self.globs.iter().any(|glob| glob.matches(name))
    }
}

/// The declaration of a name, or else what the offers say of it: `None` if none admits it, or those
/// of two runner roles do. Where several rules of one role admit it, the strictest of each holds.
pub(crate) fn find(
    declared: &BTreeMap<ToolName, ToolFloor>,
    offers: &[OfferFloor],
    name: &str,
) -> Option<ToolFloor> {
    if let Some(tool) = declared.get(name) {
        return Some(tool.clone());
    }
    let name = ToolName::new(name).ok()?;
    let mut admitting = offers.iter().filter(|offer| offer.admits(name.as_str()));
    let first = admitting.next()?;
    let mut floor = ToolFloor {
        name: name.clone(),
        runner: first.runner.clone(),
        class: first.rule.class,
        untrusted: first.rule.untrusted,
        effects: first.rule.effects,
        egress: first.rule.egress,
        content: Content::Text,
        pin: first.rule.pin,
        declared: false,
        definition: None,
        clearance: None,
    };
    for OfferFloor { runner, rule, .. } in admitting {
        if *runner != floor.runner {
            return None;
        }
        floor.class = floor.class.max(rule.class);
        floor.untrusted |= rule.untrusted;
        floor.effects = floor.effects.max(rule.effects);
        floor.egress |= rule.egress;
        floor.pin = strictest(floor.pin, rule.pin);
    }
    Some(floor)
}

/// The pin that the offers of `runner` give a name, if they admit it.
pub(crate) fn offered_pin(offers: &[OfferFloor], runner: &RoleName, name: &str) -> Option<Pin> {
    offers
        .iter()
        .filter(|offer| offer.runner == *runner && offer.admits(name))
        .map(|offer| offer.rule.pin)
        .reduce(strictest)
}

fn strictest(a: Pin, b: Pin) -> Pin {
    match (a, b) {
        (Pin::FirstUse, Pin::FirstUse) => Pin::FirstUse,
        (Pin::Accept, _) | (_, Pin::Accept) => Pin::Accept,
    }
}
