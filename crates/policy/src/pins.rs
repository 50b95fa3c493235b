//! Some arguments as constraints that hold for them alone: the lines of a `where`, as TOML.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;

use crate::limits::{MAX_PATTERN, MAX_POINTERS};
use crate::number::Exact;

/// A pointer that no tool has, with a matcher that nothing matches: permits `{}` alone.
const NOTHING: (&str, &str) = ("/nothing", "{ optional = { regex = '[a&&b]' } }");

/// The lines of a `where` (or `unless`), and where they hold for more than these arguments.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Pinned {
    /// Pointer, as TOML, and what must stand there.
    lines: Vec<(String, Held)>,
    /// The pointers whose matcher matches other values too, and what it matches.
    pub(crate) wider: Vec<(String, String)>,
}

/// What must stand at a pointer, as TOML.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Held {
    /// This value.
    Value(String),
    /// What this matcher matches.
    Matcher(String),
}

impl Pinned {
    /// Each pointer and its value, both as TOML, in the order of the pointers: equal values, as
    /// `equals` compares them, are equal texts. `None`: some are wider.
    pub(crate) fn exact(&self) -> Option<BTreeMap<&str, &str>> {
        let values = self.lines.iter().filter_map(|(pointer, held)| match held {
            Held::Value(value) => Some((pointer.as_str(), value.as_str())),
            Held::Matcher(_) => None,
        });
        self.wider.is_empty().then(|| values.collect())
    }

    /// As the lines of a grant, under `key`.
    pub(crate) fn toml(&self, key: &str) -> String {
        let mut text = String::new();
        for (pointer, held) in &self.lines {
            // Writing into a String does not fail.
            let _ = match held {
                Held::Value(value) => writeln!(text, "{key}.{pointer} = {{ equals = {value} }}"),
                Held::Matcher(matcher) => writeln!(text, "{key}.{pointer} = {matcher}"),
            };
        }
        text
    }
}

/// The lines of a `where` for arguments of which each of these places, as TOML, holds one of its
/// values; without places, for `{}` alone.
pub(crate) fn any_of<'a>(places: impl Iterator<Item = (&'a str, &'a BTreeSet<&'a str>)>) -> String {
    let mut text = String::new();
    for (pointer, values) in places {
        let values: Vec<&str> = values.iter().copied().collect();
        // Writing into a String does not fail.
        let _ = match values.as_slice() {
            [value] => writeln!(text, "where.{pointer} = {{ equals = {value} }}"),
            values => {
                let values = values.join(", ");
                writeln!(text, "where.{pointer} = {{ one_of = [{values}] }}")
            }
        };
    }
    if text.is_empty() {
        let (pointer, matcher) = NOTHING;
        text = format!("where.{} = {matcher}\n", quoted(pointer));
    }
    text
}

/// Pins every leaf to its value. Where no matcher matches a value alone (null, an empty list or
/// object, a number that readers read differently, a text over [`MAX_PATTERN`] bytes) the narrowest
/// one is written, and told in `wider`.
///
/// # Errors
/// In words: what cannot be written at all.
pub(crate) fn pin(arguments: &Value) -> Result<Pinned, String> {
    let mut pinned = Pinned::default();
    walk(arguments, &mut String::new(), &mut pinned)?;
    if pinned.lines.is_empty() {
        let (pointer, matcher) = NOTHING;
        let nothing = Held::Matcher(matcher.to_owned());
        pinned.lines.push((quoted(pointer), nothing));
    }
    Ok(pinned)
}

/// The root is an object: an empty one has no leaf.
fn walk(value: &Value, pointer: &mut String, pinned: &mut Pinned) -> Result<(), String> {
    match value {
        Value::Object(fields) if !fields.is_empty() || pointer.is_empty() => {
            for (key, field) in fields {
                step(&escaped(key), field, pointer, pinned)?;
            }
            Ok(())
        }
        Value::Array(elements) if !elements.is_empty() => {
            for (place, element) in elements.iter().enumerate() {
                step(&place.to_string(), element, pointer, pinned)?;
            }
            Ok(())
        }
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => leaf(value, pointer, pinned),
    }
}

fn step(
    token: &str,
    value: &Value,
    pointer: &mut String,
    pinned: &mut Pinned,
) -> Result<(), String> {
    let above = pointer.len();
    pointer.push('/');
    pointer.push_str(token);
    let walked = walk(value, pointer, pinned);
    pointer.truncate(above);
    walked
}

fn leaf(value: &Value, pointer: &str, pinned: &mut Pinned) -> Result<(), String> {
    if pinned.lines.len() >= MAX_POINTERS {
        return Err(format!(
            "the arguments have more than {MAX_POINTERS} values, and a `where` names that many"
        ));
    }
    if pointer.len() > MAX_PATTERN {
        return Err(format!(
            "the arguments have a value under a pointer of more than {MAX_PATTERN} bytes"
        ));
    }
    let (matcher, wider) = matcher(value);
    pinned.lines.push((quoted(pointer), matcher));
    if let Some(what) = wider {
        pinned.wider.push((pointer.to_owned(), what));
    }
    Ok(())
}

/// The narrowest matcher for a leaf, and what else it matches.
fn matcher(value: &Value) -> (Held, Option<String>) {
    let equals = |text: String| (Held::Value(text), None);
    let any = |what: &str| {
        let any = Held::Matcher("{ any = true }".to_owned());
        (any, Some(what.to_owned()))
    };
    match value {
        Value::Bool(flag) => equals(flag.to_string()),
        Value::Number(number) => match Exact::of(number) {
            Some(exact) => equals(exact.to_string()),
            None => any("anything, because readers read this number differently"),
        },
        Value::String(text) if text.len() <= MAX_PATTERN => equals(quoted(text)),
        Value::String(text) => (
            Held::Matcher(format!("{{ max_len = {} }}", text.len())),
            Some(format!("any text of up to {} bytes", text.len())),
        ),
        Value::Array(_) => (
            Held::Matcher("{ max_len = 0 }".to_owned()),
            Some("the empty list, and the empty text too".to_owned()),
        ),
        Value::Null => any("anything, because no matcher matches null alone"),
        Value::Object(_) => any("anything, because no matcher matches an empty object alone"),
    }
}

fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// A basic string of TOML in printable ASCII: what it holds cannot be mistaken for something else,
/// and steers no terminal.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            ' '..='~' => out.push(c),
            c if u32::from(c) <= 0xffff => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => {
                let _ = write!(out, "\\U{:08X}", u32::from(c));
            }
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_leaf_is_pinned_and_what_is_wider_is_told() {
        let pinned = pin(&json!({
            "a/b": ["x", 2], "t": true, "n": null, "e": [], "o": {}, "s": "é\"\n"
        }))
        .unwrap();
        let text = pinned.toml("where");
        for line in [
            r#"where."/a~1b/0" = { equals = "x" }"#,
            r#"where."/a~1b/1" = { equals = 2 }"#,
            r#"where."/t" = { equals = true }"#,
            r#"where."/n" = { any = true }"#,
            r#"where."/e" = { max_len = 0 }"#,
            r#"where."/o" = { any = true }"#,
            r#"where."/s" = { equals = "\u00E9\"\u000A" }"#,
        ] {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
        let mut wider: Vec<_> = pinned.wider.iter().map(|(at, _)| at.as_str()).collect();
        wider.sort_unstable();
        assert_eq!(wider, ["/e", "/n", "/o"]);
    }

    #[test]
    fn what_has_too_many_leaves_is_not_pinned() {
        let many: Vec<usize> = (0..=MAX_POINTERS).collect();
        assert!(pin(&json!({ "a": many })).is_err());
        let deep = "k".repeat(MAX_PATTERN);
        assert!(pin(&json!({ deep: 1 })).is_err());
    }
}
