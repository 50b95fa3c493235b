//! What is no fault and still worth a look: told when a configuration is checked.

use proto::{RoleKind, RoleName};

use crate::glob::NameGlob;
use crate::grant::{Grant, Word};
use crate::ruleset::Ruleset;
use crate::tool::ToolFloor;

/// What a reviewer should know of a ruleset, a line each.
pub(crate) fn remarks(
    ruleset: &Ruleset,
    grants: &[&Grant],
    kind: impl Fn(&RoleName) -> Option<RoleKind>,
) -> Vec<String> {
    let mut remarks = Vec::new();
    for grant in grants {
        let mut remark = |what: String| remarks.push(format!("grant `{}`: {what}", grant.id));
        for role in literals(&grant.roles).filter_map(|name| RoleName::new(name).ok()) {
            if kind(&role) != Some(RoleKind::Agent) {
                remark(format!(
                    "`{role}` is no agent role, so nothing of its is meant"
                ));
            }
        }
        for name in literals(&grant.tools) {
            if ruleset.tool(name).is_none() {
                remark(format!(
                    "`{name}` is no tool: nothing declares it, and nobody may offer it"
                ));
            }
        }
        for tool in ruleset.declared().filter(|tool| is_capped(grant, tool)) {
            remark(format!(
                "its `max_class` is over the clearance of `{}` and does not count there; name the \
                 tool without a glob, or raise its `clearance`",
                tool.name
            ));
        }
        for (pointer, other) in avoided(grant, grants) {
            remark(format!(
                "leaving `{pointer}` out avoids it, and grant `{}` permits that; write \
                 `optional`, or demand the pointer there",
                other.id
            ));
        }
    }
    remarks
}

fn literals(globs: &[NameGlob]) -> impl Iterator<Item = &str> {
    globs.iter().filter_map(NameGlob::literal)
}

/// Whether the grant states more than the tool's clearance and names it by a glob alone.
fn is_capped(grant: &Grant, tool: &ToolFloor) -> bool {
    let name = tool.name.as_str();
    grant
        .max_class
        .is_some_and(|class| class > tool.effective(None).clearance)
        && grant.names_tool(name)
        && !literals(&grant.tools).any(|literal| literal == name)
}

/// The pointers of a restriction whose absence makes it fall, and who permits arguments without.
fn avoided<'g>(grant: &'g Grant, grants: &[&'g Grant]) -> Vec<(&'g str, &'g Grant)> {
    if grant.effect == Word::Allow {
        return Vec::new();
    }
    let demanded = |grant: &'g Grant| {
        let all = grant
            .constraints
            .iter()
            .flat_map(|constraints| &constraints.0);
        all.filter(|constraint| !constraint.optional)
            .map(|constraint| constraint.pointer.as_str())
    };
    let permitting = |grant: &&&Grant| grant.effect != Word::Deny;
    let mut avoided = Vec::new();
    for pointer in demanded(grant) {
        let without = grants.iter().filter(permitting).find(|other| {
            other.id != grant.id
                && overlap(&other.tools, &grant.tools)
                && overlap(&other.roles, &grant.roles)
                && !demanded(other).any(|demanded| is_at_or_below(demanded, pointer))
        });
        avoided.extend(without.map(|other| (pointer, *other)));
    }
    avoided
}

/// Whether a value at `pointer` needs one at `above`.
fn is_at_or_below(pointer: &str, above: &str) -> bool {
    pointer
        .strip_prefix(above)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether two lists of globs can mean the same name, as far as their texts tell.
fn overlap(a: &[NameGlob], b: &[NameGlob]) -> bool {
    a.iter().any(|a| {
        b.iter()
            .any(|b| a.matches(b.as_str()) || b.matches(a.as_str()))
    })
}
