//! JSON, a line for each leaf.

use std::fmt;

use client::proto;
use serde::de::{Deserializer as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{behind, columns, count};
use crate::lookalike::{Lookalike, lookalikes};
use crate::printable;

/// Levels up to here are each two columns further in than the one above; a deeper line says its level.
const INDENTED: usize = 12;
/// Columns of a line that no indent takes: for a level's number, a frame's bar and one escape with a backslash.
const KEPT: usize = 28;
/// So many suspect words are described at each text; of more, their number is told.
const DESCRIBED: usize = 8;

/// JSON in lines for a person.
#[derive(Debug, Default)]
pub struct Laid {
    /// The lines.
    pub lines: Vec<String>,
    /// Words that are not what they look like.
    pub suspects: usize,
    /// Characters that are shown as escapes, line ends and tabs aside.
    pub hidden: usize,
}

/// Lays out the members of one JSON object (another value as one leaf), `indent` columns in. A string that does not
/// fit in a line, or has lines of its own, stands in a frame: each line of it begins with `|`, and what continues a
/// line with `:`. What is no strict JSON is shown as a text.
pub fn json(text: &str, indent: usize, width: usize) -> Laid {
    let mut tree = Tree {
        laid: Laid::default(),
        indent,
        width,
    };
    match (proto::json::parse(text), members(text)) {
        (Ok(_), Some(members)) => tree.members(&members, 0),
        (Ok(_), None) => tree.value("", text, 0),
        (Err(rule), _) => {
            let told = format!("not the JSON of a tool's arguments ({rule}), but this text:");
            tree.laid.lines.push(format!("{:indent$}{told}", ""));
            tree.string("", text, 0);
        }
    }
    tree.laid
}

struct Tree {
    laid: Laid,
    indent: usize,
    width: usize,
}

impl Tree {
    fn members(&mut self, members: &[(String, &RawValue)], level: usize) {
        for (key, value) in members {
            let shown = printable::literal(key);
            self.laid.hidden += printable::escapes(&shown);
            self.value(&format!("\"{shown}\": "), value.get(), level);
            self.flags(key, level);
        }
    }

    /// One value, behind its key, if it has one.
    fn value(&mut self, key: &str, raw: &str, level: usize) {
        if let Ok(text) = serde_json::from_str::<String>(raw) {
            return self.string(key, &text, level);
        }
        if let Some(inner) = members(raw).filter(|inner| !inner.is_empty()) {
            self.line(key, "{", level);
            self.members(&inner, level + 1);
            return self.line("", "}", level);
        }
        if let Some(inner) = elements(raw).filter(|inner| !inner.is_empty()) {
            self.line(key, "[", level);
            for value in inner {
                self.value("", value.get(), level + 1);
            }
            return self.line("", "]", level);
        }
        // A number, a word, or nothing within brackets; as it was written.
        let compact: String = raw.chars().filter(|c| !c.is_whitespace()).collect();
        self.line(key, &compact, level);
    }

    fn string(&mut self, key: &str, text: &str, level: usize) {
        let literal = printable::literal(text);
        self.laid.hidden += printable::escapes(&literal);
        let lead = self.lead(level);
        let whole = columns(&lead) + columns(key) + columns(&literal) + 2;
        if whole <= self.width && !text.contains('\n') {
            self.line(key, &format!("\"{literal}\""), level);
        } else {
            self.frame(key, text, level);
        }
        self.flags(text, level);
    }

    fn frame(&mut self, key: &str, text: &str, level: usize) {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let size = match lines.len() {
            0 | 1 => format!("text, {} bytes", count(text.len())),
            many => format!("text, {} bytes in {} lines", count(text.len()), count(many)),
        };
        self.line(key, &size, level);
        let lead = self.lead(level);
        let last = lines.len().saturating_sub(1);
        for (at, line) in lines.iter().enumerate() {
            let open = if at == 0 { "\"" } else { "" };
            let close = if at == last { "\"" } else { "" };
            let shown = format!("{open}{}{close}", printable::literal(line));
            let (head, next) = (format!("{lead}  | "), format!("{lead}  : "));
            self.push(behind(&head, &next, &shown, self.width));
        }
    }

    /// What of a text can be taken for something else.
    fn flags(&mut self, text: &str, level: usize) {
        let found = lookalikes(text);
        self.laid.suspects += found.len();
        let head = format!("{}  ! ", self.lead(level));
        let next = " ".repeat(columns(&head));
        for suspect in found.iter().take(DESCRIBED) {
            self.push(behind(&head, &next, &flag(suspect), self.width));
        }
        if found.len() > DESCRIBED {
            let more = format!("and {} more words like these", found.len() - DESCRIBED);
            self.push(behind(&head, &next, &more, self.width));
        }
    }

    fn line(&mut self, key: &str, shown: &str, level: usize) {
        let head = self.lead(level);
        let next = format!("{head}: ");
        self.push(behind(&head, &next, &format!("{key}{shown}"), self.width));
    }

    fn lead(&self, level: usize) -> String {
        let room = self.width.saturating_sub(self.indent + KEPT) / 2;
        let deepest = INDENTED.min(room);
        let indent = self.indent + 2 * level.min(deepest);
        if level > deepest {
            format!("{:indent$}(level {level}) ", "")
        } else {
            " ".repeat(indent)
        }
    }

    fn push(&mut self, lines: Vec<String>) {
        self.laid.lines.extend(lines);
    }
}

fn flag(suspect: &Lookalike) -> String {
    let word = printable::literal(&suspect.word);
    let characters = suspect.characters.join(", ");
    if suspect.looks_like.is_empty() {
        format!("\"{word}\" mixes scripts: {characters}")
    } else {
        let looks_like = printable::literal(&suspect.looks_like);
        format!("\"{word}\" is not \"{looks_like}\": it has {characters}")
    }
}

/// The members of an object in their order, numbers as they were written.
fn members(raw: &str) -> Option<Vec<(String, &RawValue)>> {
    struct Members;
    impl<'de> Visitor<'de> for Members {
        type Value = Vec<(String, &'de RawValue)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some(member) = map.next_entry()? {
                members.push(member);
            }
            Ok(members)
        }
    }
    serde_json::Deserializer::from_str(raw)
        .deserialize_map(Members)
        .ok()
}

/// The elements of an array.
fn elements(raw: &str) -> Option<Vec<&RawValue>> {
    struct Elements;
    impl<'de> Visitor<'de> for Elements {
        type Value = Vec<&'de RawValue>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut elements = Vec::new();
            while let Some(element) = seq.next_element()? {
                elements.push(element);
            }
            Ok(elements)
        }
    }
    serde_json::Deserializer::from_str(raw)
        .deserialize_seq(Elements)
        .ok()
}
