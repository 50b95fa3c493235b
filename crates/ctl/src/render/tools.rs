//! Tools and their definitions as text for a person. A runner wrote them: nothing of it may look like this
//! command's own words.

use std::fmt::Write as _;

use client::proto::control::{ToolState, ToolStatus};

use crate::printable;

/// So many characters of a description stand in a list.
const LISTED: usize = 40;

/// A line for each tool, and what to type for one that waits.
pub(super) fn all(tools: &[ToolStatus]) -> String {
    if tools.is_empty() {
        return "no tools; add a [[tool]] to the configuration\n".to_owned();
    }
    let mut out = format!(
        "{:<12} {:<24} {:<8} {:>9}  {}\n",
        "runner", "tool", "state", "served by", "description"
    );
    for tool in tools {
        // Writing into a String does not fail.
        let _ = writeln!(
            out,
            "{:<12} {:<24} {:<8} {:>9}  {}",
            tool.runner.as_str(),
            tool.tool.as_str(),
            state(tool.state),
            tool.served_by,
            beginning(&tool.description)
        );
        if tool.state == ToolState::Held {
            let _ = writeln!(
                out,
                "    to read and accept it: rolebroker accept-tool {} {} --reason WHY",
                tool.runner, tool.tool
            );
        }
    }
    out
}

/// A held definition, whole, beside the one that is in force, if there is one.
pub fn definition(held: &ToolStatus, in_force: Option<&ToolStatus>) -> String {
    let mut out = format!("{} offers {}\n", held.runner, held.tool);
    let in_force = in_force.filter(|it| !it.description.is_empty() || !it.input_schema.is_empty());
    if let Some(in_force) = in_force {
        let since = match in_force.state {
            ToolState::Declared => "the configuration states",
            ToolState::Pinned | ToolState::Held => "accepted before",
        };
        whole(&mut out, since, in_force);
    } else {
        out.push_str("nothing was accepted before\n");
    }
    whole(&mut out, "offered now, and held", held);
    if let Some(in_force) = in_force {
        let differs = |name, differs: bool| differs.then_some(name);
        let parts = [
            differs("description", in_force.description != held.description),
            differs("input schema", in_force.input_schema != held.input_schema),
        ];
        let parts: Vec<&str> = parts.into_iter().flatten().collect();
        let _ = writeln!(out, "what differs: {}", parts.join(", "));
    }
    out
}

fn whole(out: &mut String, since: &str, tool: &ToolStatus) {
    let _ = writeln!(out, "{since}: digest {}", tool.definition);
    out.push_str("  description\n");
    let lines: Vec<String> = tool.description.split('\n').map(printable::text).collect();
    quote(out, &lines.join("\n"));
    out.push_str("  input schema\n");
    quote(out, &printable::json_lines(&tool.input_schema));
}

/// Every line of what is printable already behind a bar.
fn quote(out: &mut String, shown: &str) {
    if shown.is_empty() {
        out.push_str("    (empty)\n");
        return;
    }
    for line in shown.split('\n') {
        // Writing into a String does not fail.
        let _ = writeln!(out, "    | {line}");
    }
}

fn state(state: ToolState) -> &'static str {
    match state {
        ToolState::Declared => "declared",
        ToolState::Pinned => "pinned",
        ToolState::Held => "held",
    }
}

fn beginning(text: &str) -> String {
    let cut: String = text.chars().take(LISTED).collect();
    let more = if cut.len() < text.len() { "..." } else { "" };
    printable::text(&cut) + more
}
