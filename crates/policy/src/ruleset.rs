//! All grants and tool declarations, compiled; immutable.

use proto::{
    Access, Content, DataClass, Effects, GrantId, RoleName, SessionId, Timestamp, ToolName,
    ToolSpec,
};

use crate::config::Pin;
use crate::decision::{Decision, Query, TraceLine};

/// All grants and tool declarations, compiled; immutable.
#[derive(Debug, Clone, Default)]
pub struct Ruleset {}

/// What the ruleset itself says of a tool: a declaration, or an offer's floor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolFloor {
    /// Its name.
    pub name: ToolName,
    /// The one runner role that may serve it.
    pub runner: RoleName,
    /// The least class of its results.
    pub class: DataClass,
    /// Whether its results are a stranger's.
    pub untrusted: bool,
    /// What running it twice does, at worst.
    pub effects: Effects,
    /// Whether it can carry data out.
    pub egress: bool,
    /// The form of its results, where it is declared.
    pub content: Content,
    /// When an offered definition counts as read.
    pub pin: Pin,
    /// Whether `[[tool]]` declares it.
    pub declared: bool,
    /// The declared description and input schema, where `[[tool]]` states both.
    pub definition: Option<(String, String)>,
    /// `clearance` as declared, if it is.
    pub clearance: Option<DataClass>,
}

/// A tool as it counts now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectiveTool {
    /// Its name.
    pub name: ToolName,
    /// The one runner role that may serve it.
    pub runner: RoleName,
    /// The floor's class.
    pub class: DataClass,
    /// The floor's trust.
    pub untrusted: bool,
    /// What running it twice does.
    pub effects: Effects,
    /// Whether it can carry data out.
    pub egress: bool,
    /// The form of its results.
    pub content: Content,
    /// The `max_class` of a grant that states none.
    pub clearance: DataClass,
}

impl ToolFloor {
    /// The tool without an offer, or tightened by what a runner offered: never loosened.
    pub fn effective(&self, offered: Option<&ToolSpec>) -> EffectiveTool {
        let _ = offered;
        EffectiveTool {
            name: self.name.clone(),
            runner: self.runner.clone(),
            class: self.class,
            untrusted: self.untrusted,
            effects: self.effects,
            egress: self.egress,
            content: self.content,
            clearance: self.class,
        }
    }
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
    /// What the ruleset says of a tool: its declaration, else the one offer rule that admits the
    /// name. `None`: there is no such tool.
    pub fn tool(&self, name: &str) -> Option<ToolFloor> {
        let _ = name;
        None
    }

    /// Every declared tool, in the order of names.
    pub fn declared(&self) -> impl Iterator<Item = &ToolFloor> {
        std::iter::empty()
    }

    /// DESIGN 6, whole, approvals aside.
    pub fn decide(&self, query: &Query<'_>) -> Decision {
        self.explain(query).0
    }

    /// As [`Ruleset::decide`], with what became of every grant that was looked at.
    pub fn explain(&self, query: &Query<'_>) -> (Decision, Vec<TraceLine>) {
        let _ = query;
        (
            Decision::Deny(crate::decision::Deny {
                reason: proto::DenyReason::NoGrant,
                grant: None,
            }),
            Vec::new(),
        )
    }

    /// What a call of this tool could get at best, its arguments aside. `None`: nothing.
    pub fn access(&self, query: &Query<'_>) -> Option<Access> {
        let _ = query;
        None
    }

    /// Every grant, in file order, those of run time last.
    pub fn grants(&self) -> Vec<GrantView> {
        Vec::new()
    }

    /// This ruleset and one more grant, an allow (with `expires` and `max_uses`) or a deny, as
    /// TOML: the lines below `[[grant]]`. Gives the grant's id too.
    ///
    /// # Errors
    /// In words, what is wrong with it.
    pub fn with_grant(&self, toml: &str) -> Result<(Ruleset, GrantId), String> {
        let _ = toml;
        Err(String::new())
    }

    /// This ruleset without a grant that was added at run time.
    ///
    /// # Errors
    /// In words: there is no such grant, or it stands in the configuration.
    pub fn without_grant(&self, id: &GrantId) -> Result<Ruleset, String> {
        let _ = id;
        Err(String::new())
    }

    /// The asking that these grants would do for this tool, for a `preapprove`.
    ///
    /// # Errors
    /// In words: an unknown grant, or one that allows no standing approval, or asks nobody.
    pub fn asking(
        &self,
        grants: &[GrantId],
        role: &RoleName,
        session: &SessionId,
        tool: &EffectiveTool,
    ) -> Result<crate::decision::Ask, String> {
        let _ = (grants, role, session, tool);
        Err(String::new())
    }
}
