//! `[command.arguments.NAME]`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use regex::RegexBuilder;

use super::absolute;
use super::faults::Faults;
use super::table::Section;
use crate::command::{Argument, Kind, TextRule, WholeRegex};
use crate::folders::{Access, Folder};

/// Arguments of one command.
const MAX_ARGUMENTS: usize = 32;
/// Bytes of a text where the configuration says nothing, and the most that it may say.
const USUAL_LEN: u32 = 256;
const MAX_LEN: u32 = 64 << 10;
/// Bytes of text for standard input, likewise.
const MAX_STDIN: u32 = 1 << 20;
/// Items of a list.
const USUAL_ITEMS: u32 = 16;
const MAX_ITEMS: u32 = 256;
/// Bytes of a compiled regular expression.
const MAX_COMPILED: usize = 1 << 20;

const KEYS: &[&str] = &[
    "type",
    "description",
    "optional",
    "allow_dash",
    "max_len",
    "regex",
    "one_of",
    "min",
    "max",
    "text",
    "below",
    "write",
    "min_items",
    "max_items",
];

#[derive(Clone, Copy)]
enum Type {
    Text,
    Integer,
    Flag,
    Path,
    List,
}

const TYPES: &[(&str, Type)] = &[
    ("string", Type::Text),
    ("integer", Type::Integer),
    ("flag", Type::Flag),
    ("path", Type::Path),
    ("list", Type::List),
];

pub(super) fn read(
    command: &Section<'_>,
    folders: &[Folder],
    faults: &mut Faults,
) -> BTreeMap<String, Argument> {
    let mut arguments = BTreeMap::new();
    let entries = command.entries(faults, "arguments");
    if entries.len() > MAX_ARGUMENTS {
        let what = format!("has at most {MAX_ARGUMENTS} arguments");
        command.fault(faults, &command.span_of("arguments"), what);
    }
    for (name, node) in entries {
        let place = format!("{}, argument `{}`", command.place, name.text);
        let sound = (1..=64).contains(&name.text.len())
            && name
                .text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        if !sound {
            let what = format!("{place}: a name has 1 to 64 letters, digits, `_` and `-`");
            faults.add(&name.span, what);
        }
        let Some(section) = Section::of(node, place, KEYS, faults) else {
            continue;
        };
        let stdin = command
            .get("stdin")
            .is_some_and(|stdin| stdin.get_ref().as_str() == Some(name.text));
        let longest = if stdin { MAX_STDIN } else { MAX_LEN };
        if let Some(mut argument) = read_one(&section, folders, longest, faults) {
            // What is read from standard input is no option.
            argument.allow_dash |= stdin;
            arguments.insert(name.text.to_owned(), argument);
        }
    }
    arguments
}

fn read_one(
    section: &Section<'_>,
    folders: &[Folder],
    longest: u32,
    faults: &mut Faults,
) -> Option<Argument> {
    section.require(faults, "type", "\"string\"");
    let description = section.text(faults, "description");
    let optional = section.flag(faults, "optional").unwrap_or(false);
    let allow_dash = section.flag(faults, "allow_dash").unwrap_or(false);
    let kind = section.word(faults, "type", TYPES)?;
    let own: &[&str] = match kind {
        Type::Text => &["max_len", "regex", "one_of"],
        Type::Integer => &["min", "max"],
        Type::Flag => &["text"],
        Type::Path => &["below", "write"],
        Type::List => &["max_len", "regex", "one_of", "min_items", "max_items"],
    };
    let shared = ["type", "description", "optional", "allow_dash"];
    for key in KEYS.iter().filter(|key| !shared.contains(key)) {
        if !own.contains(key) {
            section.forbid(faults, key, "is not for arguments of this type");
        }
    }
    let kind = match kind {
        Type::Text => Kind::Text(text_rule(section, longest, faults)),
        Type::Integer => integer(section, allow_dash, faults)?,
        Type::Flag => {
            section.require(faults, "text", "\"--verbose\"");
            Kind::Flag {
                text: section.text(faults, "text")?.text.to_owned(),
            }
        }
        Type::Path => path(section, folders, faults)?,
        Type::List => list(section, faults)?,
    };
    Some(Argument {
        description: description.map_or_else(String::new, |text| text.text.to_owned()),
        optional: optional || matches!(kind, Kind::Flag { .. }),
        allow_dash,
        kind,
    })
}

fn text_rule(section: &Section<'_>, longest: u32, faults: &mut Faults) -> TextRule {
    let max_len = section.count(faults, "max_len", 1..=longest);
    let regex = section.text(faults, "regex").and_then(|text| {
        let compiled = RegexBuilder::new(&format!(r"\A(?:{})\z", text.text))
            .size_limit(MAX_COMPILED)
            .dfa_size_limit(MAX_COMPILED)
            .build();
        if compiled.is_err() {
            let what = "`regex` is no regular expression of the `regex` crate, or too large a one";
            section.fault(faults, &text.span, what);
        }
        compiled.ok().map(|compiled| WholeRegex {
            text: text.text.to_owned(),
            compiled,
        })
    });
    let one_of = section.texts(faults, "one_of").map(|texts| {
        if texts.is_empty() {
            let what = "`one_of` is empty, and nothing could be said";
            section.fault(faults, &section.span_of("one_of"), what);
        }
        texts.iter().map(|text| text.text.to_owned()).collect()
    });
    TextRule {
        max_len: max_len.unwrap_or(USUAL_LEN),
        regex,
        one_of,
    }
}

fn integer(section: &Section<'_>, allow_dash: bool, faults: &mut Faults) -> Option<Kind> {
    section.require(faults, "min", "1");
    section.require(faults, "max", "100");
    // What every JSON reader can tell apart.
    let bounds = -(1 << 53)..=1 << 53;
    let min = section.integer(faults, "min", bounds.clone())?;
    let max = section.integer(faults, "max", bounds)?;
    if min > max {
        section.fault(faults, &section.span_of("max"), "`max` is below `min`");
    }
    if min < 0 && !allow_dash {
        let what =
            "a negative number begins with `-`; write `allow_dash = true` if that is no option";
        section.fault(faults, &section.span_of("min"), what);
    }
    Some(Kind::Integer { min, max })
}

fn list(section: &Section<'_>, faults: &mut Faults) -> Option<Kind> {
    let min_items = section
        .count(faults, "min_items", 0..=MAX_ITEMS)
        .unwrap_or(0);
    let max_items = section.count(faults, "max_items", 1..=MAX_ITEMS);
    let max_items = max_items.unwrap_or(USUAL_ITEMS);
    if min_items > max_items {
        let what = "`max_items` is below `min_items`";
        section.fault(faults, &section.span_of("min_items"), what);
        return None;
    }
    // All of it together still is an argv that Linux takes.
    let each = text_rule(section, 4096, faults);
    Some(Kind::List {
        each,
        min_items,
        max_items,
    })
}

fn path(section: &Section<'_>, folders: &[Folder], faults: &mut Faults) -> Option<Kind> {
    let access = if section.flag(faults, "write").unwrap_or(false) {
        Access::Write
    } else {
        Access::Read
    };
    let may = |folder: &Folder| access == Access::Read || folder.access == Access::Write;
    let below: Vec<PathBuf> = match section.texts(faults, "below") {
        Some(texts) => {
            let mut below = Vec::new();
            for text in texts {
                let Some(path) = absolute(section, faults, "below", &text) else {
                    continue;
                };
                let folder = folders
                    .iter()
                    .filter(|folder| path.starts_with(&folder.path))
                    .max_by_key(|folder| folder.path.components().count());
                match folder {
                    Some(folder) if may(folder) => below.push(path),
                    Some(_) => {
                        let what =
                            "its folder is served for reading only; write `write = true` there";
                        section.fault(faults, &text.span, what);
                    }
                    None => {
                        let what = "`below` must name a [[folder]], or what is below one";
                        section.fault(faults, &text.span, what);
                    }
                }
            }
            below
        }
        None => folders
            .iter()
            .filter(|folder| may(folder))
            .map(|folder| folder.path.clone())
            .collect(),
    };
    if below.is_empty() {
        let what = "there is no folder that such a path could lie in";
        section.fault(faults, &section.span, what);
        return None;
    }
    Some(Kind::Path { below, access })
}
