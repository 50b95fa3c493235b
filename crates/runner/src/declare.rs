//! What this runner serves, as a broker's configuration declares it.

use std::fmt::Write as _;

use client::{DataClass, Label};
use proto::{Effects, RoleName};
use serde_json::{Value, json};

use crate::command::Command;
use crate::folders::{Access, Folder};

/// A tool as it is declared.
#[derive(Debug, Clone, PartialEq)]
pub struct Declared {
    /// Its name.
    pub name: String,
    /// What its results count as, at least.
    pub floor: Label,
    /// What running it twice does.
    pub effects: Effects,
    /// Whether it can carry data out of the machine.
    pub egress: bool,
    /// What it does, in words for an agent.
    pub description: String,
    /// A JSON Schema.
    pub input_schema: Value,
}

/// Every tool that is served for these folders and commands.
pub fn declared(folders: &[Folder], commands: &[Command]) -> Vec<Declared> {
    let mut tools = file_tools(folders);
    tools.extend(commands.iter().map(|command| Declared {
        name: command.name.to_string(),
        floor: command.label,
        effects: command.effects,
        egress: command.egress,
        description: command.description.clone(),
        input_schema: command.input_schema(),
    }));
    tools
}

/// The `[[tool]]` blocks for a broker's configuration.
pub fn tool_blocks(role: &RoleName, tools: &[Declared]) -> String {
    let mut text = String::new();
    for tool in tools {
        let schema = format!("{:#}", tool.input_schema);
        // Writing into a String does not fail.
        let _ = write!(
            text,
            "[[tool]]\nname = {}\nrunner = {}\nclass = {}\nuntrusted = {}\neffects = {}\negress = {}\n\
             description = {}\ninput_schema = {}\n\n",
            quoted(&tool.name),
            quoted(role.as_str()),
            quoted(tool.floor.class.as_str()),
            tool.floor.untrusted,
            quoted(effects(tool.effects)),
            tool.egress,
            quoted(&tool.description),
            quoted_lines(&schema),
        );
    }
    text
}

fn effects(effects: Effects) -> &'static str {
    match effects {
        Effects::Read => "read",
        Effects::Idempotent => "idempotent",
        Effects::Once => "once",
    }
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// As it stands between three single quotes, where it can.
fn quoted_lines(text: &str) -> String {
    // Of the control characters a literal may hold a tab and a line feed.
    let odd = |c: char| c.is_control() && c != '\t' && c != '\n';
    if text.contains("'''") || text.ends_with('\'') || text.contains(odd) {
        quoted(text)
    } else {
        format!("'''\n{text}\n'''")
    }
}

fn file_tools(folders: &[Folder]) -> Vec<Declared> {
    let Some(floor) = floor(folders) else {
        return Vec::new();
    };
    let path = |what: &str| json!({"type": "string", "description": what});
    let file = "The file's absolute path, without `.` and `..`.";
    let folder = "The folder's absolute path, without `.`, `..` and a `/` at its end.";
    let tool =
        |name: &str, effects, description: &str, properties: Value, required: &[&str]| Declared {
            name: name.to_owned(),
            floor,
            effects,
            egress: false,
            description: description.to_owned(),
            input_schema: json!({
                "type": "object", "properties": properties, "required": required,
                "additionalProperties": false,
            }),
        };
    let mut tools = vec![
        tool(
            "read_file",
            Effects::Read,
            "Read a text file and return its content. The path is absolute.",
            json!({"path": path(file)}),
            &["path"],
        ),
        tool(
            "list_dir",
            Effects::Read,
            "List the names in a folder. The path is absolute.",
            json!({"path": path(folder)}),
            &["path"],
        ),
        tool(
            "search_files",
            Effects::Read,
            "Search the files below a folder: for lines with a text, for names, or for both. Give `pattern` or \
             `glob`. The path is absolute; links are not followed.",
            json!({
                "path": path(folder),
                "pattern": {"type": "string", "maxLength": 1024, "description": "What a line must have in it."},
                "glob": {"type": "string", "maxLength": 1024,
                    "description": "What a name must match: `*.md`; with a `/`, the path below the folder: `src/**/*.rs`."},
                "regex": {"type": "boolean", "description": "Whether `pattern` is a regular expression."},
                "ignore_case": {"type": "boolean", "description": "Whether upper and lower case are the same."},
            }),
            &["path"],
        ),
    ];
    if folders.iter().any(|folder| folder.access == Access::Write) {
        tools.push(tool(
            "write_file",
            Effects::Idempotent,
            "Write a text file, replacing what was in it. The path is absolute.",
            json!({"path": path(file), "content": path("All that the file shall hold.")}),
            &["path", "content"],
        ));
        tools.push(tool(
            "edit_file",
            Effects::Once,
            "Replace one text by another in a text file. `old` must stand there exactly once, unless `all` is true. \
             The path is absolute.",
            json!({
                "path": path(file),
                "old": {"type": "string", "minLength": 1, "description": "What stands there, to the letter."},
                "new": path("What shall stand there instead."),
                "all": {"type": "boolean", "description": "Whether to replace it wherever it stands."},
            }),
            &["path", "old", "new"],
        ));
    }
    tools
}

/// The least that any of them counts as: the runner raises each result by where it comes from.
fn floor(folders: &[Folder]) -> Option<Label> {
    let class: DataClass = folders.iter().map(|folder| folder.label.class).min()?;
    Some(Label {
        class,
        untrusted: folders.iter().all(|folder| folder.label.untrusted),
    })
}
