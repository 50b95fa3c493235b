//! Questions to a ruleset, in few words.

use std::collections::BTreeMap;

use policy::decision::{Decision, Query};
use policy::{Config, Ruleset};
use proto::{Access, DataClass, GrantId, Label, RoleName, SessionId, Timestamp};

pub(crate) const TRUSTED: Label = Label::BOTTOM;
pub(crate) const UNTRUSTED: Label = Label {
    class: DataClass::Public,
    untrusted: true,
};

pub(crate) fn seen(class: DataClass) -> Label {
    Label {
        class,
        untrusted: false,
    }
}

/// A configuration that must load.
pub(crate) fn load(text: &str) -> Config {
    match Config::parse("test.toml", text) {
        Ok(config) => config,
        Err(faults) => panic!("{faults}\n{text}"),
    }
}

/// The faults of a configuration that must not load, a line each.
pub(crate) fn faults(text: &str) -> String {
    match Config::parse("test.toml", text) {
        Ok(_) => panic!("it loads:\n{text}"),
        Err(faults) => faults.to_string(),
    }
}

/// A question, asked by `bot` in `mm-1`, that a test may change.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) role: RoleName,
    pub(crate) session: SessionId,
    pub(crate) label: Label,
    pub(crate) now: Timestamp,
    pub(crate) uses: BTreeMap<GrantId, u64>,
}

impl Default for Asked {
    fn default() -> Self {
        Asked {
            role: RoleName::new("bot").unwrap(),
            session: SessionId::new("mm-1").unwrap(),
            label: TRUSTED,
            now: Timestamp::default(),
            uses: BTreeMap::new(),
        }
    }
}

impl Asked {
    pub(crate) fn label(label: Label) -> Self {
        Asked {
            label,
            ..Asked::default()
        }
    }

    pub(crate) fn query<T>(
        &self,
        ruleset: &Ruleset,
        tool: &str,
        arguments: &str,
        ask: impl FnOnce(&Query<'_>) -> T,
    ) -> T {
        let tool = ruleset
            .tool(tool)
            .expect("the tool is there")
            .effective(None);
        ask(&Query {
            role: &self.role,
            session: &self.session,
            tool: &tool,
            arguments,
            label: self.label,
            now: self.now,
            uses: &self.uses,
        })
    }

    pub(crate) fn decide(&self, ruleset: &Ruleset, tool: &str, arguments: &str) -> Decision {
        self.query(ruleset, tool, arguments, |query| {
            let decision = ruleset.decide(query);
            let (explained, trace) = ruleset.explain(query);
            assert_eq!(decision, explained, "decide and explain differ");
            assert_eq!(
                trace.len(),
                ruleset.grants().len(),
                "a line for each grant: {trace:?}"
            );
            decision
        })
    }

    pub(crate) fn access(&self, ruleset: &Ruleset, tool: &str) -> Option<Access> {
        self.query(ruleset, tool, "", |query| ruleset.access(query))
    }

    pub(crate) fn trace(&self, ruleset: &Ruleset, tool: &str, arguments: &str) -> Vec<String> {
        let lines = self.query(ruleset, tool, arguments, |query| ruleset.explain(query).1);
        lines
            .iter()
            .map(|line| format!("{}: {}", line.grant, line.what))
            .collect()
    }

    /// The decision in a word: `permit docs`, `ask a b`, `no_grant`, `denied_by_grant no-keys`.
    pub(crate) fn told(&self, ruleset: &Ruleset, tool: &str, arguments: &str) -> String {
        tell(&self.decide(ruleset, tool, arguments))
    }
}

pub(crate) fn tell(decision: &Decision) -> String {
    match decision {
        Decision::Permit(permit) => format!("permit {}", permit.grant),
        Decision::Ask(ask) => {
            let grants: Vec<_> = ask.grants.iter().map(|grant| grant.id.as_str()).collect();
            format!("ask {}", grants.join(" "))
        }
        Decision::Deny(deny) => match &deny.grant {
            Some(grant) => format!("{} {grant}", deny.reason.as_str()),
            None => deny.reason.as_str().to_owned(),
        },
    }
}
