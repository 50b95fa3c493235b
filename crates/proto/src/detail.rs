//! What an error says about a frame: the path of a field and the rule that it broke. Every word
//! comes from here or from our own types, never from the frame: the peer that reads an error, and
//! whoever reads a log, must not be shown another's content.

use std::fmt::Write;

use serde_json::Value;
use serde_path_to_error::{Path, Segment};

use crate::names::{ApprovalId, Digest, GrantId, RoleName, SessionId, ToolName};
use crate::numbers::Timestamp;

/// Says what a typed decoding refused.
pub(crate) fn of_serde(path: &Path, error: &serde_json::Error) -> String {
    let message = error.to_string();
    let rule = rule(error, &message);
    let mut detail = known_path(path);
    if !detail.is_empty() {
        detail.push_str(": ");
    }
    detail.push_str(rule);
    if rule == MISSING
        && let Some(field) = quoted_field(&message)
    {
        let _ = write!(detail, " `{field}`");
    }
    detail
}

/// Says where two values differ: `understood` is what the typed decoding made of `sent`.
pub(crate) fn of_difference(understood: &Value, sent: &Value) -> String {
    let mut path = String::new();
    let rule = difference(understood, sent, &mut path);
    if path.is_empty() {
        rule.to_owned()
    } else {
        format!("{path}: {rule}")
    }
}

const MISSING: &str = "a field is missing:";
const TYPE: &str = "another type is expected";

/// Serde's messages carry values, so they are only told apart by how they begin.
fn rule(error: &serde_json::Error, message: &str) -> &'static str {
    const BEGINNINGS: [(&str, &str); 7] = [
        ("missing field `", MISSING),
        ("unknown field `", "a field that is not known here"),
        ("duplicate field `", "a field stands there twice"),
        ("unknown variant `", "a word that is not known here"),
        ("invalid type: ", TYPE),
        ("invalid value: ", "out of range"),
        ("invalid length ", "another length is expected"),
    ];
    const OWN: [&str; 7] = [
        SessionId::RULE,
        ToolName::RULE,
        RoleName::RULE,
        GrantId::RULE,
        ApprovalId::RULE,
        Digest::RULE,
        Timestamp::RULE,
    ];
    if error.is_syntax() {
        // The grammar was checked before: what is left is what the grammar lets through.
        let number = message.starts_with("number out of range");
        return if number {
            "out of range"
        } else {
            "a string holds half of a surrogate pair"
        };
    }
    let beginning = BEGINNINGS
        .iter()
        .find(|(beginning, _)| message.starts_with(beginning));
    let own = || OWN.into_iter().find(|own| message.starts_with(own));
    beginning
        .map(|(_, rule)| *rule)
        .or_else(own)
        .unwrap_or("not what is expected here")
}

/// The name between the first two backticks, if it is one of ours.
fn quoted_field(message: &str) -> Option<&'static str> {
    message.split('`').nth(1).and_then(field)
}

/// Our own writing of a field name; None for any other text.
fn field(name: &str) -> Option<&'static str> {
    FIELDS.binary_search(&name).ok().map(|index| FIELDS[index])
}

/// The path as far as it consists of our own names and of indices.
fn known_path(path: &Path) -> String {
    let mut known = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => push_index(&mut known, *index),
            Segment::Map { key } => match field(key) {
                Some(name) => push_name(&mut known, name),
                None => break,
            },
            // The variant's name could be the peer's word.
            Segment::Enum { .. } => {}
            Segment::Unknown => break,
        }
    }
    known
}

fn push_name(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

fn push_index(path: &mut String, index: usize) {
    let _ = write!(path, "[{index}]");
}

/// The rule at the first difference; `path` is left at its place. Keys are taken from
/// `understood`, which our own types wrote.
fn difference(understood: &Value, sent: &Value, path: &mut String) -> &'static str {
    match (understood, sent) {
        (Value::Object(ours), Value::Object(theirs)) => {
            for (key, our) in ours {
                let their = theirs.get(key);
                if their == Some(our) {
                    continue;
                }
                push_name(path, field(key).unwrap_or_default());
                return their.map_or("a field is missing", |their| difference(our, their, path));
            }
            "a field that is not known here"
        }
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            let mut pairs = ours.iter().zip(theirs).enumerate();
            match pairs.find(|(_, (our, their))| our != their) {
                Some((index, (our, their))) => {
                    push_index(path, index);
                    difference(our, their, path)
                }
                None => TYPE,
            }
        }
        _ => TYPE,
    }
}

/// Every field name of the wire, sorted. A test holds it against the types.
const FIELDS: &[&str] = &[
    "accepted",
    "access",
    "answer",
    "approval",
    "approvals",
    "arguments",
    "at",
    "body",
    "by",
    "call",
    "calls",
    "changes",
    "class",
    "close",
    "closed",
    "code",
    "comment",
    "connections",
    "content",
    "created",
    "deadline",
    "decided",
    "decision",
    "definition",
    "description",
    "detail",
    "digest",
    "done",
    "draining",
    "dropped_replies",
    "effect",
    "effects",
    "egress",
    "elapsed_us",
    "end",
    "event",
    "expires",
    "features",
    "final",
    "from",
    "grant",
    "grants",
    "head",
    "held",
    "id",
    "in_flight",
    "input_schema",
    "into",
    "judgement",
    "kind",
    "label",
    "label_scope",
    "last_used",
    "max_frame",
    "max_in_flight",
    "max_uses",
    "message",
    "missed",
    "msg",
    "name",
    "note",
    "notes",
    "now",
    "op",
    "outcome",
    "owner",
    "pending",
    "pointers",
    "quorum",
    "raised_by",
    "reason",
    "records",
    "refused",
    "role",
    "role_kind",
    "roles",
    "ruleset",
    "runner",
    "runtime",
    "scope",
    "scopes",
    "served_by",
    "session",
    "sessions",
    "settled",
    "software",
    "spec",
    "standing",
    "started",
    "state",
    "status",
    "stored_bytes",
    "tool",
    "tools",
    "total",
    "trace",
    "truncated",
    "ttl",
    "untrusted",
    "uses",
    "uses_left",
    "v",
    "version",
    "waiting_bytes",
    "warnings",
    "watermark",
    "went_into",
    "what",
    "why",
    "words",
];

#[cfg(all(test, feature = "schema"))]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn collect(schema: &Value, names: &mut BTreeSet<String>) {
        match schema {
            Value::Object(object) => {
                if let Some(Value::Object(fields)) = object.get("properties") {
                    names.extend(fields.keys().cloned());
                }
                object.values().for_each(|member| collect(member, names));
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, names)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    #[test]
    fn the_known_fields_are_those_of_the_types_sorted() {
        let mut names = BTreeSet::new();
        collect(
            &schemars::schema_for!(crate::Envelope).to_value(),
            &mut names,
        );
        assert_eq!(FIELDS.to_vec(), names.into_iter().collect::<Vec<_>>());
    }
}
