//! What became of each grant, and the answer, in plain words: made only when somebody asks why.

use proto::{DenyReason, RoleName};
use serde_json::Value;

use crate::decide::Heard;
use crate::decision::{Ask, AskingGrant, Decision, Deny, Query, Standing, TraceLine};
use crate::grant::{Grant, Miss, Word};
use crate::matcher::{Constraints, Fit};
use crate::words;

/// The line of a grant that is for other calls.
pub(crate) fn elsewhere(grant: &Grant, miss: Option<Miss>) -> TraceLine {
    let what = match miss {
        Some(Miss::Role) => "falls: its `roles` do not name this role",
        Some(Miss::Session) => "falls: its `sessions` do not name this session",
        Some(Miss::Tool) | None => "falls: its `tools` do not name this tool",
    };
    line(grant, Standing::Elsewhere, what)
}

/// The line of a candidate where the arguments had to be read, and could not be.
pub(crate) fn unread(grant: &Grant) -> TraceLine {
    let what = "the arguments are no JSON object without duplicate keys, so no `where` can be held against them";
    match grant.effect {
        Word::Deny => line(grant, Standing::Counts, &format!("denies: {what}")),
        Word::Allow | Word::Ask => line(grant, Standing::Falls, &format!("falls: {what}")),
    }
}

/// The line of a candidate that was heard.
pub(crate) fn heard(heard: &Heard<'_>, query: &Query<'_>, arguments: Option<&Value>) -> TraceLine {
    let (grant, reading) = (heard.grant, heard.reading);
    let falls = |what: &str| line(grant, Standing::Falls, &format!("falls: {what}"));
    if reading.excused {
        let pointers = pointers(grant.unless.as_ref());
        return falls(&format!(
            "its `unless` lets these arguments off ({pointers})"
        ));
    }
    let misfit = misfit(grant, arguments);
    if reading.fit == Fit::Differs {
        return falls(&format!("its `where` {misfit}"));
    }
    let unclear = reading.fit == Fit::Unclear;
    if grant.effect == Word::Allow {
        return match (unclear, reading.covered, heard.spent, heard.expired) {
            (true, ..) => falls(&format!("its `where` {misfit}")),
            (_, false, ..) => falls(&format!(
                "the arguments hold more than its `where` names ({}), and `only` is not false",
                pointers(grant.constraints.as_ref())
            )),
            (_, _, true, _) => falls(&format!(
                "all its uses ({}) are spent",
                grant.max_uses.unwrap_or_default()
            )),
            (_, _, _, Some(at)) => falls(&format!("it expired at {}", words::date(at))),
            (_, _, _, None) => permits(heard, query),
        };
    }
    let mut what = said(heard, query);
    if unclear {
        what += &format!("; it applies because its `where` {misfit}");
    } else if grant.effect == Word::Ask && !reading.covered {
        what += &format!(
            "; it permits nothing itself, because the arguments hold more than its `where` names ({})",
            pointers(grant.constraints.as_ref())
        );
    }
    line(grant, Standing::Counts, &what)
}

/// An allow whose `where` matches, and that has uses and time left.
fn permits(heard: &Heard<'_>, query: &Query<'_>) -> TraceLine {
    match heard.word {
        Word::Allow => line(heard.grant, Standing::Counts, "permits: it says allow"),
        Word::Ask => {
            let what = format!("permits once a person approves: {}", said(heard, query));
            line(heard.grant, Standing::Counts, &what)
        }
        Word::Deny => {
            let what = format!("permits nothing at this label: {}", said(heard, query));
            line(heard.grant, Standing::Falls, &what)
        }
    }
}

/// What a grant says, and what made it say less than its effect.
fn said(heard: &Heard<'_>, query: &Query<'_>) -> String {
    let (grant, word) = (heard.grant, heard.word);
    let says = match word {
        Word::Allow => "it says allow",
        Word::Ask => "it says ask",
        Word::Deny => "it says deny",
    };
    if word == grant.effect {
        return says.to_owned();
    }
    let mut why = Vec::new();
    let highest = grant.highest_class(query.tool);
    let class = query.label.class;
    if class > highest {
        let limit = if grant.max_class == Some(highest) {
            "its `max_class`"
        } else {
            "the tool's clearance"
        };
        why.push(format!(
            "the label is {class}, over {limit} {highest}, and above that it says {}",
            grant.above_max
        ));
    }
    let turned = grant.word_untrusted(query.tool);
    if query.label.untrusted && turned < grant.effect {
        let source = if grant.untrusted.is_some() {
            "its `untrusted` says"
        } else {
            "for a tool that can change something or carry data out it says by itself"
        };
        why.push(format!("the label is untrusted, and {source} {turned}"));
    }
    if word == Word::Deny && grant.terms.approvers.is_empty() {
        why.push("nobody is named to be asked".to_owned());
    }
    format!("{says}, because {}", why.join("; and "))
}

fn misfit(grant: &Grant, arguments: Option<&Value>) -> String {
    let found = grant.constraints.as_ref().zip(arguments);
    let told = found.and_then(|(constraints, arguments)| {
        let (constraint, fit) = constraints.misfit(arguments)?;
        Some(words::misfit(constraint, fit, arguments))
    });
    told.unwrap_or_else(|| "does not match".to_owned())
}

fn pointers(constraints: Option<&Constraints>) -> String {
    let all = constraints.iter().flat_map(|all| all.pointers());
    all.map(words::place).collect::<Vec<_>>().join(", ")
}

fn line(grant: &Grant, standing: Standing, what: &str) -> TraceLine {
    TraceLine {
        grant: grant.id.clone(),
        standing,
        what: what.to_owned(),
    }
}

impl Decision {
    /// The answer and its reason in a sentence; no value of the arguments.
    pub fn in_words(&self) -> String {
        match self {
            Decision::Permit(permit) if permit.spend.is_empty() => {
                format!("permitted by grant `{}`", permit.grant)
            }
            Decision::Permit(permit) => {
                format!(
                    "permitted by grant `{}`, of which it spends a use",
                    permit.grant
                )
            }
            Decision::Ask(ask) => asked(ask),
            Decision::Deny(deny) => denied(deny),
        }
    }
}

fn asked(ask: &Ask) -> String {
    let one = |grant: &AskingGrant| {
        let names: Vec<_> = grant.approvers.iter().map(RoleName::as_str).collect();
        let people = match grant.quorum {
            1 => "one".to_owned(),
            many => format!("{many} people"),
        };
        format!(
            "grant `{}` wants {people} of {}",
            grant.id,
            names.join(", ")
        )
    };
    let grants: Vec<_> = ask.grants.iter().map(one).collect();
    format!("a person is asked: {}", grants.join("; "))
}

fn denied(deny: &Deny) -> String {
    let why = match (deny.reason, &deny.grant) {
        (DenyReason::DeniedByGrant, Some(grant)) => {
            format!("grant `{grant}` denies it, and nothing overrides a deny")
        }
        (DenyReason::GrantExpired, Some(grant)) => {
            format!("grant `{grant}` would permit it, and has expired")
        }
        (DenyReason::TaintTooHigh, Some(grant)) => {
            format!("the session has seen too much for it: at this label grant `{grant}` says deny")
        }
        (DenyReason::NoGrant, _) => {
            "no grant permits this call, or the uses of those that do are spent".to_owned()
        }
        (reason, _) => reason.as_str().to_owned(),
    };
    format!("denied ({}): {why}", deny.reason.as_str())
}
