//! `replay`: the recorded decisions judged again, under the rules of their time and under another configuration.

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use client::proto::{GrantId, RoleName, Timestamp, ToolName};
use policy::{Config, Decision, Ruleset};
use store::record::CallKey;

use crate::cli::{Place, ReplayArgs};
use crate::exit::{self, Exit, Unread};
use crate::past::{self, Gone, Past, Rules};
use crate::progress::Progress;
use crate::{audit, check, out, render};

/// What came of it.
#[derive(Debug, Default)]
pub struct Report {
    /// Decisions that were judged again.
    pub judged: u64,
    /// Those of them that the other configuration changes, alike ones together.
    pub changes: BTreeMap<Change, Alike>,
    /// Those of them that are not what the rules of their time say: a fault, or somebody wrote the record anew.
    pub faults: BTreeMap<Change, Alike>,
    /// Those that could not be judged, by why.
    pub gone: BTreeMap<Gone, u64>,
    /// Those that the other configuration has no answer for, because a grant of run time does not fit it, by which.
    pub misfits: BTreeMap<String, u64>,
}

/// What alike changes have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// What was decided.
    pub from: Answer,
    /// What is decided now.
    pub to: Answer,
    /// The agent role.
    pub role: RoleName,
    /// The tool.
    pub tool: ToolName,
}

/// A decision, as far as it is told.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Answer {
    /// `permit`, `ask`, `deny`.
    pub answer: &'static str,
    /// A denial's reason; else empty.
    pub reason: &'static str,
    /// The grants that decided: one that permits, those that ask, one that denies or none.
    pub grants: Vec<GrantId>,
}

/// How many there are, and the newest of them.
#[derive(Debug, Clone)]
pub struct Alike {
    /// How many.
    pub count: u64,
    /// When it was.
    pub at: Timestamp,
    /// Which call.
    pub call: CallKey,
    /// Its arguments.
    pub arguments: String,
}

/// Judges again, and prints what there is to say.
///
/// # Errors
/// [`Unread`]: the configuration or the record cannot be read. A configuration's faults are printed, and are no error
/// here.
pub fn run(place: &Place, args: &ReplayArgs) -> anyhow::Result<Exit> {
    let other = match args.config.as_deref().map(read).transpose()? {
        None => None,
        Some((_, Ok(config))) => Some(Other::new(config)),
        Some((name, Err(faults))) => {
            if place.json {
                out::json(&render::check::faults_json(&name, &faults).to_string());
            } else {
                out::text(&render::check::faults(&faults));
            }
            return Ok(exit::CONFIGURATION);
        }
    };
    let report = judge(place, args, other)?;
    if place.json {
        out::json(&render::replay::json(&report).to_string());
    } else {
        out::text(&render::replay::all(&report));
    }
    Ok(report.exit())
}

pub(crate) type Parsed = Result<Config, Vec<policy::Fault>>;

/// A configuration's name, and what it says or its faults.
///
/// # Errors
/// [`Unread`].
pub(crate) fn read(file: &Path) -> anyhow::Result<(String, Parsed)> {
    let (name, text) = check::read(Some(file)).map_err(|error| Unread(error.to_string()))?;
    let config = Config::parse(&name, &text).map_err(|error| error.faults);
    Ok((name, config))
}

fn judge(place: &Place, args: &ReplayArgs, mut other: Option<Other>) -> anyhow::Result<Report> {
    let mut store = audit::open(&args.store).map_err(|error| Unread(error.to_string()))?;
    let mut progress = Progress::start(place);
    let mut report = Report::default();
    past::each(&mut store, &args.past, &mut progress, |past| {
        report.take(&past, other.as_mut());
    })?;
    Ok(report)
}

/// The other configuration, and what was made of it for the grants of run time that were in force last.
#[derive(Debug)]
pub struct Other {
    config: Rc<Config>,
    last: Option<(Rc<Rules>, Result<Rules, String>)>,
}

impl Other {
    /// Of a configuration.
    pub fn new(config: Config) -> Self {
        Self {
            config: Rc::new(config),
            last: None,
        }
    }

    /// It, with the grants of run time that were in force with these rules.
    fn at(&mut self, then: &Rc<Rules>) -> &Result<Rules, String> {
        let last = self.last.take().filter(|(held, _)| Rc::ptr_eq(held, then));
        let made = last.unwrap_or_else(|| {
            let rules = Rules::with(Rc::clone(&self.config), Rc::clone(&then.granted));
            (Rc::clone(then), rules)
        });
        &self.last.insert(made).1
    }
}

impl Report {
    /// Judges a decision under the rules of its time, and under the other configuration if there is one.
    pub fn take(&mut self, past: &Past, other: Option<&mut Other>) {
        if let Err(gone) = self.try_take(past, other) {
            *self.gone.entry(gone).or_default() += 1;
        }
    }

    /// Judges a decision under two rulesets, and notes it where the answers differ: a denial for another reason is no
    /// change.
    pub fn compare(&mut self, past: &Past, from: &Ruleset, to: &Ruleset) {
        let both = past
            .decide(from)
            .and_then(|from| Ok((from, past.decide(to)?)));
        match both {
            Err(gone) => *self.gone.entry(gone).or_default() += 1,
            Ok((from, to)) => {
                let (from, to) = (Answer::of(&from), Answer::of(&to));
                if from.answer != to.answer {
                    note(&mut self.changes, past, from, to);
                }
                self.judged += 1;
            }
        }
    }

    fn try_take(&mut self, past: &Past, other: Option<&mut Other>) -> Result<(), Gone> {
        let rules = past.rules()?;
        let then = past.decide(&rules.ruleset)?;
        if !past.agrees(&then) {
            note(&mut self.faults, past, recorded(past), Answer::of(&then));
        }
        if let Some(other) = other {
            let now = match other.at(rules) {
                Ok(rules) => past.decide(&rules.ruleset)?,
                Err(why) => {
                    *self.misfits.entry(why.clone()).or_default() += 1;
                    return Ok(());
                }
            };
            let (from, to) = (Answer::of(&then), Answer::of(&now));
            if (from.answer, from.reason) != (to.answer, to.reason) {
                note(&mut self.changes, past, from, to);
            }
        }
        self.judged += 1;
        Ok(())
    }

    /// How many would change.
    pub fn changed(&self) -> u64 {
        self.changes.values().map(|alike| alike.count).sum()
    }

    /// Alike ones, most frequent first.
    pub fn sorted(alike: &BTreeMap<Change, Alike>) -> Vec<(&Change, &Alike)> {
        let mut sorted: Vec<_> = alike.iter().collect();
        sorted.sort_by_key(|(_, alike)| std::cmp::Reverse(alike.count));
        sorted
    }

    /// How the command ends with it.
    pub fn exit(&self) -> Exit {
        if !self.faults.is_empty() {
            Exit(exit::INTERNAL)
        } else if !self.misfits.is_empty() {
            exit::CONFIGURATION
        } else if !self.changes.is_empty() {
            exit::NOT_DONE
        } else {
            exit::DONE
        }
    }
}

fn note(alike: &mut BTreeMap<Change, Alike>, past: &Past, from: Answer, to: Answer) {
    let change = Change {
        from,
        to,
        role: past.call.session.role.clone(),
        tool: past.tool.clone(),
    };
    let count = alike.get(&change).map_or(0, |held| held.count) + 1;
    let newest = Alike {
        count,
        at: past.at,
        call: past.call.clone(),
        arguments: past.arguments.clone().unwrap_or_default(),
    };
    alike.insert(change, newest);
}

impl Answer {
    fn of(decision: &Decision) -> Answer {
        let (answer, reason, grants) = match decision {
            Decision::Permit(permit) => ("permit", "", vec![permit.grant.clone()]),
            Decision::Ask(ask) => {
                let grants = ask.grants.iter().map(|grant| grant.id.clone());
                ("ask", "", grants.collect())
            }
            Decision::Deny(deny) => {
                let grants = deny.grant.iter().cloned().collect();
                ("deny", deny.reason.as_str(), grants)
            }
        };
        Answer {
            answer,
            reason,
            grants,
        }
    }
}

/// What the record says that the rules said.
fn recorded(past: &Past) -> Answer {
    let (answer, reason, grant) = match past.said() {
        past::Said::Permit { grant } => ("permit", "", Some(grant)),
        past::Said::Ask => ("ask", "", None),
        past::Said::Deny { reason, grant } => ("deny", reason.as_str(), grant),
    };
    Answer {
        answer,
        reason,
        grants: grant.into_iter().collect(),
    }
}
