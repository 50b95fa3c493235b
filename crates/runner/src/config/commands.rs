//! `[[command]]`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use client::DataClass;
use proto::{Effects, ToolName};

use super::faults::Faults;
use super::table::{Node, Section, Text};
use super::{absolute, arguments, label};
use crate::command::{Argument, Command, Element, Kind, Limits, Piece, Reach};
use crate::folders::{Access, Folder};

/// Bytes of a description.
const MAX_DESCRIPTION: usize = 4096;
/// Elements of an argv.
const MAX_ARGV: usize = 64;
/// Bytes of everything that a command may name: its argv, its environment, its paths.
const MAX_NAMED: usize = 64 << 10;

const KEYS: &[&str] = &[
    "name",
    "description",
    "argv",
    "arguments",
    "stdin",
    "cwd",
    "env",
    "class",
    "untrusted",
    "effects",
    "egress",
    "ok_codes",
    "timeout",
    "grace",
    "cpu",
    "memory",
    "open_files",
    "processes",
    "file_size",
    "output",
    "read",
    "write",
    "network",
];
const EFFECTS: &[(&str, Effects)] = &[
    ("read", Effects::Read),
    ("idempotent", Effects::Idempotent),
    ("once", Effects::Once),
];

/// Reads one, and adds it to those before it.
pub(super) fn read(
    node: &Node<'_>,
    folders: &[Folder],
    commands: &mut Vec<Command>,
    faults: &mut Faults,
) {
    let stated = node.get_ref().as_table().and_then(|table| {
        let name = table.iter().find(|(key, _)| key.get_ref() == "name")?.1;
        name.get_ref().as_str().map(str::to_owned)
    });
    let place = match &stated {
        Some(name) => format!("command `{name}`"),
        None => format!("command {}", commands.len() + 1),
    };
    let Some(section) = Section::of(node, place, KEYS, faults) else {
        return;
    };
    let name = read_name(&section, commands, faults);
    section.require(faults, "description", "\"what it does\"");
    let description = section.text(faults, "description");
    if let Some(text) = description
        .as_ref()
        .filter(|d| d.text.len() > MAX_DESCRIPTION)
    {
        let what = format!("`description` has at most {MAX_DESCRIPTION} bytes");
        section.fault(faults, &text.span, what);
    }
    let arguments = arguments::read(&section, folders, faults);
    let stdin = section.text(faults, "stdin");
    let argv = read_argv(&section, &arguments, stdin.as_ref(), faults);
    let label = label(&section, faults, DataClass::Confidential);
    covers(&section, label, &arguments, folders, faults);
    let reach = read_reach(&section, &arguments, faults);
    let egress = section.flag(faults, "egress").unwrap_or(true);
    if reach.network && !egress {
        let what = "`egress` cannot be false for what has `network`";
        section.fault(faults, &section.span_of("egress"), what);
    }
    let cwd = section.text(faults, "cwd");
    let cwd = cwd.and_then(|text| absolute(&section, faults, "cwd", &text));
    let env = read_env(&section, faults);
    let codes = section.integers(faults, "ok_codes", 0..=255);
    let codes = codes.unwrap_or_else(|| vec![0]);
    let effects = section.word(faults, "effects", EFFECTS);
    let limits = read_limits(&section, faults);
    let (Some(name), Some((program, argv)), Some(description)) = (name, argv, description) else {
        return;
    };
    let command = Command {
        name,
        description: description.text.to_owned(),
        program,
        argv,
        arguments,
        stdin: stdin.map(|text| text.text.to_owned()),
        cwd: cwd.unwrap_or_else(|| PathBuf::from("/")),
        env,
        label,
        effects: effects.unwrap_or(Effects::Once),
        egress,
        ok_codes: codes
            .into_iter()
            .filter_map(|code| code.try_into().ok())
            .collect(),
        limits,
        reach,
    };
    if named(&command) > MAX_NAMED {
        let what = format!("names more than {MAX_NAMED} bytes in argv, env, read and write");
        section.fault(faults, &section.span, what);
    }
    commands.push(command);
}

fn read_name(section: &Section<'_>, commands: &[Command], faults: &mut Faults) -> Option<ToolName> {
    section.require(faults, "name", "\"disk-usage\"");
    let text = section.text(faults, "name")?;
    let taken = commands
        .iter()
        .any(|command| command.name.as_str() == text.text);
    if taken || crate::files::TOOLS.contains(&text.text) {
        section.fault(faults, &text.span, "there is another tool of this name");
        return None;
    }
    match ToolName::new(text.text) {
        Ok(name) => Some(name),
        Err(rule) => {
            section.fault(faults, &text.span, rule);
            None
        }
    }
}

fn read_argv(
    section: &Section<'_>,
    arguments: &BTreeMap<String, Argument>,
    stdin: Option<&Text<'_>>,
    faults: &mut Faults,
) -> Option<(PathBuf, Vec<Element>)> {
    section.require(faults, "argv", "[\"/usr/bin/du\", \"--bytes\", \"{path}\"]");
    let texts = section.texts(faults, "argv")?;
    if texts.is_empty() || texts.len() > MAX_ARGV {
        let what = format!("`argv` has 1 to {MAX_ARGV} elements, the program first");
        section.fault(faults, &section.span_of("argv"), what);
        return None;
    }
    let mut used: Vec<&str> = stdin.iter().map(|text| text.text).collect();
    if let Some(text) = stdin {
        match arguments.get(text.text).map(|argument| &argument.kind) {
            Some(Kind::Text(_)) => {}
            Some(_) | None => {
                let what = "`stdin` must name an argument of the type \"string\"";
                section.fault(faults, &text.span, what);
            }
        }
    }
    let mut elements = Vec::new();
    for text in &texts {
        match element(text.text) {
            Ok(element) => {
                check_element(section, &element, text, arguments, stdin, faults);
                elements.push(element);
            }
            Err(rule) => section.fault(faults, &text.span, rule),
        }
    }
    for element in &elements {
        used.extend(element.names());
    }
    for name in arguments
        .keys()
        .filter(|name| !used.contains(&name.as_str()))
    {
        let what = format!("argument `{name}` stands nowhere in `argv`; write \"{{{name}}}\"");
        section.fault(faults, &section.span_of("arguments"), what);
    }
    let (program, rest) = elements.split_first()?;
    let first = texts.first()?;
    let program = match program.pieces.as_slice() {
        [Piece::Text(program)] => Text {
            text: program,
            span: first.span.clone(),
        },
        _ => {
            let what = "the program, first in `argv`, must be a path without arguments in it";
            section.fault(faults, &first.span, what);
            return None;
        }
    };
    let program = absolute(section, faults, "argv", &program)?;
    Some((program, rest.to_vec()))
}

fn check_element(
    section: &Section<'_>,
    element: &Element,
    text: &Text<'_>,
    arguments: &BTreeMap<String, Argument>,
    stdin: Option<&Text<'_>>,
    faults: &mut Faults,
) {
    for name in element.names() {
        let Some(argument) = arguments.get(name) else {
            let what = format!("there is no argument `{name}`; a brace itself is written twice");
            section.fault(faults, &text.span, what);
            continue;
        };
        if stdin.is_some_and(|stdin| stdin.text == name) {
            let what = format!("argument `{name}` is `stdin` already");
            section.fault(faults, &text.span, what);
        }
        let whole = matches!(argument.kind, Kind::Flag { .. } | Kind::List { .. });
        if whole && element.pieces.len() > 1 {
            let what = format!("argument `{name}` must be an element by itself");
            section.fault(faults, &text.span, what);
        }
    }
}

/// `{name}` is an argument; `{{` and `}}` are braces.
fn element(text: &str) -> Result<Element, &'static str> {
    const RULE: &str = "a place is written \"{name}\", and a brace itself twice";
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, brace) = rest.split_at(at);
        plain.push_str(before);
        if let Some(after) = brace.strip_prefix("{{") {
            plain.push('{');
            rest = after;
        } else if let Some(after) = brace.strip_prefix("}}") {
            plain.push('}');
            rest = after;
        } else {
            let inside = brace.strip_prefix('{').ok_or(RULE)?;
            let (name, after) = inside.split_once('}').ok_or(RULE)?;
            if !plain.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
            }
            pieces.push(Piece::Argument(name.to_owned()));
            rest = after;
        }
    }
    plain.push_str(rest);
    if !plain.is_empty() || pieces.is_empty() {
        pieces.push(Piece::Text(plain));
    }
    Ok(Element { pieces })
}

/// What a command says of a file is at least as confidential as the file: its failures have no label but the
/// tool's.
fn covers(
    section: &Section<'_>,
    label: client::Label,
    arguments: &BTreeMap<String, Argument>,
    folders: &[Folder],
    faults: &mut Faults,
) {
    for (name, argument) in arguments {
        let Kind::Path { below, .. } = &argument.kind else {
            continue;
        };
        // Folders below it count too: a path may lead into them.
        let reached = folders.iter().filter(|folder| {
            below
                .iter()
                .any(|path| path.starts_with(&folder.path) || folder.path.starts_with(path))
        });
        for folder in reached.filter(|folder| !folder.label.is_within(label)) {
            let what = format!(
                "argument `{name}` reaches {}, whose files count as more than the command's output; raise \
                 `class` and `untrusted`, or narrow `below`",
                folder.path.display()
            );
            section.fault(faults, &section.span, what);
        }
    }
}

fn read_reach(
    section: &Section<'_>,
    arguments: &BTreeMap<String, Argument>,
    faults: &mut Faults,
) -> Reach {
    let mut paths = |key| {
        let texts = section.texts(faults, key).unwrap_or_default();
        let path = |text: &Text<'_>| absolute(section, faults, key, text);
        texts.iter().filter_map(path).collect::<Vec<_>>()
    };
    let (mut read, mut write) = (paths("read"), paths("write"));
    for argument in arguments.values() {
        if let Kind::Path { below, access } = &argument.kind {
            match access {
                Access::Read => read.extend(below.iter().cloned()),
                Access::Write => write.extend(below.iter().cloned()),
            }
        }
    }
    Reach {
        read,
        write,
        network: section.flag(faults, "network").unwrap_or(false),
    }
}

fn read_env(section: &Section<'_>, faults: &mut Faults) -> BTreeMap<String, String> {
    let mut env = BTreeMap::new();
    for (name, node) in section.entries(faults, "env") {
        let sound = !name.text.is_empty()
            && !name.text.starts_with(|c: char| c.is_ascii_digit())
            && name
                .text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_');
        let value = node.get_ref().as_str().filter(|text| !text.contains('\0'));
        match value {
            Some(value) if sound => {
                env.insert(name.text.to_owned(), value.to_owned());
            }
            Some(_) | None => {
                let what = "`env` maps names of letters, digits and `_` to strings without NUL";
                section.fault(faults, &name.span, what);
            }
        }
    }
    env
}

fn read_limits(section: &Section<'_>, faults: &mut Faults) -> Limits {
    const SECOND: Duration = Duration::from_secs(1);
    const HOUR: Duration = Duration::from_secs(3600);
    let usual = Limits::default();
    let timeout = section.duration(faults, "timeout", Duration::from_millis(100)..=HOUR);
    let grace = section.duration(faults, "grace", Duration::ZERO..=Duration::from_secs(5));
    let cpu = section.duration(faults, "cpu", SECOND..=HOUR);
    let processes = section.count(faults, "processes", 1..=4096);
    let open_files = section.count(faults, "open_files", 16..=65_536);
    Limits {
        timeout: timeout.unwrap_or(usual.timeout),
        grace: grace.unwrap_or(usual.grace),
        cpu_seconds: cpu.map_or(usual.cpu_seconds, |cpu| cpu.as_secs().max(1)),
        memory: section
            .size(faults, "memory", 32 << 20..=1 << 40)
            .unwrap_or(usual.memory),
        open_files: open_files.map_or(usual.open_files, u64::from),
        processes: processes.map_or(usual.processes, u64::from),
        file_size: section
            .size(faults, "file_size", 0..=1 << 40)
            .unwrap_or(usual.file_size),
        output: section
            .size(faults, "output", 1 << 10..=16 << 20)
            .unwrap_or(usual.output),
    }
}

/// Bytes of what a command names; it is handed to a process by the argument.
fn named(command: &Command) -> usize {
    let argv = command.argv.iter().flat_map(|element| &element.pieces);
    let argv = argv.map(|piece| match piece {
        Piece::Text(text) | Piece::Argument(text) => text.len(),
    });
    let env = command
        .env
        .iter()
        .map(|(name, value)| name.len() + value.len());
    let paths = command.reach.read.iter().chain(&command.reach.write);
    argv.chain(env)
        .chain(paths.map(|path| path.as_os_str().len()))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_has_places_and_braces() {
        let text = |text: &str| Piece::Text(text.to_owned());
        let argument = |name: &str| Piece::Argument(name.to_owned());
        for (written, pieces) in [
            ("", vec![text("")]),
            ("plain", vec![text("plain")]),
            ("{a}", vec![argument("a")]),
            (
                "--x={a}:{b}!",
                vec![
                    text("--x="),
                    argument("a"),
                    text(":"),
                    argument("b"),
                    text("!"),
                ],
            ),
            ("{{a}}", vec![text("{a}")]),
            ("{{{a}}}", vec![text("{"), argument("a"), text("}")]),
        ] {
            assert_eq!(element(written), Ok(Element { pieces }), "{written}");
        }
        for broken in ["{", "}", "{a", "a}", "{{a}"] {
            assert!(element(broken).is_err(), "{broken}");
        }
    }
}
