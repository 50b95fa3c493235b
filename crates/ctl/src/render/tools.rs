//! Tools and their definitions as text for a person. A runner wrote them: nothing of it may look like this
//! command's own words.

use std::fmt::Write as _;
use std::time::Duration;

use client::proto::control::{ToolState, ToolStatus};
use similar::TextDiff;

use crate::printable;

/// So many characters of a description stand in a list.
const LISTED: usize = 40;
/// So many equal lines are shown around those that differ.
const AROUND: usize = 3;
/// After this long a difference is told more coarsely: a definition may have tens of thousands of lines.
const DIFF_TIME: Duration = Duration::from_millis(500);

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

/// A held definition: what differs from the one that is in force, or all of it if there is none.
pub fn definition(held: &ToolStatus, in_force: Option<&ToolStatus>) -> String {
    let mut out = format!("{} offers {}\n", held.runner, held.tool);
    let Some(in_force) =
        in_force.filter(|it| !it.description.is_empty() || !it.input_schema.is_empty())
    else {
        out.push_str("nothing was accepted before\n");
        // Writing into a String does not fail.
        let _ = writeln!(out, "offered now, and held: digest {}", held.definition);
        out.push_str("  description\n");
        quote(&mut out, &described(held));
        out.push_str("  input schema\n");
        quote(&mut out, &schema(held));
        return out;
    };
    let since = match in_force.state {
        ToolState::Declared => "- the configuration states",
        ToolState::Pinned | ToolState::Held => "- accepted before",
    };
    let _ = writeln!(out, "{since}: digest {}", in_force.definition);
    let _ = writeln!(out, "+ offered now, and held: digest {}", held.definition);
    differences(
        &mut out,
        "description",
        &described(in_force),
        &described(held),
    );
    differences(&mut out, "input schema", &schema(in_force), &schema(held));
    if in_force.input_schema != held.input_schema && schema(in_force) == schema(held) {
        out.push_str("    (the same JSON, written in another way)\n");
    }
    out
}

/// A description in lines that a terminal can show.
fn described(tool: &ToolStatus) -> String {
    let lines: Vec<String> = tool.description.split('\n').map(printable::text).collect();
    lines.join("\n")
}

/// A schema laid out, one value a line, so that lines can be compared; as it is where it is no JSON.
fn schema(tool: &ToolStatus) -> String {
    let laid_out = client::proto::json::parse(&tool.input_schema)
        .ok()
        .and_then(|value| serde_json::to_string_pretty(&value).ok());
    printable::json_lines(laid_out.as_deref().unwrap_or(&tool.input_schema))
}

/// The lines that only one of two texts has behind `-` and `+`, between those around them.
fn differences(out: &mut String, what: &str, before: &str, now: &str) {
    if before == now {
        let _ = writeln!(out, "  {what}: the same");
        return;
    }
    let _ = writeln!(out, "  {what}");
    // So that a last line is equal to the same one with others behind it.
    let (before, now) = (format!("{before}\n"), format!("{now}\n"));
    let lines = TextDiff::configure()
        .timeout(DIFF_TIME)
        .diff_lines(&before, &now);
    for (at, group) in lines.grouped_ops(AROUND).iter().enumerate() {
        if at > 0 {
            out.push_str("    ...\n");
        }
        for change in group.iter().flat_map(|op| lines.iter_changes(op)) {
            let line = change.value().trim_end_matches('\n');
            let _ = writeln!(out, "    {} {line}", change.tag());
        }
    }
}

/// Every line of it behind a bar.
fn quote(out: &mut String, text: &str) {
    if text.is_empty() {
        out.push_str("    (empty)\n");
        return;
    }
    for line in text.split('\n') {
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
