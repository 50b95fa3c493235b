//! `[[grant]]`: read, checked, and compiled.

use std::collections::BTreeMap;

use proto::{DataClass, Effects, GrantId, RoleName, SessionId, Timestamp, ToolName};
use toml::de::DeValue;

use super::broker::SOME_TIME;
use super::constraints;
use super::faults::{Faults, hint};
use super::roles::{CLASSES, Roles};
use super::section::{Section, Text};
use super::{RoleKind, Settings, units};
use crate::decide;
use crate::glob::NameGlob;
use crate::grant::{Grant, Terms, Word};
use crate::limits::{MAX_EXAMPLE, MAX_EXAMPLES, MAX_GRANTS, MAX_QUORUM, MAX_USES, MAX_WHY};
use crate::matcher::Fit;
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

/// What a grant is checked against besides itself; kept for the grants of run time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Context {
    /// The configuration's `approvers`.
    pub(crate) approvers: Vec<RoleName>,
    /// Every role's kind, and the users of those that name users alone.
    pub(crate) roles: BTreeMap<RoleName, (RoleKind, Option<Vec<String>>)>,
    /// Roles that have faults of their own: naming them is no further fault.
    pub(crate) faulty: Vec<RoleName>,
    /// The default, in milliseconds.
    pub(crate) approval_ttl: u64,
}

impl Context {
    /// What grants are checked against, with the configuration's `approvers` read.
    pub(crate) fn read(
        top: &Section<'_>,
        roles: &Roles,
        settings: &Settings,
        faults: &mut Faults<'_>,
    ) -> Context {
        let people = |role: &super::Role| {
            let users = role.groups.is_empty().then(|| role.users.clone());
            (role.name.clone(), (role.kind, users))
        };
        let known = |name: &&RoleName| !roles.roles.contains_key(*name);
        let mut context = Context {
            approvers: Vec::new(),
            roles: roles.roles.values().map(people).collect(),
            faulty: roles.named.iter().filter(known).cloned().collect(),
            approval_ttl: settings.approval_ttl,
        };
        context.approvers = context.approvers(top, faults).unwrap_or_default();
        context
    }

    /// The approver roles under `approvers`.
    fn approvers(&self, section: &Section<'_>, faults: &mut Faults<'_>) -> Option<Vec<RoleName>> {
        let texts = section.texts(faults, "approvers")?;
        let role = |text: &Text<'_>| match self.roles.get_key_value(text.text) {
            Some((name, (RoleKind::Approver, _))) => Some(name.clone()),
            Some((name, (kind, _))) => {
                let kind = kind.as_str();
                let rule = format!(
                    "approvers: role `{name}` is of kind {kind}; name one of kind approver"
                );
                section.fault(faults, &text.span, rule);
                None
            }
            None => {
                let faulty = self.faulty.iter().find(|role| role.as_str() == text.text);
                if faulty.is_none() {
                    let approvers = self
                        .roles
                        .iter()
                        .filter(|(_, (kind, _))| *kind == RoleKind::Approver);
                    let hint = hint(text.text, approvers.map(|(name, _)| name.as_str()));
                    let rule =
                        format!("approvers: there is no approver role `{}`{hint}", text.text);
                    section.fault(faults, &text.span, rule);
                }
                faulty.cloned()
            }
        };
        Some(texts.iter().filter_map(role).collect())
    }

    /// The most distinct uids that these approvers can be, where that is known.
    fn people(&self, approvers: &[RoleName]) -> Option<usize> {
        let mut users = std::collections::BTreeSet::new();
        for role in approvers {
            users.extend(self.roles.get(role)?.1.as_ref()?);
        }
        Some(users.len())
    }
}

/// Reads every `[[grant]]`, in file order.
pub(crate) fn read(
    top: &Section<'_>,
    context: &Context,
    tools: &BTreeMap<ToolName, ToolFloor>,
    faults: &mut Faults<'_>,
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
    faults: &mut Faults<'_>,
) -> Option<Grant> {
    let id = top.get_ref().get("id").and_then(|id| id.get_ref().as_str());
    let place = id.map_or("the grant".to_owned(), |id| format!("grant `{id}`"));
    let section = Section::new(top.get_ref(), top.span(), place, KEYS, faults);
    let mut grant = read_grant(&section, context, tools, faults)?;
    grant.runtime = true;
    match grant.effect {
        Word::Allow => {
            section.require(faults, "expires", "\"2027-06-30T00:00:00Z\"");
            section.require(faults, "max_uses", "100");
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
    faults: &mut Faults<'_>,
) -> Option<Grant> {
    section.require(faults, "id", "\"docs\"");
    section.require(faults, "effect", "\"allow\" (or ask, deny)");
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
    if section.has("only") && !section.has("where") {
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
    check_people(section, &grant, context, tools, faults);
    // A `where` with faults is read as none; its examples would be held against nothing.
    if grant.constraints.is_some() || !section.has("where") {
        check_examples(section, &grant, faults);
    }
    Some(grant)
}

/// A list of globs over names; one without special characters must be such a name.
fn names<E: std::fmt::Display>(
    section: &Section<'_>,
    key: &str,
    valid: impl Fn(&str) -> Result<(), E>,
    faults: &mut Faults<'_>,
) -> Option<Vec<NameGlob>> {
    section.require(faults, key, "[\"*\"], or what is meant");
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

fn read_terms(section: &Section<'_>, context: &Context, faults: &mut Faults<'_>) -> Terms {
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

fn read_expires(section: &Section<'_>, faults: &mut Faults<'_>) -> Option<Timestamp> {
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
fn forbid_by_effect(section: &Section<'_>, effect: Word, faults: &mut Faults<'_>) {
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

/// Whoever could be asked must be somebody, and enough.
fn check_people(
    section: &Section<'_>,
    grant: &Grant,
    context: &Context,
    tools: &BTreeMap<ToolName, ToolFloor>,
    faults: &mut Faults<'_>,
) {
    if let Some(why) = could_ask(grant, tools)
        && grant.terms.approvers.is_empty()
        && !section.has("approvers")
    {
        let rule = format!(
            "{why}, and nobody is named to be asked; write `approvers = [\"…\"]` here or at the top"
        );
        section.fault(faults, &section.span, rule);
    }
    let (quorum, approvers) = (grant.terms.quorum, &grant.terms.approvers);
    if let Some(people) = context.people(approvers).filter(|_| !approvers.is_empty())
        && usize::try_from(quorum).is_ok_and(|quorum| quorum > people)
        && grant.effect != Word::Deny
    {
        let rule = format!(
            "a quorum of {quorum} can never be reached: its approvers are {people} user(s)"
        );
        let at = if section.has("quorum") {
            "quorum"
        } else {
            "approvers"
        };
        section.fault(faults, &section.span_of(at), rule);
    }
}

/// Why the grant could ask. An allow asks untrusted sessions by default, but for declared `read`
/// tools without egress; should an offer tighten such a tool, a grant that names nobody denies.
fn could_ask(grant: &Grant, tools: &BTreeMap<ToolName, ToolFloor>) -> Option<&'static str> {
    let harmless = |glob: &NameGlob| {
        let tool = glob.literal().and_then(|name| tools.get(name));
        tool.is_some_and(|tool| tool.effects == Effects::Read && !tool.egress)
    };
    match (grant.effect, grant.untrusted) {
        (Word::Deny, _) => None,
        (Word::Ask, _) => Some("it asks"),
        (Word::Allow, _) if grant.above_max == Word::Ask => Some("it asks above its `max_class`"),
        (Word::Allow, Some(Word::Ask)) => Some("it asks where a session is untrusted"),
        (Word::Allow, Some(Word::Allow | Word::Deny)) => None,
        (Word::Allow, None) if grant.tools.iter().all(harmless) => None,
        (Word::Allow, None) => {
            Some("it asks where a session is untrusted, because `untrusted` is not stated")
        }
    }
}

fn check_examples(section: &Section<'_>, grant: &Grant, faults: &mut Faults<'_>) {
    let Some(node) = section.get("examples") else {
        return;
    };
    let place = format!("{}, examples", section.place);
    let Some(examples) = Section::of(node, place, &["match", "no_match"], faults) else {
        return;
    };
    for key in ["match", "no_match"] {
        let texts = examples.texts(faults, key).unwrap_or_default();
        if texts.len() > MAX_EXAMPLES {
            let rule = format!("`{key}` has at most {MAX_EXAMPLES} entries");
            examples.fault(faults, &examples.span_of(key), rule);
            continue;
        }
        for (place, text) in texts.iter().enumerate() {
            if let Err(rule) = check_example(grant, key == "match", text.text) {
                examples.fault(faults, &text.span, format!("{key}[{place}] {rule}"));
            }
        }
    }
}

/// An example that is to match must be permitted by `where` and `only`; one that is not must fall,
/// for a restriction without doubt, because what cannot be evaluated is restricted.
fn check_example(grant: &Grant, must_match: bool, text: &str) -> Result<(), &'static str> {
    if text.len() > MAX_EXAMPLE {
        return Err("is too long");
    }
    let Some(arguments) = decide::parse(text) else {
        return Err("is no JSON object without duplicate keys");
    };
    let reading = grant.read(Some(&arguments));
    let covered = reading.covered || grant.effect == Word::Deny;
    match (must_match, reading.fit) {
        (true, Fit::Matches) if covered => Ok(()),
        (true, Fit::Matches) => {
            Err("holds more than the `where` names; name it, or write `only = false`")
        }
        (true, Fit::Differs) => Err("does not match the `where`"),
        (true, Fit::Unclear) => Err("cannot be evaluated by the `where`"),
        (false, Fit::Differs) => Ok(()),
        (false, Fit::Unclear) if grant.effect == Word::Allow => Ok(()),
        (false, Fit::Unclear) => {
            Err("cannot be evaluated by the `where`, so the restriction applies to it")
        }
        (false, Fit::Matches) if grant.effect == Word::Allow && !covered => Ok(()),
        (false, Fit::Matches) => Err("matches the `where`"),
    }
}
