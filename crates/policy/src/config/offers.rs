//! `offers`: what a runner role may offer, and what all of it counts as at least.

use proto::{DataClass, Effects, RoleName};

use super::faults::Faults;
use super::roles::{CLASSES, EFFECTS, PINS};
use super::section::{Node, Section};
use super::{OfferRule, Pin};
use crate::glob::NameGlob;
use crate::limits::MAX_OFFERS;
use crate::tool::OfferFloor;

const KEYS: &[&str] = &["tools", "class", "untrusted", "effects", "egress", "pin"];

/// Reads a role's `offers`, and adds them to those of all roles.
pub(crate) fn read(
    runner: &RoleName,
    section: &Section<'_>,
    compiled: &mut Vec<OfferFloor>,
    faults: &mut Faults,
) -> Vec<OfferRule> {
    let nodes = section.tables(faults, "offers");
    if nodes.len() > MAX_OFFERS {
        let rule = format!("`offers` has at most {MAX_OFFERS} rules");
        section.fault(faults, &section.span_of("offers"), rule);
        return Vec::new();
    }
    let offer = |node| read_offer(runner, section, node, faults);
    let offers: Vec<OfferFloor> = nodes.into_iter().filter_map(offer).collect();
    let rules = offers.iter().map(|offer| offer.rule.clone()).collect();
    compiled.extend(offers);
    rules
}

fn read_offer(
    runner: &RoleName,
    role: &Section<'_>,
    node: &Node<'_>,
    faults: &mut Faults,
) -> Option<OfferFloor> {
    let place = format!("{}, offers", role.place);
    let section = Section::of(node, place, KEYS, faults)?;
    section.require(faults, "tools", "[\"mail.*\"]", "");
    let tools = section.texts(faults, "tools").unwrap_or_default();
    let mut globs = Vec::new();
    for text in &tools {
        match NameGlob::new(text.text) {
            Ok(glob) => globs.push(glob),
            Err(rule) => {
                section.fault(faults, &text.span, format!("tools `{}`: {rule}", text.text));
            }
        }
    }
    let rule = OfferRule {
        tools: tools.iter().map(|text| text.text.to_owned()).collect(),
        class: section
            .word(faults, "class", CLASSES)
            .unwrap_or(DataClass::Internal),
        untrusted: section.flag(faults, "untrusted").unwrap_or(true),
        effects: section
            .word(faults, "effects", EFFECTS)
            .unwrap_or(Effects::Once),
        egress: section.flag(faults, "egress").unwrap_or(true),
        pin: section.word(faults, "pin", PINS).unwrap_or(Pin::Accept),
    };
    Some(OfferFloor {
        runner: runner.clone(),
        globs,
        rule,
        span: section.span_of("tools"),
    })
}

/// A name that the offers of two runner roles admit would belong to nobody.
pub(crate) fn overlaps(offers: &[OfferFloor], faults: &mut Faults) {
    for (place, offer) in offers.iter().enumerate() {
        let earlier = offers.get(..place).unwrap_or_default();
        for other in earlier.iter().filter(|other| other.runner != offer.runner) {
            for (a, b) in offer
                .globs
                .iter()
                .flat_map(|a| other.globs.iter().map(move |b| (a, b)))
            {
                if a.matches(b.as_str()) || b.matches(a.as_str()) {
                    faults.add(
                        &offer.span,
                        format!(
                            "role `{}`, offers: `{}` and `{}` of role `{}` admit the same names, \
                             and a tool belongs to one runner role; tell them apart",
                            offer.runner,
                            a.as_str(),
                            b.as_str(),
                            other.runner,
                        ),
                    );
                }
            }
        }
    }
}
