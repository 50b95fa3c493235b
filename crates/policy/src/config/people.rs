//! Who is asked: `approvers`, at the top and of each grant, and whether they can answer.

use std::collections::{BTreeMap, BTreeSet};

use proto::{Effects, RoleName, ToolName};

use super::faults::{Faults, hint};
use super::roles::Roles;
use super::section::{Section, Text};
use super::{Role, RoleKind, Settings};
use crate::glob::NameGlob;
use crate::grant::{Grant, Word};
use crate::tool::ToolFloor;

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
        faults: &mut Faults,
    ) -> Context {
        let people = |role: &Role| {
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
    pub(crate) fn approvers(
        &self,
        section: &Section<'_>,
        faults: &mut Faults,
    ) -> Option<Vec<RoleName>> {
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
        let mut users = BTreeSet::new();
        for role in approvers {
            users.extend(self.roles.get(role)?.1.as_ref()?);
        }
        Some(users.len())
    }
}

/// Whoever could be asked must be somebody, and enough.
pub(crate) fn check(
    section: &Section<'_>,
    grant: &Grant,
    context: &Context,
    tools: &BTreeMap<ToolName, ToolFloor>,
    faults: &mut Faults,
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
