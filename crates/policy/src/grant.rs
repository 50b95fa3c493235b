//! One grant, compiled.

use std::fmt;

use proto::{DataClass, Effects, GrantId, Label, RoleName, Timestamp};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::canonical;
use crate::decision::AskingGrant;
use crate::glob::NameGlob;
use crate::matcher::{Constraints, Fit};
use crate::ruleset::EffectiveTool;

/// What a grant says, strictest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Word {
    Deny,
    Ask,
    Allow,
}

impl Word {
    /// As the configuration writes it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Word::Deny => "deny",
            Word::Ask => "ask",
            Word::Allow => "allow",
        }
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One `[[grant]]`.
#[derive(Debug, Clone)]
pub(crate) struct Grant {
    pub(crate) id: GrantId,
    pub(crate) runtime: bool,
    pub(crate) effect: Word,
    pub(crate) roles: Vec<NameGlob>,
    pub(crate) sessions: Vec<NameGlob>,
    pub(crate) tools: Vec<NameGlob>,
    pub(crate) constraints: Option<Constraints>,
    pub(crate) unless: Option<Constraints>,
    pub(crate) only: bool,
    pub(crate) max_class: Option<DataClass>,
    pub(crate) above_max: Word,
    pub(crate) untrusted: Option<Word>,
    pub(crate) expires: Option<Timestamp>,
    pub(crate) max_uses: Option<u64>,
    pub(crate) terms: Terms,
    pub(crate) why: String,
    /// Over all that it says; see [`Grant::hash`].
    pub(crate) hash: [u8; 32],
}

/// How a grant asks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Terms {
    pub(crate) approvers: Vec<RoleName>,
    pub(crate) quorum: u32,
    pub(crate) approval_ttl: u64,
    pub(crate) standing_ttl: Option<u64>,
    pub(crate) standing_uses: Option<u64>,
}

/// Which part of a grant leaves a question out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Miss {
    Role,
    Session,
    Tool,
}

/// What a grant's constraints make of some arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    /// How they stand to `where`.
    pub(crate) fit: Fit,
    /// Whether `unless` lets them off.
    pub(crate) excused: bool,
    /// Whether `only` holds, which counts for permission alone.
    pub(crate) covered: bool,
}

impl Grant {
    /// Whether its names match; the tool's aside, which an index may have answered already.
    pub(crate) fn names_role_and_session(&self, role: &str, session: &str) -> bool {
        any(&self.roles, role) && any(&self.sessions, session)
    }

    /// Whether one of its roles' globs matches.
    pub(crate) fn names_role(&self, role: &str) -> bool {
        any(&self.roles, role)
    }

    /// Whether one of its tools' globs matches.
    pub(crate) fn names_tool(&self, tool: &str) -> bool {
        any(&self.tools, tool)
    }

    /// The first of its names that does not match.
    pub(crate) fn miss(&self, role: &str, session: &str, tool: &str) -> Option<Miss> {
        if !any(&self.roles, role) {
            Some(Miss::Role)
        } else if !any(&self.sessions, session) {
            Some(Miss::Session)
        } else if !any(&self.tools, tool) {
            Some(Miss::Tool)
        } else {
            None
        }
    }

    /// Whether it must read the arguments.
    pub(crate) fn is_conditional(&self) -> bool {
        self.constraints.is_some() || self.unless.is_some()
    }

    /// Reads parsed arguments; where there are none, nothing is constrained.
    pub(crate) fn read(&self, arguments: Option<&Value>) -> Reading {
        let fit = |constraints: &Constraints| match arguments {
            Some(arguments) => constraints.fit(arguments),
            None => Fit::Unclear,
        };
        let covered = match (&self.constraints, arguments) {
            (Some(constraints), Some(arguments)) => !self.only || constraints.cover(arguments),
            (Some(_), None) => false,
            (None, _) => true,
        };
        Reading {
            fit: self.constraints.as_ref().map_or(Fit::Matches, fit),
            excused: self.unless.as_ref().map(fit) == Some(Fit::Matches),
            covered,
        }
    }

    /// A restriction applies where it is not known to be meant for something else.
    pub(crate) fn applies(&self, reading: Reading) -> bool {
        self.effect != Word::Allow && reading.fit != Fit::Differs && !reading.excused
    }

    /// An allow or an ask permits only what it is known to be meant for.
    pub(crate) fn permits(&self, reading: Reading) -> bool {
        self.effect != Word::Deny
            && reading.fit == Fit::Matches
            && reading.covered
            && !reading.excused
    }

    /// The strictest of its effect, `above_max` and `untrusted`, for this tool at this label.
    pub(crate) fn word(&self, tool: &EffectiveTool, label: Label) -> Word {
        let mut word = self.effect;
        if label.class > self.highest_class(tool) {
            word = word.min(self.above_max);
        }
        if label.untrusted {
            word = word.min(self.word_untrusted(tool));
        }
        // A declared `read` tool that an offer tightened may bring a grant here that names nobody.
        if word == Word::Ask && self.terms.approvers.is_empty() {
            Word::Deny
        } else {
            word
        }
    }

    /// What an untrusted session gets at most.
    pub(crate) fn word_untrusted(&self, tool: &EffectiveTool) -> Word {
        let harmless = tool.effects == Effects::Read && !tool.egress;
        let default = if harmless { Word::Allow } else { Word::Ask };
        self.untrusted.unwrap_or(default)
    }

    /// A `max_class` over the tool's clearance counts only where the tool is named without a glob.
    pub(crate) fn highest_class(&self, tool: &EffectiveTool) -> DataClass {
        match self.max_class {
            None => tool.clearance,
            Some(class) if class <= tool.clearance => class,
            Some(class) => {
                let literal = self
                    .tools
                    .iter()
                    .any(|glob| glob.literal() == Some(tool.name.as_str()));
                if literal { class } else { tool.clearance }
            }
        }
    }

    /// Whether its uses are spent.
    pub(crate) fn is_spent(&self, uses: u64) -> bool {
        self.max_uses.is_some_and(|most| uses >= most)
    }

    /// Whether its time is over: at `expires` itself it is.
    pub(crate) fn is_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| now >= expires)
    }

    /// What an approver is asked by it. A standing approval pins the values that its `where` names
    /// if that `where` speaks for the whole call, else all of the arguments.
    pub(crate) fn asking(&self, permits: bool) -> AskingGrant {
        let pointers = match &self.constraints {
            Some(constraints) if self.only && permits => {
                constraints.pointers().map(str::to_owned).collect()
            }
            Some(_) | None => vec![String::new()],
        };
        AskingGrant {
            id: self.id.clone(),
            hash: self.hash,
            why: self.why.clone(),
            pointers,
            approvers: self.terms.approvers.clone(),
            quorum: self.terms.quorum,
            approval_ttl: self.terms.approval_ttl,
            standing_ttl: self.terms.standing_ttl,
            standing_uses: self.terms.standing_uses,
        }
    }

    /// SHA-256 over all that it says, defaults filled in, as canonical JSON. `written`
    /// is its `where` and `unless` as they were written.
    pub(crate) fn hash(&self, written: &Value) -> [u8; 32] {
        let terms = &self.terms;
        let all = serde_json::json!({
            "id": self.id.as_str(),
            "effect": self.effect.as_str(),
            "roles": texts(&self.roles),
            "sessions": texts(&self.sessions),
            "tools": texts(&self.tools),
            "constraints": written,
            "only": self.only,
            "max_class": self.max_class.map(DataClass::as_str),
            "above_max": self.above_max.as_str(),
            "untrusted": self.untrusted.map(Word::as_str),
            "expires": self.expires.map(Timestamp::millis),
            "max_uses": self.max_uses,
            "approvers": terms.approvers.iter().map(RoleName::as_str).collect::<Vec<_>>(),
            "quorum": terms.quorum,
            "approval_ttl": terms.approval_ttl,
            "standing_ttl": terms.standing_ttl,
            "standing_uses": terms.standing_uses,
            "why": self.why,
        });
        Sha256::digest(canonical::text(&all).as_bytes()).into()
    }
}

fn any(globs: &[NameGlob], name: &str) -> bool {
    globs.iter().any(|glob| glob.matches(name))
}

fn texts(globs: &[NameGlob]) -> Vec<&str> {
    globs.iter().map(NameGlob::as_str).collect()
}
