//! What a reload changes, in words: a line for each setting, role, tool and grant.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use super::{Config, Role, Settings, units};
use crate::grant::{Grant, Word};
use crate::limits::MAX_CHANGES;
use crate::tool::ToolFloor;

impl Config {
    /// What this configuration changes of `old`, a line each: settings, roles, tools, grants. At
    /// most [`MAX_CHANGES`] lines, and one that says how many more.
    pub fn changes_from(&self, old: &Config) -> Vec<String> {
        let mut lines = settings(&self.settings, &old.settings);
        let (new_context, old_context) = (&self.ruleset.context, &old.ruleset.context);
        if new_context.approvers != old_context.approvers {
            lines.push(format!(
                "`approvers` is now {}, was {}",
                list(&new_context.approvers),
                list(&old_context.approvers)
            ));
        }
        named("role", &self.roles, &old.roles, role, &mut lines);
        let tools = |config: &Config| -> BTreeMap<_, _> {
            let declared = config.ruleset.declared();
            declared
                .map(|tool| (tool.name.clone(), tool.clone()))
                .collect()
        };
        named("tool", &tools(self), &tools(old), tool, &mut lines);
        let (new_grants, old_grants) = (grants(self), grants(old));
        let by_id = |grants: &[&Grant]| -> BTreeMap<_, _> {
            let pairs = grants
                .iter()
                .map(|grant| (grant.id.clone(), (*grant).clone()));
            pairs.collect()
        };
        named(
            "grant",
            &by_id(&new_grants),
            &by_id(&old_grants),
            grant,
            &mut lines,
        );
        if let Some(line) = moved(&new_grants, &old_grants) {
            lines.push(line);
        }
        let more = lines.len().saturating_sub(MAX_CHANGES);
        if more > 0 {
            lines.truncate(MAX_CHANGES);
            lines.push(format!("and {more} more"));
        }
        lines
    }
}

/// Those of the file.
fn grants(config: &Config) -> Vec<&Grant> {
    config
        .ruleset
        .all()
        .filter(|grant| !grant.runtime)
        .collect()
}

/// What was added and removed, and what changed of the rest.
fn named<K: Ord + Display, V>(
    kind: &str,
    new: &BTreeMap<K, V>,
    old: &BTreeMap<K, V>,
    changed: impl Fn(&V, &V) -> Vec<&'static str>,
    lines: &mut Vec<String>,
) {
    for (name, value) in new {
        match old.get(name) {
            None => lines.push(format!("{kind} `{name}` is new")),
            Some(before) => {
                let keys = changed(value, before);
                if !keys.is_empty() {
                    lines.push(format!("{kind} `{name}` changed: {}", keys.join(", ")));
                }
            }
        }
    }
    let gone = old.keys().filter(|name| !new.contains_key(name));
    lines.extend(gone.map(|name| format!("{kind} `{name}` is gone")));
}

/// The keys of which the parts differ.
fn differing<const N: usize>(parts: [(&'static str, bool); N]) -> Vec<&'static str> {
    let differs = parts.into_iter().filter(|(_, same)| !same);
    differs.map(|(key, _)| key).collect()
}

fn settings(new: &Settings, old: &Settings) -> Vec<String> {
    let time = units::duration_text;
    let parts = |s: &Settings| {
        [
            ("runtime_dir", s.runtime_dir.clone()),
            ("state_dir", s.state_dir.clone()),
            ("max_frame", units::size_text(s.max_frame)),
            ("runner_wait", time(s.runner_wait)),
            ("call_timeout", time(s.call_timeout)),
            ("call_limit", time(s.call_limit)),
            ("cancel_grace", time(s.cancel_grace)),
            ("frame_timeout", time(s.frame_timeout)),
            ("write_timeout", time(s.write_timeout)),
            ("drain_timeout", time(s.drain_timeout)),
            ("approval_ttl", time(s.approval_ttl)),
            ("refusal_ttl", time(s.refusal_ttl)),
            ("answer_ttl", time(s.answer_ttl)),
            ("audit_arguments_ttl", time(s.audit_arguments_ttl)),
            ("session_ttl", time(s.session_ttl)),
            ("allow_shared_uid", s.allow_shared_uid.to_string()),
        ]
    };
    let pairs = parts(new).into_iter().zip(parts(old));
    pairs
        .filter(|((_, new), (_, old))| new != old)
        .map(|((key, new), (_, old))| format!("`{key}` is now {new}, was {old}"))
        .collect()
}

fn role(new: &Role, old: &Role) -> Vec<&'static str> {
    differing([
        ("kind", new.kind == old.kind),
        ("users", new.users == old.users),
        ("groups", new.groups == old.groups),
        ("mode", new.mode == old.mode),
        ("group", new.group == old.group),
        ("label_scope", new.label_scope == old.label_scope),
        ("concurrency", new.concurrency == old.concurrency),
        ("offers", new.offers == old.offers),
        ("max_class", new.max_class == old.max_class),
        ("quota", new.quota == old.quota),
    ])
}

fn tool(new: &ToolFloor, old: &ToolFloor) -> Vec<&'static str> {
    let (description, schema) = definition(new);
    let (old_description, old_schema) = definition(old);
    differing([
        ("runner", new.runner == old.runner),
        ("class", new.class == old.class),
        ("untrusted", new.untrusted == old.untrusted),
        ("effects", new.effects == old.effects),
        ("egress", new.egress == old.egress),
        ("content", new.content == old.content),
        ("clearance", new.clearance == old.clearance),
        ("pin", new.pin == old.pin),
        ("description", description == old_description),
        ("input_schema", schema == old_schema),
    ])
}

fn definition(tool: &ToolFloor) -> (Option<&str>, Option<&str>) {
    match &tool.definition {
        Some((description, schema)) => (Some(description), Some(schema)),
        None => (None, None),
    }
}

/// Defaults count as they are filled in, as in a grant's hash; a changed one voids approvals.
fn grant(new: &Grant, old: &Grant) -> Vec<&'static str> {
    let (terms, old_terms) = (&new.terms, &old.terms);
    if new.hash == old.hash {
        return Vec::new();
    }
    let mut keys = differing([
        ("effect", new.effect == old.effect),
        ("roles", new.roles == old.roles),
        ("sessions", new.sessions == old.sessions),
        ("tools", new.tools == old.tools),
        ("where", new.constraints == old.constraints),
        ("unless", new.unless == old.unless),
        ("only", new.only == old.only),
        ("max_class", new.max_class == old.max_class),
        ("above_max", new.above_max == old.above_max),
        ("untrusted", new.untrusted == old.untrusted),
        ("approvers", terms.approvers == old_terms.approvers),
        ("quorum", terms.quorum == old_terms.quorum),
        ("approval_ttl", terms.approval_ttl == old_terms.approval_ttl),
        ("standing_ttl", terms.standing_ttl == old_terms.standing_ttl),
        (
            "standing_uses",
            terms.standing_uses == old_terms.standing_uses,
        ),
        ("expires", new.expires == old.expires),
        ("max_uses", new.max_uses == old.max_uses),
        ("why", new.why == old.why),
    ]);
    if keys.is_empty() {
        // The same matchers, written another way: `equals` for a `one_of` with one value.
        return vec!["how its `where` or `unless` is written"];
    }
    if new.effect == Word::Deny {
        // Defaults are filled in there too, and mean nothing.
        keys.retain(|key| !matches!(*key, "approvers" | "approval_ttl"));
    }
    keys
}

/// Whether the grants that both have stand in another order, which decides whose use is spent.
fn moved(new: &[&Grant], old: &[&Grant]) -> Option<String> {
    let ids = |grants: &[&Grant]| -> BTreeSet<_> {
        grants.iter().map(|grant| grant.id.clone()).collect()
    };
    let (in_new, in_old) = (ids(new), ids(old));
    let kept_new = new.iter().filter(|grant| in_old.contains(&grant.id));
    let kept_old = old.iter().filter(|grant| in_new.contains(&grant.id));
    let same = kept_new.map(|g| &g.id).eq(kept_old.map(|g| &g.id));
    (!same).then(|| "the grants stand in another order".to_owned())
}

fn list(names: &[impl Display]) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    if names.is_empty() {
        "nobody".to_owned()
    } else {
        names.join(", ")
    }
}
