//! The rules that count at a record: the last configuration, and the grants of run time on top of it.

use std::collections::BTreeMap;
use std::rc::Rc;

use client::proto::{Digest, GrantId};
use policy::{Config, Ruleset};
use store::record::Record;

/// The rules of one time; decisions share them.
#[derive(Debug)]
pub struct Rules {
    /// The configuration.
    pub config: Rc<Config>,
    /// Grants of run time, in their order: the id, and what it says.
    pub granted: Rc<[(GrantId, String)]>,
    /// Both together.
    pub ruleset: Ruleset,
}

impl Rules {
    /// A configuration with grants of run time on top, as the daemon takes it.
    ///
    /// # Errors
    /// In words, which grant does not fit it.
    pub fn with(config: Rc<Config>, granted: Rc<[(GrantId, String)]>) -> Result<Self, String> {
        let mut ruleset = config.ruleset.clone();
        for (grant, toml) in granted.iter() {
            (ruleset, _) = ruleset.with_grant(toml).map_err(|why| {
                format!("grant {grant}, added at run time, does not fit it: {why}")
            })?;
        }
        Ok(Self {
            config,
            granted,
            ruleset,
        })
    }
}

/// The rules up to a record. A text is parsed only where somebody asks for the rules, and once.
#[derive(Debug, Default)]
pub(super) struct RulesSoFar {
    text: Option<(Digest, String)>,
    pub(super) granted: Vec<(GrantId, String)>,
    /// Uses spent so far, by grant.
    pub(super) uses: BTreeMap<GrantId, u64>,
    /// The text under this digest as it was understood, if it was.
    parsed: Option<(Digest, Option<Rc<Config>>)>,
    /// Until something changes.
    now: Option<Option<Rc<Rules>>>,
}

impl RulesSoFar {
    /// Takes what a record changes of them.
    pub(super) fn follow(&mut self, record: &Record) {
        match record {
            Record::Configured { ruleset, text, .. } => {
                let held = self.text.as_ref().map(|(digest, _)| digest);
                if text.is_some() && held == Some(ruleset) {
                    // A restart: what was made of it is good.
                    return;
                }
                self.text = text.clone().map(|text| (ruleset.clone(), text));
            }
            Record::Snapshot {
                ruleset,
                text,
                grants,
                uses,
                ..
            } => {
                self.text = text.clone().map(|text| (ruleset.clone(), text));
                self.granted.clone_from(grants);
                self.uses = uses.iter().cloned().collect();
            }
            Record::Granted { grant, toml, .. } => {
                self.granted.push((grant.clone(), toml.clone()));
            }
            Record::Revoked { grant, .. } => {
                self.granted.retain(|(held, _)| held != grant);
                self.uses.remove(grant);
            }
            Record::Dispatched { spend, .. } => {
                for grant in spend {
                    *self.uses.entry(grant.clone()).or_default() += 1;
                }
                return;
            }
            Record::Opened { .. }
            | Record::Raised { .. }
            | Record::Denied { .. }
            | Record::Asked { .. }
            | Record::Voted { .. }
            | Record::Settled { .. }
            | Record::Standing { .. }
            | Record::Answered { .. }
            | Record::Late { .. }
            | Record::Evicted { .. }
            | Record::Joined { .. }
            | Record::Closed { .. }
            | Record::Lowered { .. }
            | Record::Pinned { .. }
            | Record::Refused { .. }
            | Record::Restored { .. }
            | Record::Draining { .. } => return,
        }
        self.now = None;
    }

    /// The rules as they are now. `None`: they are not recorded, or this version does not read them.
    pub(super) fn now(&mut self) -> Option<Rc<Rules>> {
        if self.now.is_none() {
            let rules = self
                .config()
                .and_then(|config| Rules::with(config, self.granted.as_slice().into()).ok());
            self.now = Some(rules.map(Rc::new));
        }
        self.now.clone().flatten()
    }

    fn config(&mut self) -> Option<Rc<Config>> {
        let (digest, text) = self.text.as_ref()?;
        if self.parsed.as_ref().is_none_or(|(held, _)| held != digest) {
            let config = Config::parse("the recorded configuration", text).ok();
            self.parsed = Some((digest.clone(), config.map(Rc::new)));
        }
        self.parsed.as_ref()?.1.clone()
    }
}
