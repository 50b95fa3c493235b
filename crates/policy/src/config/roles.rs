//! `[roles.*]`: who may connect as what, and within which bounds.

use std::collections::BTreeMap;

use proto::{DataClass, Effects, RoleName};

use super::faults::{Faults, Span};
use super::section::{Section, Text, unsigned};
use super::{LabelScope, Pin, Quota, Role, RoleKind, Settings, offers};
use crate::limits::{MAX_CONCURRENCY, MAX_ROLES, MAX_SOCKET_PATH, MAX_USER};
use crate::tool::OfferFloor;

const KEYS: &[&str] = &[
    "kind",
    "users",
    "groups",
    "mode",
    "group",
    "label_scope",
    "concurrency",
    "offers",
    "max_class",
    "quota",
];
const QUOTA_KEYS: &[&str] = &[
    "connections",
    "in_flight",
    "sessions",
    "closed_sessions",
    "approvals",
    "waiting_bytes",
    "stored_bytes",
    "arguments_bytes",
    "requests_per_second",
];

pub(crate) const CLASSES: &[(&str, DataClass)] = &[
    ("public", DataClass::Public),
    ("internal", DataClass::Internal),
    ("confidential", DataClass::Confidential),
    ("secret", DataClass::Secret),
];
pub(crate) const EFFECTS: &[(&str, Effects)] = &[
    ("read", Effects::Read),
    ("idempotent", Effects::Idempotent),
    ("once", Effects::Once),
];
pub(crate) const PINS: &[(&str, Pin)] = &[("first_use", Pin::FirstUse), ("accept", Pin::Accept)];
const KINDS: &[(&str, RoleKind)] = &[
    ("agent", RoleKind::Agent),
    ("runner", RoleKind::Runner),
    ("approver", RoleKind::Approver),
    ("operator", RoleKind::Operator),
];
const SCOPES: &[(&str, LabelScope)] =
    &[("session", LabelScope::Session), ("role", LabelScope::Role)];

impl Default for Quota {
    fn default() -> Self {
        Quota {
            connections: 16,
            in_flight: 64,
            sessions: 10_000,
            closed_sessions: 100_000,
            approvals: 16,
            waiting_bytes: 64 << 20,
            stored_bytes: 256 << 20,
            arguments_bytes: 64 << 20,
            requests_per_second: 1000,
        }
    }
}

/// All roles, and their offers compiled.
#[derive(Debug, Default)]
pub(crate) struct Roles {
    pub(crate) roles: BTreeMap<RoleName, Role>,
    pub(crate) offers: Vec<OfferFloor>,
    /// Every valid name, also of roles that have faults: naming those is no further fault.
    pub(crate) named: Vec<RoleName>,
}

/// Reads `[roles.*]`.
pub(crate) fn read(top: &Section<'_>, settings: &Settings, faults: &mut Faults) -> Roles {
    let mut all = Roles::default();
    let Some(node) = top.get("roles") else {
        top.fault(
            faults,
            &(0..0),
            "there is no role; write `[roles.NAME]` for each part that connects",
        );
        return all;
    };
    let Some(table) = node.get_ref().as_table() else {
        top.mistyped(faults, "roles", node, "tables `[roles.NAME]`");
        return all;
    };
    if table.len() > MAX_ROLES {
        top.fault(
            faults,
            &node.span(),
            format!("there are at most {MAX_ROLES} roles"),
        );
        return all;
    }
    let mut users = Vec::new();
    for (key, node) in table.iter() {
        let name = match RoleName::new(key.get_ref()) {
            Ok(name) => name,
            Err(rule) => {
                faults.add(&key.span(), format!("role `{}`: {rule}", key.get_ref()));
                continue;
            }
        };
        all.named.push(name.clone());
        let place = format!("role `{name}`");
        let Some(section) = Section::of(node, place, KEYS, faults) else {
            continue;
        };
        if let Some(role) = read_role(name, &section, settings, &mut all.offers, faults) {
            users.push((role.name.clone(), section.span_of("users"), section.place));
            all.roles.insert(role.name.clone(), role);
        }
    }
    if !settings.allow_shared_uid {
        shared_users(&all.roles, &users, faults);
    }
    offers::overlaps(&all.offers, faults);
    all
}

fn read_role(
    name: RoleName,
    section: &Section<'_>,
    settings: &Settings,
    offers: &mut Vec<OfferFloor>,
    faults: &mut Faults,
) -> Option<Role> {
    section.require(
        faults,
        "kind",
        "\"agent\"",
        ", or runner, approver, operator",
    );
    let kind = section.word(faults, "kind", KINDS);
    let socket = settings.runtime_dir.len() + name.as_str().len() + "/.sock".len();
    if socket > MAX_SOCKET_PATH && settings.runtime_dir.len() + 7 <= MAX_SOCKET_PATH {
        let rule = format!(
            "its socket's path is longer than {MAX_SOCKET_PATH} bytes; shorten the name or `runtime_dir`"
        );
        section.fault(faults, &section.span, rule);
    }
    let role = Role {
        users: read_users(section, "users", faults),
        groups: read_users(section, "groups", faults),
        mode: read_mode(section, faults).unwrap_or(0o666),
        group: section
            .text(faults, "group")
            .and_then(|text| user(section, text, faults)),
        label_scope: read_scope(section, kind, faults),
        concurrency: section
            .integer(faults, "concurrency", 1..=MAX_CONCURRENCY)
            .unwrap_or(16),
        offers: offers::read(&name, section, offers, faults),
        max_class: section
            .word(faults, "max_class", CLASSES)
            .unwrap_or_default(),
        quota: read_quota(section, faults),
        kind: kind?,
        name,
    };
    if role.kind != RoleKind::Runner {
        section.forbid(faults, "offers", "is for runners");
        section.forbid(faults, "concurrency", "is for runners");
    }
    if role.kind == RoleKind::Approver {
        section.require(
            faults,
            "max_class",
            "\"internal\"",
            ", the highest class that it is shown",
        );
    } else {
        section.forbid(faults, "max_class", "is for approvers");
    }
    Some(role)
}

fn read_scope(section: &Section<'_>, kind: Option<RoleKind>, faults: &mut Faults) -> LabelScope {
    match kind {
        Some(RoleKind::Agent) => {
            let note = ", or \"session\" if its code keeps its sessions apart";
            section.require(faults, "label_scope", "\"role\"", note);
            section
                .word(faults, "label_scope", SCOPES)
                .unwrap_or(LabelScope::Role)
        }
        Some(RoleKind::Runner | RoleKind::Approver | RoleKind::Operator) => {
            section.forbid(faults, "label_scope", "is for agents");
            LabelScope::None
        }
        None => LabelScope::None,
    }
}

fn read_users(section: &Section<'_>, key: &str, faults: &mut Faults) -> Vec<String> {
    let texts = section.texts(faults, key).unwrap_or_default();
    texts
        .into_iter()
        .filter_map(|text| user(section, text, faults))
        .collect()
}

/// A user's or group's name, or a decimal id without a zero in front.
fn user(section: &Section<'_>, text: Text<'_>, faults: &mut Faults) -> Option<String> {
    let name = text.text;
    let strange = |c: char| c.is_control() || c.is_whitespace() || c == ':' || c == '/';
    if name.is_empty() || name.len() > MAX_USER || name.contains(strange) {
        let rule = format!("a user or group is 1 to {MAX_USER} bytes without spaces, `:` and `/`");
        section.fault(faults, &text.span, rule);
        return None;
    }
    if name.bytes().all(|b| b.is_ascii_digit()) {
        let id = name
            .parse::<u32>()
            .ok()
            .filter(|id| *id != u32::MAX && id.to_string() == name);
        if id.is_none() {
            section.fault(faults, &text.span, format!("`{name}` is no uid or gid"));
            return None;
        }
        if id == Some(65_534) {
            section.fault(
                faults,
                &text.span,
                "65534 stands for everybody who has no id here, and is never admitted",
            );
            return None;
        }
    }
    Some(name.to_owned())
}

/// `0o660`, or `"0660"`.
fn read_mode(section: &Section<'_>, faults: &mut Faults) -> Option<u32> {
    let node = section.get("mode")?;
    let mode = match (node.get_ref().as_str(), node.get_ref().as_integer()) {
        (Some(text), _) if text.bytes().all(|b| b.is_ascii_digit()) => {
            u64::from_str_radix(text, 8).ok()
        }
        (_, Some(integer)) if integer.radix() == 8 => unsigned(integer),
        (_, _) => None,
    };
    let mode = mode
        .and_then(|mode| u32::try_from(mode).ok())
        .filter(|mode| *mode <= 0o777);
    if mode.is_none() {
        section.fault(
            faults,
            &node.span(),
            "`mode` must be octal, such as \"0660\"",
        );
    }
    mode
}

fn read_quota(section: &Section<'_>, faults: &mut Faults) -> Quota {
    let mut quota = Quota::default();
    let Some(node) = section.get("quota") else {
        return quota;
    };
    let place = format!("{}, quota", section.place);
    let Some(section) = Section::of(node, place, QUOTA_KEYS, faults) else {
        return quota;
    };
    for (key, value, most) in [
        ("connections", &mut quota.connections, 65_536),
        ("in_flight", &mut quota.in_flight, 65_536),
        ("sessions", &mut quota.sessions, 10_000_000),
        ("closed_sessions", &mut quota.closed_sessions, 100_000_000),
        ("approvals", &mut quota.approvals, 65_536),
        (
            "requests_per_second",
            &mut quota.requests_per_second,
            1_000_000,
        ),
    ] {
        if let Some(number) = section.integer(faults, key, 1..=most) {
            *value = number;
        }
    }
    for (key, value) in [
        ("waiting_bytes", &mut quota.waiting_bytes),
        ("stored_bytes", &mut quota.stored_bytes),
        ("arguments_bytes", &mut quota.arguments_bytes),
    ] {
        if let Some(bytes) = section.size(faults, key, 1..=1 << 40) {
            *value = bytes;
        }
    }
    quota
}

/// One person as an agent or a runner and as an approver or an operator undoes the separation.
fn shared_users(
    roles: &BTreeMap<RoleName, Role>,
    spans: &[(RoleName, Span, String)],
    faults: &mut Faults,
) {
    let judges = |role: &&Role| matches!(role.kind, RoleKind::Approver | RoleKind::Operator);
    for (name, span, place) in spans {
        let Some(role) = roles.get(name).filter(|role| !judges(role)) else {
            continue;
        };
        for judge in roles.values().filter(judges) {
            for user in role.users.iter().filter(|user| judge.users.contains(user)) {
                faults.add(
                    span,
                    format!(
                        "{place}: user `{user}` is also {} `{}`, so that these roles are not \
                         separated; give each its own user, or write `allow_shared_uid = true` in \
                         [broker]",
                        judge.kind.as_str(),
                        judge.name,
                    ),
                );
            }
        }
    }
}
