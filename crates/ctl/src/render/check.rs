//! What `check` found, for a person and for a program.

use std::fmt::Write as _;

use client::proto::{DataClass, Label};
use policy::{Fault, Meeting, Path, PathTool, Step};
use serde_json::{Value, json};

use crate::check::Checked;
use crate::printable;

/// Grants that are named to mend one path; a program gets them all.
const MAX_SHOWN: usize = 5;

/// Every fault, as `file:line: what`.
pub fn faults(faults: &[Fault]) -> String {
    let line = |fault: &Fault| format!("{}\n", printable::text(&fault.to_string()));
    faults.iter().map(line).collect()
}

/// Every fault, for a program.
pub fn faults_json(name: &str, faults: &[Fault]) -> Value {
    let fault = |fault: &Fault| json!({ "line": fault.line, "what": fault.what });
    let faults: Vec<_> = faults.iter().map(fault).collect();
    json!({ "status": "faults", "file": name, "faults": faults })
}

/// What there is to say of a configuration that loads.
pub fn all(checked: &Checked, above: DataClass) -> String {
    let config = &checked.config;
    let mut out = format!(
        "{}: no faults; {} roles, {} tools, {} grants\n",
        printable::text(&checked.name),
        config.roles.len(),
        config.ruleset.declared().count(),
        config.ruleset.grants().len()
    );
    if !checked.warnings.is_empty() {
        out.push_str("\nwarnings\n");
        for warning in &checked.warnings {
            // Writing into a String does not fail.
            let _ = writeln!(out, "  {}", printable::text(warning));
        }
    }
    if checked.paths.found.is_empty() {
        return out;
    }
    let _ = writeln!(
        out,
        "\npaths: {above} data{} can leave with no person in between, once a stranger's text was taken in",
        if above == DataClass::Secret {
            ""
        } else {
            " (or higher)"
        }
    );
    for found in &checked.paths.found {
        path(found, &mut out);
    }
    if checked.paths.more > 0 {
        let _ = writeln!(out, "\n  and {} more", checked.paths.more);
    }
    out
}

fn path(path: &Path, out: &mut String) {
    let how = match path.meeting {
        Meeting::OneSession => "in one session",
        Meeting::OneLabel => "in sessions that have one label (label_scope = \"role\")",
        Meeting::Joined => "in sessions of which `join_session` carries the labels together",
        Meeting::Together => "in one session, the first two at the same time",
    };
    let _ = writeln!(out, "\n  {} {how}", path.role);
    let tools: Vec<String> = path.steps.iter().map(|step| tool(&step.tool)).collect();
    let width = tools
        .iter()
        .map(|tool| tool.chars().count())
        .max()
        .unwrap_or(0);
    for (place, (step, tool)) in path.steps.iter().zip(&tools).enumerate() {
        let last = place + 1 == path.steps.len();
        let brings = if last {
            "carries it out".to_owned()
        } else {
            format!("brings in {}; seen then: {}", step.brings, step.label)
        };
        let _ = writeln!(
            out,
            "    {}. {tool:width$}  {brings}\n       {:width$}  by grant {}, sessions {}{}",
            place + 1,
            "",
            step.grant,
            printable::text(&step.sessions),
            avoiding(step)
        );
    }
    let _ = writeln!(
        out,
        "    An ask on any of these ends it. The cheapest: {}",
        remedy(path)
    );
}

fn tool(tool: &PathTool) -> String {
    match tool {
        PathTool::Named(name) => printable::text(name),
        PathTool::Offered { runner, glob } => {
            format!("what {runner} offers as {}", printable::text(glob))
        }
    }
}

fn avoiding(step: &Step) -> String {
    let ids: Vec<&str> = step.avoiding.iter().map(|grant| grant.as_str()).collect();
    if ids.is_empty() {
        String::new()
    } else {
        format!(", if it avoids {}", ids.join(", "))
    }
}

fn remedy(path: &Path) -> String {
    let ids = path.remedy.iter().take(MAX_SHOWN);
    let mut ids: Vec<String> = ids.map(ToString::to_string).collect();
    let more = path.remedy.len().saturating_sub(MAX_SHOWN);
    if more > 0 {
        ids.push(format!("{more} more"));
    }
    format!(
        "`untrusted = \"ask\"` in {}, which asks only where a stranger's text was taken in",
        ids.join(", ")
    )
}

/// What there is to say of a configuration that loads, for a program.
pub fn json(checked: &Checked) -> Value {
    let config = &checked.config;
    json!({
        "status": "ok",
        "file": checked.name,
        "roles": config.roles.len(),
        "tools": config.ruleset.declared().count(),
        "grants": config.ruleset.grants().len(),
        "warnings": checked.warnings,
        "paths": checked.paths.found.iter().map(path_json).collect::<Vec<_>>(),
        "more_paths": checked.paths.more,
    })
}

fn path_json(path: &Path) -> Value {
    let meeting = match path.meeting {
        Meeting::OneSession => "one_session",
        Meeting::OneLabel => "one_label",
        Meeting::Joined => "joined",
        Meeting::Together => "together",
    };
    json!({
        "role": path.role,
        "label_scope": path.label_scope,
        "meeting": meeting,
        "steps": path.steps.iter().map(step_json).collect::<Vec<_>>(),
        "remedy": path.remedy,
    })
}

/// `tool` is a name; where `offered_by` is not empty, a glob over the names that this role may offer.
fn step_json(step: &Step) -> Value {
    let (tool, offered_by) = match &step.tool {
        PathTool::Named(name) => (name.as_str(), ""),
        PathTool::Offered { runner, glob } => (glob.as_str(), runner.as_str()),
    };
    let label = |label: Label| json!({ "class": label.class, "untrusted": label.untrusted });
    json!({
        "tool": tool,
        "offered_by": offered_by,
        "grant": step.grant,
        "sessions": step.sessions,
        "brings": label(step.brings),
        "label": label(step.label),
        "avoiding": step.avoiding,
    })
}
