//! What a reviewer would say of a configuration that loads: a line for each thing that cannot mean
//! what it seems to. Nothing is called void that is not.

use proto::{DataClass, RoleName, Timestamp};

use crate::config::{Config, Role, RoleKind};
use crate::cover::{self, Over};
use crate::glob::NameGlob;
use crate::grant::{Grant, Word};
use crate::limits::MAX_REMARKS;
use crate::words;

impl Config {
    /// What is no fault and still worth a look, as of `now`: [`Ruleset::remarks`], grants that
    /// nothing can use or that another makes void, people who cannot be asked, and roles and tools
    /// that the grants leave out. At most [`MAX_REMARKS`], and one that says how many more.
    ///
    /// [`Ruleset::remarks`]: crate::Ruleset::remarks
    pub fn remarks(&self, now: Timestamp) -> Vec<String> {
        let mut remarks = self.ruleset.remarks();
        let review = Review { config: self, now };
        for grant in self.ruleset.all() {
            let said = review.grant(grant);
            remarks.extend(said.map(|what| format!("grant `{}`: {what}", grant.id)));
            let said = review.unheard(grant);
            remarks.extend(said.map(|what| format!("grant `{}`: {what}", grant.id)));
        }
        remarks.extend(self.roles.values().filter_map(|role| review.role(role)));
        remarks.extend(review.tools());
        if self.settings.allow_shared_uid {
            // First, so that no limit leaves it out.
            remarks.insert(
                0,
                "[broker] `allow_shared_uid` is true: one user may be agent and approver, and \
                 approve its own calls"
                    .to_owned(),
            );
        }
        let more = remarks.len().saturating_sub(MAX_REMARKS);
        if more > 0 {
            remarks.truncate(MAX_REMARKS);
            remarks.push(format!("and {more} more"));
        }
        remarks
    }
}

struct Review<'a> {
    config: &'a Config,
    now: Timestamp,
}

impl Review<'_> {
    /// Why a grant does nothing; the first reason.
    fn grant(&self, grant: &Grant) -> Option<String> {
        if let Some(at) = grant.expires.filter(|_| grant.is_expired(self.now)) {
            let at = words::date(at);
            return Some(format!(
                "it expired at {at} and permits nothing; take it out, or renew it"
            ));
        }
        let patterns = |globs: &[NameGlob]| globs.iter().any(|glob| glob.literal().is_none());
        let agents: Vec<&RoleName> = self.agents().map(|role| &role.name).collect();
        if patterns(&grant.roles) && !agents.iter().any(|role| grant.names_role(role.as_str())) {
            return Some("its `roles` match no agent role, so nothing can use it".to_owned());
        }
        if patterns(&grant.tools) && !self.names_some_tool(grant) {
            return Some("its `tools` match no tool, so nothing can use it".to_owned());
        }
        if cover::is_contradictory(grant) {
            return Some(
                "its `where` contradicts itself: nothing that one pointer wants has room for what \
                 another wants below it"
                    .to_owned(),
            );
        }
        let voiding = self.voiding(grant, &agents)?;
        Some(match grant.effect {
            Word::Allow => format!(
                "grant `{}` denies all that it permits, so it is void",
                voiding.id
            ),
            Word::Ask => {
                format!(
                    "grant `{}` denies all that it asks about, so nobody is ever asked",
                    voiding.id
                )
            }
            Word::Deny => format!(
                "grant `{}` denies all that it denies, so one is enough",
                voiding.id
            ),
        })
    }

    fn agents(&self) -> impl Iterator<Item = &Role> {
        let roles = self.config.roles.values();
        roles.filter(|role| role.kind == RoleKind::Agent)
    }

    fn names_some_tool(&self, grant: &Grant) -> bool {
        let ruleset = &self.config.ruleset;
        let declared = ruleset
            .declared()
            .any(|tool| grant.names_tool(tool.name.as_str()));
        let offered = ruleset.offers().iter().flat_map(|offer| &offer.globs);
        let literal = |glob: &NameGlob| {
            glob.literal()
                .is_some_and(|name| ruleset.tool(name).is_some())
        };
        declared
            || grant.tools.iter().any(literal)
            || offered
                .into_iter()
                .any(|offer| grant.tools.iter().any(|glob| glob.overlaps(offer)))
    }

    /// A deny that surely applies to every call that the grant is for.
    fn voiding(&self, grant: &Grant, agents: &[&RoleName]) -> Option<&Grant> {
        let mut seen = false;
        self.config.ruleset.all().find(|other| {
            if other.id == grant.id {
                seen = true;
                return false;
            }
            // Of two denies that say the same, the later one is the one too many.
            let first = grant.effect != Word::Deny || !seen;
            first && other.effect == Word::Deny && self.is_void_by(grant, other, agents)
        })
    }

    fn is_void_by(&self, grant: &Grant, deny: &Grant, agents: &[&RoleName]) -> bool {
        let mut roles = agents.iter().filter(|role| grant.names_role(role.as_str()));
        roles.all(|role| deny.names_role(role.as_str()))
            && covers(&deny.sessions, &grant.sessions)
            && covers(&deny.tools, &grant.tools)
            && match grant.effect {
                Word::Allow => cover::over(grant, deny) == Over::All,
                // They restrict what they cannot evaluate too: only one without conditions covers that.
                Word::Ask | Word::Deny => !deny.is_conditional(),
            }
    }

    /// Whether those whom a grant asks would not be shown what it asks about.
    fn unheard(&self, grant: &Grant) -> Option<String> {
        if grant.effect != Word::Ask {
            return None;
        }
        let shown = grant.terms.approvers.iter();
        let shown = shown.filter_map(|role| self.config.roles.get(role));
        let most = shown.map(|role| role.max_class).max()?;
        let tools = self.config.ruleset.declared();
        let tools = tools.filter(|tool| grant.names_tool(tool.name.as_str()));
        let asked: DataClass = tools
            .map(|tool| grant.highest_class(&tool.effective(None)))
            .max()?;
        (asked > most && grant.max_class.is_some()).then(|| {
            format!(
                "it asks about sessions that have seen up to {asked} data, and none of its approvers \
                 is shown more than {most}: above that the answer is no (`approval_expired`)"
            )
        })
    }

    fn role(&self, role: &Role) -> Option<String> {
        let name = role.name.as_str();
        let ruleset = &self.config.ruleset;
        let what = match role.kind {
            RoleKind::Agent => {
                let mut opening = ruleset.all().filter(|grant| grant.effect != Word::Deny);
                let named = opening.any(|grant| grant.names_role(name));
                (!named).then_some("no allow and no ask names it, so every call of it is denied")
            }
            RoleKind::Runner => {
                let declared = ruleset.declared().any(|tool| tool.runner == role.name);
                (!declared && role.offers.is_empty())
                    .then_some("no tool is declared for it and it may offer none")
            }
            RoleKind::Approver => {
                let asked = ruleset.all().filter(|grant| grant.effect != Word::Deny);
                let asked = asked.flat_map(|grant| &grant.terms.approvers);
                let named = asked.into_iter().any(|approver| *approver == role.name);
                (!named).then_some("no grant asks it")
            }
            RoleKind::Operator => None,
        };
        what.map(|what| format!("role `{name}`: {what}"))
    }

    /// Declared tools that nothing lets through.
    fn tools(&self) -> Vec<String> {
        let ruleset = &self.config.ruleset;
        let named = |name: &str| {
            let mut opening = ruleset.all().filter(|grant| grant.effect != Word::Deny);
            opening.any(|grant| grant.names_tool(name))
        };
        let left_out = ruleset.declared().filter(|tool| !named(tool.name.as_str()));
        left_out
            .map(|tool| {
                format!(
                    "tool `{}`: no allow and no ask names it, so nobody may call it",
                    tool.name
                )
            })
            .collect()
    }
}

/// Whether each of `inner` is surely within one of `outer`.
fn covers(outer: &[NameGlob], inner: &[NameGlob]) -> bool {
    inner
        .iter()
        .all(|inner| outer.iter().any(|outer| outer.covers(inner)))
}
