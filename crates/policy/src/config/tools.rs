//! `[[tool]]`: what the operator says of a tool. What is not said is taken at its worst.

use std::collections::BTreeMap;

use proto::{Content, DataClass, Effects, ToolName};

use super::faults::{Faults, hint};
use super::roles::{CLASSES, EFFECTS, PINS, Roles};
use super::section::{Node, Section};
use super::{Pin, RoleKind};
use crate::limits::{MAX_DESCRIPTION, MAX_SCHEMA, MAX_TOOLS};
use crate::tool::{self, ToolFloor};

const KEYS: &[&str] = &[
    "name",
    "runner",
    "class",
    "untrusted",
    "effects",
    "egress",
    "content",
    "clearance",
    "pin",
    "description",
    "input_schema",
];
const CONTENTS: &[(&str, Content)] = &[("text", Content::Text), ("mcp", Content::Mcp)];

/// Reads every `[[tool]]`.
pub(crate) fn read(
    top: &Section<'_>,
    roles: &Roles,
    faults: &mut Faults,
) -> BTreeMap<ToolName, ToolFloor> {
    let mut tools: BTreeMap<ToolName, (ToolFloor, usize)> = BTreeMap::new();
    let nodes = top.tables(faults, "tool");
    if nodes.len() > MAX_TOOLS {
        top.fault(
            faults,
            &top.span_of("tool"),
            format!("there are at most {MAX_TOOLS} tools"),
        );
        return BTreeMap::new();
    }
    for node in nodes {
        let Some((section, tool)) = read_tool(node, roles, faults) else {
            continue;
        };
        let line = faults.line(&node.span());
        if let Some((_, earlier)) = tools.get(&tool.name) {
            let at = section.span_of("name");
            section.fault(faults, &at, format!("declared already in line {earlier}"));
            continue;
        }
        tools.insert(tool.name.clone(), (tool, line));
    }
    tools
        .into_iter()
        .map(|(name, (tool, _))| (name, tool))
        .collect()
}

fn read_tool<'d>(
    node: &'d Node<'d>,
    roles: &Roles,
    faults: &mut Faults,
) -> Option<(Section<'d>, ToolFloor)> {
    let mut place = "a tool".to_owned();
    if let Some(name) = node
        .get_ref()
        .get("name")
        .and_then(|name| name.get_ref().as_str())
    {
        place = format!("tool `{name}`");
    }
    let section = Section::of(node, place, KEYS, faults)?;
    section.require(faults, "name", "\"read_file\"", "");
    section.require(
        faults,
        "runner",
        "\"files\"",
        ", the runner role that serves it",
    );
    let name = section
        .text(faults, "name")
        .and_then(|text| match ToolName::new(text.text) {
            Ok(name) => Some(name),
            Err(rule) => {
                section.fault(faults, &text.span, rule);
                None
            }
        });
    let runner = read_runner(&section, roles, faults);
    let class = section.word(faults, "class", CLASSES);
    let untrusted = section.flag(faults, "untrusted");
    let effects = section.word(faults, "effects", EFFECTS);
    let egress = section.flag(faults, "egress");
    let content = section.word(faults, "content", CONTENTS);
    let pin = section.word(faults, "pin", PINS);
    let clearance = section.word(faults, "clearance", CLASSES);
    let definition = read_definition(&section, faults);
    let (name, runner) = (name?, runner?);
    let offered = tool::offered_pin(&roles.offers, &runner, name.as_str());
    let tool = ToolFloor {
        class: class.unwrap_or(DataClass::Internal),
        untrusted: untrusted.unwrap_or(true),
        effects: effects.unwrap_or(Effects::Once),
        egress: egress.unwrap_or(true),
        content: content.unwrap_or(Content::Text),
        pin: pin.or(offered).unwrap_or(Pin::Accept),
        declared: true,
        definition,
        clearance,
        name,
        runner,
    };
    Some((section, tool))
}

fn read_runner(
    section: &Section<'_>,
    roles: &Roles,
    faults: &mut Faults,
) -> Option<proto::RoleName> {
    let text = section.text(faults, "runner")?;
    match roles.roles.get(text.text) {
        Some(role) if role.kind == RoleKind::Runner => return Some(role.name.clone()),
        Some(role) => {
            let kind = role.kind.as_str();
            let rule = format!(
                "role `{}` is of kind {kind}; name one of kind runner",
                role.name
            );
            section.fault(faults, &text.span, rule);
        }
        // A role that is there and has faults of its own.
        None if roles.named.iter().any(|role| role.as_str() == text.text) => {}
        None => {
            let runners = roles
                .roles
                .values()
                .filter(|role| role.kind == RoleKind::Runner);
            let hint = hint(text.text, runners.map(|role| role.name.as_str()));
            let rule = format!("there is no runner role `{}`{hint}", text.text);
            section.fault(faults, &text.span, rule);
        }
    }
    None
}

fn read_definition(section: &Section<'_>, faults: &mut Faults) -> Option<(String, String)> {
    let description = section.short_text(faults, "description", MAX_DESCRIPTION);
    let schema = section.short_text(faults, "input_schema", MAX_SCHEMA);
    for (one, other) in [
        ("description", "input_schema"),
        ("input_schema", "description"),
    ] {
        if section.has(one) && !section.has(other) {
            let rule = format!("`{one}` without `{other}` defines nothing; state both or neither");
            section.fault(faults, &section.span_of(one), rule);
        }
    }
    let schema = schema.filter(|text| {
        let object = proto::json::parse(text.text).is_ok_and(|schema| schema.is_object());
        if !object {
            let rule = "`input_schema` must be a JSON object, as text, without duplicate keys";
            section.fault(faults, &text.span, rule);
        }
        object
    });
    Some((description?.text.to_owned(), schema?.text.to_owned()))
}
