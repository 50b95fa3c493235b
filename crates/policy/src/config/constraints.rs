//! `where` and `unless`: JSON Pointers, and one matcher for each.

use regex::RegexBuilder;
use toml::de::DeValue;

use super::faults::{Faults, hint};
use super::section::{Node, Section, Text};
use crate::glob::ValueGlob;
use crate::host::HostPattern;
use crate::limits::{MAX_LIST, MAX_NESTING, MAX_PATTERN, MAX_POINTERS, MAX_REGEX_SIZE, MAX_USES};
use crate::matcher::{Constraint, Constraints, Matcher, Scalar};
use crate::number::Exact;
use crate::path;
use crate::pointer::Pointer;

const MATCHERS: [&str; 12] = [
    "equals", "one_of", "glob", "regex", "under", "host", "range", "max_len", "any", "optional",
    "each", "some",
];

/// Reads the constraints under a key; `None` if there are none, or they have faults.
pub(crate) fn read(grant: &Section<'_>, key: &str, faults: &mut Faults) -> Option<Constraints> {
    let node = grant.get(key)?;
    let Some(table) = node.get_ref().as_table() else {
        grant.mistyped(
            faults,
            key,
            node,
            "a table of JSON Pointers, such as { \"/path\" = { under = \"/srv\" } }",
        );
        return None;
    };
    if table.is_empty() || table.len() > MAX_POINTERS {
        let rule = format!("`{key}` names 1 to {MAX_POINTERS} pointers; without any, leave it out");
        grant.fault(faults, &node.span(), rule);
        return None;
    }
    // Its keys are free: each is a pointer.
    let keys: Vec<&str> = table.keys().map(|key| key.get_ref().as_ref()).collect();
    let section = Section::of(node, format!("{}, {key}", grant.place), &keys, faults)?;
    let read = |(pointer, node)| read_constraint(&section, pointer, node, faults);
    let constraints: Vec<Option<Constraint>> = section.entries().map(read).collect();
    constraints
        .into_iter()
        .collect::<Option<Vec<_>>>()
        .map(Constraints)
}

fn read_constraint(
    section: &Section<'_>,
    text: Text<'_>,
    node: &Node<'_>,
    faults: &mut Faults,
) -> Option<Constraint> {
    let place = format!("{} `{}`", section.place, text.text);
    let pointer = match Pointer::new(text.text) {
        _ if text.text.len() > MAX_PATTERN => Err("is too long"),
        pointer => pointer,
    };
    if let Err(rule) = pointer {
        faults.add(&text.span, format!("{place}: {rule}"));
    }
    let (name, value) = only_matcher(node, &place, faults)?;
    let (optional, matcher) = if name == "optional" {
        let place = format!("{place}, optional");
        let (name, value) = only_matcher(value, &place, faults)?;
        (true, read_matcher(&place, name, value, 1, faults))
    } else {
        (false, read_matcher(&place, name, value, 1, faults))
    };
    Some(Constraint {
        pointer: pointer.ok()?,
        optional,
        matcher: matcher?,
    })
}

/// A matcher is a table of one key.
fn only_matcher<'d>(
    node: &'d Node<'d>,
    place: &str,
    faults: &mut Faults,
) -> Option<(&'d str, &'d Node<'d>)> {
    let one = node.get_ref().as_table().filter(|table| table.len() == 1);
    let Some((key, value)) = one.and_then(|table| table.iter().next()) else {
        let rule = "one matcher stands here, such as { glob = \"*.txt\" } or { any = true }";
        faults.add(&node.span(), format!("{place}: {rule}"));
        return None;
    };
    Some((key.get_ref().as_ref(), value))
}

fn read_matcher(
    place: &str,
    name: &str,
    node: &Node<'_>,
    depth: usize,
    faults: &mut Faults,
) -> Option<Matcher> {
    if matches!(name, "each" | "some") {
        if depth >= MAX_NESTING {
            let rule = format!("{place}: matchers stand in one another at most {MAX_NESTING} deep");
            faults.add(&node.span(), rule);
            return None;
        }
        let place = format!("{place}, {name}");
        let (inner, value) = only_matcher(node, &place, faults)?;
        let inner = Box::new(read_matcher(&place, inner, value, depth + 1, faults)?);
        return Some(if name == "each" {
            Matcher::Each(inner)
        } else {
            Matcher::Some(inner)
        });
    }
    let read = match name {
        "equals" => scalar(node).map(|scalar| Matcher::OneOf(vec![scalar])),
        "one_of" => one_of(node),
        "glob" => pattern(node).and_then(|text| ValueGlob::new(text).map(Matcher::Glob)),
        "regex" => pattern(node).and_then(regex),
        "under" => pattern(node).and_then(under),
        "host" => pattern(node).and_then(|text| {
            HostPattern::new(text)
                .map(Matcher::Host)
                .map_err(str::to_owned)
        }),
        "range" => range(node),
        "max_len" => max_len(node),
        "any" if node.get_ref().as_bool() == Some(true) => Ok(Matcher::Any),
        "any" => Err("write `any = true`".to_owned()),
        "optional" => Err("stands at the outside alone: { optional = { … } }".to_owned()),
        unknown => Err(format!(
            "there is no such matcher{}",
            hint(unknown, MATCHERS)
        )),
    };
    match read {
        Ok(matcher) => Some(matcher),
        Err(rule) => {
            faults.add(&node.span(), format!("{place}, `{name}`: {rule}"));
            None
        }
    }
}

fn pattern<'d>(node: &'d Node<'d>) -> Result<&'d str, String> {
    let text = node.get_ref().as_str().ok_or("it must be a string")?;
    if text.len() > MAX_PATTERN {
        return Err(format!("it has at most {MAX_PATTERN} bytes"));
    }
    Ok(text)
}

fn scalar(node: &Node<'_>) -> Result<Scalar, String> {
    match node.get_ref() {
        DeValue::String(_) => pattern(node).map(|text| Scalar::Text(text.to_owned())),
        DeValue::Boolean(flag) => Ok(Scalar::Bool(*flag)),
        DeValue::Integer(_) | DeValue::Float(_) => number(node).map(Scalar::Number),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => {
            Err("it must be a string, a number or a boolean".to_owned())
        }
    }
}

fn one_of(node: &Node<'_>) -> Result<Matcher, String> {
    let array = node
        .get_ref()
        .as_array()
        .filter(|array| (1..=MAX_LIST).contains(&array.len()));
    let array = array.ok_or_else(|| format!("it must be a list of 1 to {MAX_LIST} values"))?;
    array
        .iter()
        .map(scalar)
        .collect::<Result<Vec<_>, _>>()
        .map(Matcher::OneOf)
}

fn number(node: &Node<'_>) -> Result<Exact, String> {
    let exact = match node.get_ref() {
        DeValue::Integer(integer) => i128::from_str_radix(integer.as_str(), integer.radix())
            .ok()
            .filter(|int| *int >= i64::MIN.into() && *int <= u64::MAX.into())
            .map(Exact::Int),
        DeValue::Float(float) => float.as_str().parse().ok().and_then(Exact::of_double),
        DeValue::String(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_)
        | DeValue::Array(_)
        | DeValue::Table(_) => return Err("it must be a number".to_owned()),
    };
    exact.ok_or_else(|| "it must be an integer of 64 bits, or a float below 2^53".to_owned())
}

/// The pattern is compiled alone too: only then do the anchors hold all of it.
fn regex(text: &str) -> Result<Matcher, String> {
    let build = |pattern: &str| {
        RegexBuilder::new(pattern)
            .size_limit(MAX_REGEX_SIZE)
            .build()
            .map_err(|fault| {
                if matches!(fault, regex::Error::CompiledTooBig(_)) {
                    return format!("compiled it is larger than {MAX_REGEX_SIZE} bytes");
                }
                let told = fault.to_string();
                let last = told.lines().last().unwrap_or_default();
                format!(
                    "it is no regular expression: {}",
                    last.trim_start_matches("error: ")
                )
            })
    };
    build(text)?;
    build(&format!(r"\A(?:{text})\z")).map(Matcher::Regex)
}

fn under(text: &str) -> Result<Matcher, String> {
    if !path::is_clean_absolute(text) {
        let rule =
            "it must be an absolute folder without `.`, `..`, empty parts or a `/` at its end";
        return Err(rule.to_owned());
    }
    Ok(Matcher::Under(text.to_owned()))
}

fn range(node: &Node<'_>) -> Result<Matcher, String> {
    const SHAPE: &str = "it is written { min = 1, max = 10 }, with one of them or both";
    let table = node.get_ref().as_table().ok_or(SHAPE)?;
    let known = |key: &str| matches!(key, "min" | "max");
    if table.is_empty() || !table.keys().all(|key| known(key.get_ref())) {
        return Err(SHAPE.to_owned());
    }
    let end = |key: &str| {
        let node = table
            .iter()
            .find(|(name, _)| name.get_ref() == key)
            .map(|(_, node)| node);
        node.map(number).transpose()
    };
    let (min, max) = (end("min")?, end("max")?);
    if min
        .zip(max)
        .is_some_and(|(min, max)| min.compare(max).is_gt())
    {
        return Err("`min` is more than `max`".to_owned());
    }
    Ok(Matcher::Range { min, max })
}

fn max_len(node: &Node<'_>) -> Result<Matcher, String> {
    let most = node
        .get_ref()
        .as_integer()
        .and_then(super::section::unsigned);
    match most.filter(|most| *most <= MAX_USES) {
        Some(most) => Ok(Matcher::MaxLen(most)),
        None => {
            Err("it must be a length: UTF-8 bytes of a string, or elements of a list".to_owned())
        }
    }
}

/// What stands under a key, as JSON: what a grant's hash is taken over.
pub(crate) fn written(node: Option<&Node<'_>>) -> serde_json::Value {
    let Some(node) = node else {
        return serde_json::Value::Null;
    };
    match node.get_ref() {
        DeValue::String(text) => text.as_ref().into(),
        DeValue::Boolean(flag) => (*flag).into(),
        // With its type, so that the integer 1 and the string "1" differ.
        DeValue::Integer(integer) => serde_json::json!({ "integer": integer.to_string() }),
        DeValue::Float(float) => serde_json::json!({ "float": float.as_str() }),
        DeValue::Datetime(date) => serde_json::json!({ "date": date.to_string() }),
        DeValue::Array(array) => array.iter().map(|node| written(Some(node))).collect(),
        DeValue::Table(table) => serde_json::Value::Object(
            table
                .iter()
                .map(|(key, node)| (key.get_ref().to_string(), written(Some(node))))
                .collect(),
        ),
    }
}
