//! Grants for many past calls, as lines to append to a configuration, and for a program.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use client::proto::Access;
use policy::{Left, SeenGrant};
use serde_json::{Value, json};

use super::replay::{group, groups, not_judged};
use crate::past::Gone;
use crate::printable;
use crate::replay::Report;
use crate::seen::Suggested;

/// Kinds of calls that are told one by one.
const MAX_KINDS: usize = 40;

/// For a person: TOML that may be appended to a file as it is, also to one without a line end at its end; all else is
/// comments.
pub fn all(suggested: &Suggested) -> String {
    let mut said = String::new();
    counts(&mut said, suggested);
    let mut checked = String::new();
    replayed(&mut checked, suggested);
    let grants: Vec<String> = suggested.seen.grants.iter().map(grant).collect();
    let parts = [vec![comments(&said)], grants, vec![comments(&checked)]].concat();
    format!("\n{}", parts.join("\n"))
}

fn grant(grant: &SeenGrant) -> String {
    let what = match grant.answer {
        Access::Allow => "",
        Access::Ask => ", about which a person is then asked",
    };
    let calls = grant.calls;
    format!("# {calls} calls{what}\n[[grant]]\n{}", grant.toml)
}

/// What was read, and what is left out.
fn counts(out: &mut String, suggested: &Suggested) {
    let Suggested {
        role,
        under,
        decisions,
        seen,
        ..
    } = suggested;
    // Writing into a String does not fail.
    let under = printable::text(under);
    let _ = writeln!(out, "rolebroker suggest {role} --past, under {under}");
    let _ = writeln!(out, "{decisions} recorded decisions about its calls:");
    let (covered, grants) = (seen.covered.len(), seen.grants.len());
    let _ = writeln!(
        out,
        "  {covered}: let through by the grants below ({grants})"
    );
    for (left, count) in seen.left.iter().take(MAX_KINDS) {
        let Left {
            why, tool, words, ..
        } = left;
        let detail = match words.as_str() {
            "" => String::new(),
            words => format!(" ({})", printable::text(words)),
        };
        let _ = writeln!(out, "  {count}: {tool}: {}{detail}", why.words());
    }
    if seen.left.len() > MAX_KINDS {
        let rest: u64 = seen.left.values().skip(MAX_KINDS).sum();
        let _ = writeln!(out, "  {rest}: of other kinds");
    }
    gone(out, &suggested.gone);
}

/// What the grants change for all others.
fn replayed(out: &mut String, suggested: &Suggested) {
    let others = &suggested.others;
    let (judged, changed) = (others.judged, others.changed());
    let _ = writeln!(
        out,
        "checked: all other recorded decisions ({judged}) were judged again with these grants; of them {changed} would \
         change"
    );
    gone(out, &others.gone);
    for (change, alike) in Report::sorted(&others.changes).into_iter().take(MAX_KINDS) {
        group(out, change, alike, "would be");
    }
}

fn gone(out: &mut String, gone: &BTreeMap<Gone, u64>) {
    for (why, count) in gone {
        let _ = writeln!(out, "  {count}: not judged: {}", why.words());
    }
}

fn comments(lines: &str) -> String {
    let comment = |line: &str| match line {
        "" => "#\n".to_owned(),
        line => format!("# {line}\n"),
    };
    lines.lines().map(comment).collect()
}

/// The same for a program, as one object.
pub fn json(suggested: &Suggested) -> Value {
    let Suggested {
        role,
        decisions,
        gone,
        seen,
        others,
        ..
    } = suggested;
    let grant = |grant: &SeenGrant| {
        json!({
            "id": grant.id,
            "role": grant.role,
            "tool": grant.tool,
            "calls": grant.calls,
            "answer": match grant.answer {
                Access::Allow => "permit",
                Access::Ask => "ask",
            },
            "toml": grant.toml,
        })
    };
    let left = |(left, count): (&Left, &u64)| {
        json!({
            "why": left.why.as_str(),
            "count": count,
            "tool": left.tool,
            "words": left.why.words(),
            "detail": left.words,
        })
    };
    json!({
        "status": if seen.grants.is_empty() { "nothing" } else { "suggested" },
        "role": role,
        "decisions": decisions,
        "covered": seen.covered.len(),
        "grants": seen.grants.iter().map(grant).collect::<Vec<_>>(),
        "toml": seen.toml(),
        "left": seen.left.iter().map(left).collect::<Vec<_>>(),
        "not_judged": gone.iter().map(not_judged).collect::<Vec<_>>(),
        "others": {
            "judged": others.judged,
            "changed": others.changed(),
            "changes": groups(Report::sorted(&others.changes)),
            "not_judged": others.gone.iter().map(not_judged).collect::<Vec<_>>(),
        },
    })
}
