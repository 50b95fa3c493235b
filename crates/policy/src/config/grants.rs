//! `[[grant]]`: read, checked, and compiled.

use std::collections::BTreeMap;

use proto::{DataClass, GrantId, RoleName, SessionId, Timestamp, ToolName};
use toml::de::DeValue;

use super::broker::SOME_TIME;
use super::faults::Faults;
use super::people::{self, Context};
use super::roles::CLASSES;
use super::section::Section;
use super::{constraints, examples, units};
use crate::glob::NameGlob;
use crate::grant::{Grant, Terms, Word};
use crate::limits::{MAX_GRANTS, MAX_QUORUM, MAX_USES, MAX_WHY};
use crate::tool::ToolFloor;

const KEYS: &[&str] = &[
    "id",
    "roles",
    "sessions",
    "tools",
    "effect",
    "where",
    "unless",
    "only",
    "max_class",
    "above_max",
    "untrusted",
    "approvers",
    "quorum",
    "approval_ttl",
    "standing_ttl",
    "standing_uses",
    "expires",
    "max_uses",
    "why",
    "examples",
];
const WORDS: &[(&str, Word)] = &[
    ("allow", Word::Allow),
    ("ask", Word::Ask),
    ("deny", Word::Deny),
];
const ABOVE: &[(&str, Word)] = &[("ask", Word::Ask), ("deny", Word::Deny)];

/// Reads every `[[grant]]`, in file order.
pub(crate) fn read(
    top: &Section<'_>,
    context: &Context,
    tools: &BTreeMap<ToolName, ToolFloor>,
    faults: &mut Faults,
) -> Vec<Grant> {
    let nodes = top.tables(faults, "grant");
    if nodes.len() > MAX_GRANTS {
        top.fault(
            faults,
            &top.span_of("grant"),
            format!("there are at most {MAX_GRANTS} grants"),
        );
        return Vec::new();
    }
    let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
    let mut grants = Vec::new();
    for node in nodes {
        let id = node
            .get_ref()
            .get("id")
            .and_then(|id| id.get_ref().as_str());
        let place = id.map_or("a grant".to_owned(), |id| format!("grant `{id}`"));
        let Some(section) = Section::of(node, place, KEYS, faults) else {
            continue;
        };
        let line = faults.line(&node.span());
        if let Some(earlier) = id.and_then(|id| lines.insert(id, line)) {
            let at = section.span_of("id");
            section.fault(faults, &at, format!("the id is taken in line {earlier}"));
        }
        grants.extend(read_grant(&section, context, tools, faults));
    }
    grants
}

/// Reads a whole text as one grant, for run time.
pub(crate) fn read_alone(
    top: &toml::Spanned<toml::de::DeTable<'_>>,
    context: &Context,
    tools: &BTreeMap<ToolName, ToolFloor>,
    faults: &mut Faults,
) -> Option<Grant> {
    let id = top.get_ref().get("id").and_then(|id| id.get_ref().as_str());
    let place = id.map_or("the grant".to_owned(), |id| format!("grant `{id}`"));
    let section = Section::new(top.get_ref(), top.span(), place, KEYS, faults);
    let mut grant = read_grant(&section, context, tools, faults)?;
    grant.runtime = true;
    match grant.effect {
        Word::Allow => {
            section.require(faults, "expires", "\"2027-06-30T00:00:00Z\"", "");
            section.require(faults, "max_uses", "100", "");
        }
        Word::Deny => {}
        Word::Ask => {
            let rule =
                "at run time a grant is an allow or a deny; an ask belongs in the configuration";
            section.fault(faults, &section.span_of("effect"), rule);
        }
    }
    Some(grant)
}

fn read_grant(
    section: &Section<'_>,
    context: &Context,
    tools: &BTreeMap<ToolName, ToolFloor>,
    faults: &mut Faults,
) -> Option<Grant> {
    section.require(faults, "id", "\"docs\"", "");
    section.require(faults, "effect", "\"allow\"", ", or ask, deny");
    let id = section
        .text(faults, "id")
        .and_then(|text| match GrantId::new(text.text) {
            Ok(id) => Some(id),
            Err(rule) => {
                section.fault(faults, &text.span, rule);
                None
            }
        });
    let effect = section.word(faults, "effect", WORDS);
    let roles = names(
        section,
        "roles",
        |name| RoleName::new(name).map(drop),
        faults,
    );
    let sessions = names(
        section,
        "sessions",
        |name| SessionId::new(name).map(drop),
        faults,
    );
    let globs = names(
        section,
        "tools",
        |name| ToolName::new(name).map(drop),
        faults,
    );
    let constraints = constraints::read(section, "where", faults);
    let unless = constraints::read(section, "unless", faults);
    let only = section.flag(faults, "only");
    if effect != Some(Word::Deny) && !section.has("where") {
        section.forbid(faults, "only", "belongs to a `where`");
    }
    let max_class: Option<DataClass> = section.word(faults, "max_class", CLASSES);
    let above_max = section.word(faults, "above_max", ABOVE);
    let untrusted = section.word(faults, "untrusted", WORDS);
    let expires = read_expires(section, faults);
    let max_uses = section.integer(faults, "max_uses", 1..=MAX_USES);
    let why = section.short_text(faults, "why", MAX_WHY);
    let terms = read_terms(section, context, faults);
    if let Some(effect) = effect {
        forbid_by_effect(section, effect, faults);
    }
    let mut grant = Grant {
        id: id?,
        runtime: false,
        effect: effect?,
        roles: roles?,
        sessions: sessions?,
        tools: globs?,
        constraints,
        unless,
        only: only.unwrap_or(true),
        max_class,
        above_max: above_max.unwrap_or(Word::Deny),
        untrusted,
        expires,
        max_uses,
        terms,
        why: why.map_or(String::new(), |text| text.text.to_owned()),
        hash: [0; 32],
    };
    let named = |key| constraints::written(section.get(key));
    grant.hash = grant.hash(&serde_json::json!([named("where"), named("unless")]));
    people::check(section, &grant, context, tools, faults);
    // A `where` with faults is read as none; its examples would be held against nothing.
    if grant.constraints.is_some() || !section.has("where") {
        examples::check(section, &grant, faults);
    }
    Some(grant)
}

/// A list of globs over names; one without special characters must be such a name.
fn names<E: std::fmt::Display>(
    section: &Section<'_>,
    key: &str,
    valid: impl Fn(&str) -> Result<(), E>,
    faults: &mut Faults,
) -> Option<Vec<NameGlob>> {
    section.require(faults, key, "[\"*\"]", ", or what is meant");
    let texts = section.texts(faults, key)?;
    if texts.is_empty() {
        section.fault(
            faults,
            &section.span_of(key),
            format!("`{key}` is empty and matches nothing"),
        );
        return None;
    }
    let mut globs = Vec::new();
    for text in texts {
        let glob = NameGlob::new(text.text).and_then(|glob| {
            if glob.literal().is_some() {
                valid(text.text).map_err(|rule| rule.to_string())?;
            }
            Ok(glob)
        });
        match glob {
            Ok(glob) => globs.push(glob),
            Err(rule) => {
                section.fault(faults, &text.span, format!("{key} `{}`: {rule}", text.text));
            }
        }
    }
    Some(globs)
}

fn read_terms(section: &Section<'_>, context: &Context, faults: &mut Faults) -> Terms {
    let standing_ttl = section.duration(faults, "standing_ttl", SOME_TIME);
    let standing_uses = section.integer(faults, "standing_uses", 1..=MAX_USES);
    for (one, other) in [
        ("standing_ttl", "standing_uses"),
        ("standing_uses", "standing_ttl"),
    ] {
        if section.has(one) && !section.has(other) {
            let rule = format!(
                "`{one}` without `{other}` allows no standing approval; state both or neither"
            );
            section.fault(faults, &section.span_of(one), rule);
        }
    }
    let quorum = section.integer(faults, "quorum", 1..=MAX_QUORUM);
    let own = context.approvers(section, faults);
    if own.as_ref().is_some_and(Vec::is_empty) {
        let named = section
            .get("approvers")
            .and_then(|node| node.get_ref().as_array());
        if named.is_some_and(|list| list.is_empty()) {
            let rule = "`approvers` is empty; name an approver role, or leave it out for the configuration's";
            section.fault(faults, &section.span_of("approvers"), rule);
        }
    }
    Terms {
        approvers: own.unwrap_or_else(|| context.approvers.clone()),
        quorum: quorum
            .and_then(|quorum| u32::try_from(quorum).ok())
            .unwrap_or(1),
        approval_ttl: section
            .duration(faults, "approval_ttl", SOME_TIME)
            .unwrap_or(context.approval_ttl),
        standing_ttl,
        standing_uses,
    }
}

fn read_expires(section: &Section<'_>, faults: &mut Faults) -> Option<Timestamp> {
    let node = section.get("expires")?;
    let date = match node.get_ref() {
        DeValue::String(text) => units::date(text),
        DeValue::Datetime(date) => units::date(&date.to_string()),
        DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Array(_)
        | DeValue::Table(_) => units::date(""),
    };
    if let Err(rule) = date {
        section.fault(faults, &node.span(), format!("`expires`: {rule}"));
    }
    date.ok()
}

/// Keys that mean nothing with an effect.
fn forbid_by_effect(section: &Section<'_>, effect: Word, faults: &mut Faults) {
    let deny = [
        "only",
        "max_class",
        "above_max",
        "untrusted",
        "approvers",
        "quorum",
        "approval_ttl",
        "standing_ttl",
        "standing_uses",
    ];
    match effect {
        Word::Allow => section.forbid(faults, "unless", "is for ask and deny"),
        Word::Ask | Word::Deny => {
            for key in ["expires", "max_uses"] {
                section.forbid(faults, key, "is for allow");
            }
        }
    }
    if effect == Word::Deny {
        for key in deny {
            section.forbid(faults, key, "means nothing in a deny");
        }
    }
}
