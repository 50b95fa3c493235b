//! `suggest --past`: a few grants for exactly the recorded calls that are meant, and what else they would change.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;

use client::Label;
use client::proto::{GrantId, RoleName, Timestamp};
use policy::{Config, EffectiveTool, Fault, How, Left, Query, Ruleset, Seen, Why, suggest_seen};
use store::record::CallKey;

use crate::cli::{PastArgs, Place, SeenArgs, StoreArgs};
use crate::exit::{self, Exit, Faulty, Unread};
use crate::past::{self, Decisions, Gone, Past, Rules};
use crate::progress::Progress;
use crate::replay::{self, Report};
use crate::{audit, out, render};

/// What came of it.
#[derive(Debug)]
pub struct Suggested {
    /// For which agent role.
    pub role: RoleName,
    /// Under which rules, in words.
    pub under: String,
    /// Recorded decisions about its calls that are meant.
    pub decisions: usize,
    /// Those of them that could not be judged, by why.
    pub gone: BTreeMap<Gone, u64>,
    /// The grants, and why there are none for the others.
    pub seen: Seen,
    /// What the grants change for all recorded decisions that they are not for.
    pub others: Report,
    before: Ruleset,
    after: Ruleset,
    covered: BTreeSet<(CallKey, Timestamp)>,
}

/// Reads the record, and prints the grants.
///
/// # Errors
/// [`Unread`]: the configuration or the record cannot be read. [`Faulty`]: the configuration would not be taken, or
/// nothing can be appended to it. Else a fault of this command.
pub fn run(
    place: &Place,
    role: &RoleName,
    args: &SeenArgs,
    store: &StoreArgs,
) -> anyhow::Result<Exit> {
    let config = args.config.as_deref().map(config).transpose()?;
    let mut store = audit::open(store).map_err(|error| Unread(error.to_string()))?;
    let mut progress = Progress::start(place);
    let mut meant = Vec::new();
    let decisions = past::each(&mut store, &args.past(role), &mut progress, |past| {
        if args.sessions.is_empty() || args.sessions.contains(&past.call.session.session) {
            meant.push(past);
        }
    })?;
    let rules = rules(config, decisions)?;
    let how = How {
        named: args.sessions.iter().cloned().collect(),
        any_session: args.any_session,
    };
    let mut suggested = Suggested::new(role, &rules, &meant, &how)?;
    if let Some(file) = &args.config {
        suggested.under = file.display().to_string();
    }
    let all = PastArgs::default();
    past::each(&mut store, &all, &mut progress, |past| {
        suggested.follow(&past);
    })?;
    drop(progress);
    if place.json {
        out::json(&render::seen::json(&suggested).to_string());
    } else {
        out::text(&render::seen::all(&suggested));
    }
    Ok(exit::DONE)
}

fn config(file: &Path) -> anyhow::Result<Config> {
    let (_, config) = replay::read(file)?;
    let lines = |faults: Vec<Fault>| {
        let lines: Vec<_> = faults.iter().map(Fault::to_string).collect();
        lines.join("\n")
    };
    Ok(config.map_err(|faults| Faulty(lines(faults)))?)
}

/// The rules to write grants for: those at the record's end, or a configuration with the grants of run time of then.
fn rules(config: Option<Config>, mut end: Decisions) -> anyhow::Result<Rc<Rules>> {
    let Some(config) = config else {
        let why = "the rules at the record's end are not recorded, or this version does not read them; name a \
                   configuration with --config";
        return Ok(end.rules().ok_or_else(|| Unread(why.to_owned()))?);
    };
    let rules = Rules::with(Rc::new(config), end.granted()).map_err(Faulty)?;
    Ok(Rc::new(rules))
}

/// A decision as it is asked about again.
struct Asked<'a> {
    past: &'a Past,
    arguments: &'a str,
    label: Label,
    tool: EffectiveTool,
    uses: BTreeMap<GrantId, u64>,
}

impl Asked<'_> {
    /// `Ok(None)`: there is no such tool.
    fn of<'a>(past: &'a Past, ruleset: &Ruleset) -> Result<Option<Asked<'a>>, Gone> {
        let arguments = past.arguments.as_deref().ok_or(Gone::Arguments);
        past.with_call(ruleset, |call| {
            let tool = call.tool.cloned();
            tool.map(|tool| (tool, call.label, call.uses.clone()))
        })
        .and_then(|asked| {
            let arguments = arguments?;
            Ok(asked.map(|(tool, label, uses)| Asked {
                past,
                arguments,
                label,
                tool,
                uses,
            }))
        })
    }

    fn query(&self) -> Query<'_> {
        Query {
            role: &self.past.call.session.role,
            session: &self.past.call.session.session,
            tool: &self.tool,
            arguments: self.arguments,
            label: self.label,
            now: self.past.at,
            uses: &self.uses,
        }
    }
}

impl Suggested {
    /// Grants for these decisions of a role, on top of these rules. Each is judged with the label, the time and the uses
    /// of then.
    ///
    /// # Errors
    /// [`Faulty`]: the lines cannot be appended to the configuration. Else, in words, a fault of this command.
    pub fn new(role: &RoleName, rules: &Rules, meant: &[Past], how: &How) -> anyhow::Result<Self> {
        let mut gone: BTreeMap<Gone, u64> = BTreeMap::new();
        let mut unknown: BTreeMap<Left, u64> = BTreeMap::new();
        let mut asked = Vec::new();
        for past in meant {
            match Asked::of(past, &rules.ruleset) {
                Ok(Some(one)) => asked.push(one),
                Ok(None) => *unknown.entry(no_tool(past)).or_default() += 1,
                Err(why) => *gone.entry(why).or_default() += 1,
            }
        }
        let queries: Vec<Query<'_>> = asked.iter().map(Asked::query).collect();
        let mut seen =
            suggest_seen(&rules.ruleset, &queries, how).map_err(|why| anyhow::anyhow!(why))?;
        seen.left.extend(unknown);
        let covered = seen.covered.iter().filter_map(|place| asked.get(*place));
        Ok(Self {
            role: role.clone(),
            under: "the rules at the record's end".to_owned(),
            decisions: meant.len(),
            gone,
            others: Report::default(),
            before: rules.ruleset.clone(),
            after: appended(rules, &seen)?.ruleset,
            covered: covered
                .map(|asked| (asked.past.call.clone(), asked.past.at))
                .collect(),
            seen,
        })
    }

    /// Judges a decision before and after, if the grants are not for it.
    pub fn follow(&mut self, past: &Past) {
        let key = (past.call.clone(), past.at);
        if !self.covered.contains(&key) {
            self.others.compare(past, &self.before, &self.after);
        }
    }
}

/// The rules with the grants appended to the configuration's text.
fn appended(rules: &Rules, seen: &Seen) -> anyhow::Result<Rules> {
    let text = format!("{}\n{}", rules.config.text, seen.toml());
    let config = Config::parse("with the grants appended", &text)
        .map_err(|faults| Faulty(faults.to_string()))?;
    let granted = Rc::clone(&rules.granted);
    Ok(Rules::with(Rc::new(config), granted).map_err(Faulty)?)
}

fn no_tool(past: &Past) -> Left {
    Left {
        why: Why::Impossible,
        role: past.call.session.role.clone(),
        tool: past.tool.clone(),
        words: "the tool is not declared, and nobody may offer it".to_owned(),
    }
}
