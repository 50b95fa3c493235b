//! All grants and tool declarations, compiled; immutable.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proto::{Access, GrantId, RoleName, SessionId, Timestamp, ToolName};
use toml::de::DeTable;

use crate::config::faults::Faults;
use crate::config::grants;
use crate::config::people::Context;
use crate::config::section::Section;
use crate::config::syntax;
use crate::decide;
use crate::decision::{Ask, Decision, Query, TraceLine};
use crate::explain;
use crate::grant::{Grant, Miss, Word};
use crate::limits::{MAX_GRANTS, MAX_TEXT};
use crate::remarks;
use crate::tool::{self, OfferFloor};

pub use crate::tool::{EffectiveTool, ToolFloor};

/// All grants and tool declarations, compiled; immutable. A clone is cheap.
#[derive(Debug, Clone, Default)]
pub struct Ruleset {
    tools: Arc<BTreeMap<ToolName, ToolFloor>>,
    offers: Arc<[OfferFloor]>,
    pub(crate) context: Arc<Context>,
    /// In file order, those of run time last.
    grants: Vec<Arc<Grant>>,
    /// For each tool that something names without a glob: the grants that match it, in order.
    index: Arc<BTreeMap<ToolName, Vec<Arc<Grant>>>>,
}

/// A grant as an operator is shown it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantView {
    /// Its name.
    pub id: GrantId,
    /// `allow`, `ask` or `deny`.
    pub effect: &'static str,
    /// Its own reason.
    pub why: String,
    /// Whether it was added at run time.
    pub runtime: bool,
    /// Uses in all.
    pub max_uses: Option<u64>,
    /// When it lapses.
    pub expires: Option<Timestamp>,
}

impl Ruleset {
    pub(crate) fn new(
        tools: BTreeMap<ToolName, ToolFloor>,
        offers: Vec<OfferFloor>,
        grants: Vec<Grant>,
        context: Context,
    ) -> Ruleset {
        let ruleset = Ruleset {
            tools: Arc::new(tools),
            offers: offers.into(),
            context: Arc::new(context),
            grants: grants.into_iter().map(Arc::new).collect(),
            index: Arc::default(),
        };
        ruleset.indexed()
    }

    /// What the ruleset says of a tool: its declaration, else what the one runner role says whose
    /// offer rules admit the name. `None`: there is no such tool.
    pub fn tool(&self, name: &str) -> Option<ToolFloor> {
        tool::find(&self.tools, &self.offers, name)
    }

    /// Every declared tool, in the order of names.
    pub fn declared(&self) -> impl Iterator<Item = &ToolFloor> {
        self.tools.values()
    }

    /// DESIGN 6, whole, approvals aside.
    pub fn decide(&self, query: &Query<'_>) -> Decision {
        let candidates: Vec<&Grant> = self.candidates(query).collect();
        decide::decide(&candidates, query, None)
    }

    /// As [`Ruleset::decide`], with what became of every grant, in file order.
    pub fn explain(&self, query: &Query<'_>) -> (Decision, Vec<TraceLine>) {
        let mut heard = Vec::new();
        let candidates: Vec<&Grant> = self.candidates(query).collect();
        let decision = decide::decide(&candidates, query, Some(&mut heard));
        let mut heard = heard.into_iter().peekable();
        let line = |grant: &Arc<Grant>| {
            if let Some(line) = heard.next_if(|line| line.grant == grant.id) {
                return line;
            }
            explain::elsewhere(grant, miss(grant, query))
        };
        (decision, self.grants.iter().map(line).collect())
    }

    /// What a call of this tool could get at best, its arguments aside. `None`: nothing.
    pub fn access(&self, query: &Query<'_>) -> Option<Access> {
        decide::access(self.candidates(query), query)
    }

    /// Every grant, in file order, those of run time last.
    pub fn grants(&self) -> Vec<GrantView> {
        let view = |grant: &Arc<Grant>| GrantView {
            id: grant.id.clone(),
            effect: grant.effect.as_str(),
            why: grant.why.clone(),
            runtime: grant.runtime,
            max_uses: grant.max_uses,
            expires: grant.expires,
        };
        self.grants.iter().map(view).collect()
    }

    /// This ruleset and one more grant, an allow (with `expires` and `max_uses`) or a deny, as
    /// TOML: the lines below `[[grant]]`. Gives the grant's id too.
    ///
    /// # Errors
    /// In words, what is wrong with it; a line for each fault.
    pub fn with_grant(&self, toml: &str) -> Result<(Ruleset, GrantId), String> {
        let mut faults = Faults::new(toml);
        let mut grant = None;
        if self.grants.len() >= MAX_GRANTS {
            faults.add(&(0..0), format!("there are at most {MAX_GRANTS} grants"));
        } else if toml.len() > MAX_TEXT {
            faults.add(&(0..0), format!("a grant has at most {MAX_TEXT} bytes"));
        } else {
            let (table, wrong) = DeTable::parse_recoverable(toml);
            syntax(&wrong, &mut faults);
            if wrong.is_empty() {
                grant = grants::read_alone(&table, &self.context, &self.tools, &mut faults);
            }
        }
        let taken = |grant: &Grant| self.grants.iter().any(|other| other.id == grant.id);
        if let Some(grant) = grant.as_ref().filter(|grant| taken(grant)) {
            faults.add(&(0..0), format!("grant `{}`: the id is taken", grant.id));
        }
        match grant {
            Some(grant) if faults.is_empty() => {
                let id = grant.id.clone();
                let mut more = self.clone();
                more.grants.push(Arc::new(grant));
                Ok((more.indexed(), id))
            }
            Some(_) | None => Err(faults.into_error("grant").to_string()),
        }
    }

    /// This ruleset and more grants, as the lines that would be appended to a configuration.
    ///
    /// # Errors
    /// In words, what is wrong with them; a line for each fault.
    pub(crate) fn with_grants(&self, toml: &str) -> Result<Ruleset, String> {
        let mut faults = Faults::new(toml);
        let (table, wrong) = DeTable::parse_recoverable(toml);
        syntax(&wrong, &mut faults);
        let (span, place) = (table.span(), "the grants".to_owned());
        let top = Section::new(table.get_ref(), span, place, &["grant"], &mut faults);
        let grants = grants::read(&top, &self.context, &self.tools, &mut faults);
        if self.grants.len() + grants.len() > MAX_GRANTS {
            faults.add(&(0..0), format!("there are at most {MAX_GRANTS} grants"));
        }
        let taken: BTreeSet<&GrantId> = self.all().map(|grant| &grant.id).collect();
        for grant in grants.iter().filter(|grant| taken.contains(&grant.id)) {
            faults.add(&(0..0), format!("grant `{}`: the id is taken", grant.id));
        }
        if !faults.is_empty() {
            return Err(faults.into_error("grants").to_string());
        }
        let mut more = self.clone();
        more.grants.extend(grants.into_iter().map(Arc::new));
        Ok(more.indexed())
    }

    /// This ruleset without a grant that was added at run time.
    ///
    /// # Errors
    /// In words: there is no such grant, or it stands in the configuration.
    pub fn without_grant(&self, id: &GrantId) -> Result<Ruleset, String> {
        let grant = self.grants.iter().find(|grant| grant.id == *id);
        match grant {
            None => Err(format!("there is no grant `{id}`")),
            Some(grant) if !grant.runtime => Err(format!(
                "grant `{id}` stands in the configuration; take it out there and reload"
            )),
            Some(_) => {
                let mut less = self.clone();
                less.grants.retain(|grant| grant.id != *id);
                Ok(less.indexed())
            }
        }
    }

    /// The asking that these grants would do for this tool, for a `preapprove`, in file order. They
    /// are taken to permit; where one does not, the call's asking pins more, and is not covered.
    ///
    /// # Errors
    /// In words: an unknown grant, or one that is not for this call, allows no standing approval,
    /// or asks nobody.
    pub fn asking(
        &self,
        grants: &[GrantId],
        role: &RoleName,
        session: &SessionId,
        tool: &EffectiveTool,
    ) -> Result<Ask, String> {
        let wanted: BTreeSet<&GrantId> = grants.iter().collect();
        for id in &wanted {
            let grant = self.grants.iter().find(|grant| grant.id == **id);
            let grant = grant.ok_or_else(|| format!("there is no grant `{id}`"))?;
            if grant
                .miss(role.as_str(), session.as_str(), tool.name.as_str())
                .is_some()
            {
                return Err(format!(
                    "grant `{id}` is not for this role, session and tool"
                ));
            }
            if grant.effect == Word::Deny || grant.terms.approvers.is_empty() {
                return Err(format!("grant `{id}` asks nobody"));
            }
            if grant.terms.standing_ttl.is_none() || grant.terms.standing_uses.is_none() {
                return Err(format!("grant `{id}` allows no standing approval"));
            }
        }
        let asking: Vec<&Grant> = self
            .grants
            .iter()
            .map(Arc::as_ref)
            .filter(|grant| wanted.contains(&grant.id))
            .collect();
        let first = asking.first().ok_or("no grant is named")?;
        let permit = decide::permit(first, asking.iter().copied());
        Ok(Ask {
            grants: asking.iter().map(|grant| grant.asking(true)).collect(),
            permit,
        })
    }

    /// What the grants and tools alone tell of what is no fault and still worth a reviewer's look
    /// ([`Config::remarks`](crate::Config::remarks) tells more), a line each: names that mean nothing, a
    /// `max_class` that does not count, restrictions that leaving a pointer out avoids.
    pub fn remarks(&self) -> Vec<String> {
        let grants: Vec<&Grant> = self.grants.iter().map(Arc::as_ref).collect();
        let kind = |role: &RoleName| self.context.roles.get(role).map(|(kind, _)| *kind);
        remarks::remarks(self, &grants, kind)
    }

    /// Every grant, in file order, those of run time last.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Grant> {
        self.grants.iter().map(Arc::as_ref)
    }

    /// Every offer rule.
    pub(crate) fn offers(&self) -> &[OfferFloor] {
        &self.offers
    }

    /// The grants with `max_uses` for such calls: the uses of no others decide about them.
    pub fn counted<'r>(
        &'r self,
        role: &'r RoleName,
        session: &'r SessionId,
        tool: &'r ToolName,
    ) -> impl Iterator<Item = &'r GrantId> {
        let all = self.meant(role, session, tool);
        all.filter(|grant| grant.max_uses.is_some())
            .map(|grant| &grant.id)
    }

    pub(crate) fn candidates<'r>(
        &'r self,
        query: &Query<'r>,
    ) -> impl Iterator<Item = &'r Grant> + use<'r> {
        self.meant(query.role, query.session, &query.tool.name)
    }

    /// Those of which roles, sessions and tools match.
    fn meant<'r>(
        &'r self,
        role: &'r RoleName,
        session: &'r SessionId,
        tool: &'r ToolName,
    ) -> impl Iterator<Item = &'r Grant> + use<'r> {
        let (role, session, name) = (role.as_str(), session.as_str(), tool.as_str());
        let indexed = self.index.get(name);
        let grants = indexed.unwrap_or(&self.grants).iter().map(Arc::as_ref);
        grants.filter(move |grant| {
            (indexed.is_some() || grant.names_tool(name))
                && grant.names_role_and_session(role, session)
        })
    }

    fn indexed(mut self) -> Ruleset {
        let literals = self
            .grants
            .iter()
            .flat_map(|grant| &grant.tools)
            .filter_map(|glob| glob.literal());
        let names = literals.filter_map(|name| ToolName::new(name).ok());
        let names: BTreeSet<ToolName> = self.tools.keys().cloned().chain(names).collect();
        let matching = |name: ToolName| {
            let grants = self
                .grants
                .iter()
                .filter(|grant| grant.names_tool(name.as_str()));
            let grants = grants.cloned().collect();
            (name, grants)
        };
        self.index = Arc::new(names.into_iter().map(matching).collect());
        self
    }
}

fn miss(grant: &Grant, query: &Query<'_>) -> Option<Miss> {
    grant.miss(
        query.role.as_str(),
        query.session.as_str(),
        query.tool.name.as_str(),
    )
}
