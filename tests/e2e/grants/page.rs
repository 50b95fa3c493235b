//! docs/grants.md taken apart: its sections, their blocks, and in the examples who types what and what then
//! stands on the terminal.

const PAGE: &str = include_str!("../../../docs/grants.md");

/// The text below a heading of the second rank that begins so.
#[track_caller]
pub(super) fn section(heading: &str) -> &'static str {
    let mut sections = PAGE.split("\n## ");
    let found = sections.find(|section| section.starts_with(heading));
    found.unwrap_or_else(|| panic!("the page has no section {heading}"))
}

/// The headings of the second rank.
pub(super) fn headings() -> Vec<&'static str> {
    let sections = PAGE.split("\n## ").skip(1);
    sections
        .map(|section| section.lines().next().unwrap_or_default())
        .collect()
}

/// A fenced block.
pub(super) enum Block {
    /// Lines of the configuration.
    Configuration(&'static str),
    /// A file of its own: its name, from the first line, and all of it.
    File(&'static str, &'static str),
    /// What people type.
    Typed(Vec<Step>),
}

/// One command and what then stands on the terminal.
pub(super) struct Step {
    pub(super) who: &'static str,
    pub(super) command: &'static str,
    /// `…` in it stands for any text.
    pub(super) shown: String,
    pub(super) exit: i32,
}

/// The blocks of a section, in order.
#[track_caller]
pub(super) fn blocks(section: &'static str) -> Vec<Block> {
    let fenced = section.split("```").skip(1).step_by(2);
    fenced.map(block).collect()
}

fn block(fenced: &'static str) -> Block {
    let (language, text) = fenced.split_once('\n').expect("a block of several lines");
    match language {
        "toml" => match text.strip_prefix("# ").and_then(|text| text.lines().next()) {
            Some(name) if name.ends_with(".toml") => Block::File(name, text),
            Some(_) | None => Block::Configuration(text),
        },
        "console" => Block::Typed(steps(text)),
        other => panic!("the page has a block of {other}; nothing tests it"),
    }
}

/// The commands in a text that looks like the page's examples.
pub(super) fn steps(text: &'static str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in text.lines() {
        if let Some((who, command)) = prompt(line) {
            steps.push(Step {
                who,
                command,
                shown: String::new(),
                exit: 0,
            });
            continue;
        }
        let step = steps.last_mut().expect("a block begins with a command");
        match line.strip_prefix("exit ") {
            Some(code) => step.exit = code.parse().expect("an exit code"),
            None => step.shown.extend([line, "\n"]),
        }
    }
    steps
}

/// `who$ command`.
fn prompt(line: &'static str) -> Option<(&'static str, &'static str)> {
    let (who, command) = line.split_once("$ ")?;
    let is_name = !who.is_empty() && who.bytes().all(|byte| byte.is_ascii_lowercase());
    is_name.then_some((who, command))
}

/// The rows of a section's table whose first cell is code: what stands in backticks in each cell.
pub(super) fn code_rows(section: &'static str) -> Vec<Vec<Vec<&'static str>>> {
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let cells = |row: &'static str| row.trim_matches('|').split('|').map(code).collect();
    rows.map(cells).collect()
}

fn code(cell: &'static str) -> Vec<&'static str> {
    cell.split('`').skip(1).step_by(2).collect()
}
