//! A record on a line: its number, when, what, about whom, and what it says.

use std::fmt::Write as _;

use client::proto::Timestamp;
use serde_json::Value;

use super::why::at as written;
use crate::printable;

/// What a line shows last, where a record has it.
const TOLD: &[&str] = &[
    "grant", "reason", "approval", "answer", "scope", "outcome", "label", "from", "into", "close",
    "owner", "ruleset", "count", "since", "roles", "uid", "by",
];

/// The role, the session and the call that a record is about.
pub(crate) fn whose(record: &Value) -> (&Value, &Value, &Value) {
    let call = &record["call"];
    let (key, call) = if call["session"].is_object() {
        (&call["session"], &call["call"])
    } else if record["session"].is_object() {
        (&record["session"], call)
    } else if record["request"].is_object() {
        (&record["request"], &record["request"]["call"])
    } else {
        (record, &Value::Null)
    };
    (&key["role"], &key["session"], call)
}

/// The tool that it is about.
pub(crate) fn tool(record: &Value) -> &Value {
    ["tool", "request", "spec"]
        .into_iter()
        .map(|key| &record[key])
        .map(|held| match held {
            Value::Object(held) => held
                .get("tool")
                .or(held.get("name"))
                .unwrap_or(&Value::Null),
            plain => plain,
        })
        .find(|tool| tool.is_string())
        .unwrap_or(&Value::Null)
}

/// When it was.
pub(crate) fn at(record: &Value) -> Timestamp {
    time(&record["at"])
        .or(time(&record["request"]["created"]))
        .unwrap_or_default()
}

fn time(value: &Value) -> Option<Timestamp> {
    Timestamp::from_millis(value.as_u64()?).ok()
}

/// A row of the store.
pub(crate) fn line(row: &Value) -> String {
    let record = &row["record"];
    let (role, session, call) = whose(record);
    let name = |value: &Value| value.as_str().map(printable::text).unwrap_or_default();
    let mut out = String::new();
    // Writing into a String does not fail.
    let _ = write!(
        out,
        "{:>6}  {}  {:<10}",
        row["id"].as_u64().unwrap_or_default(),
        written(at(record)),
        name(&record["record"])
    );
    for (mark, value) in [("  ", role), ("/", session)] {
        if value.is_string() {
            let _ = write!(out, "{mark}{}", name(value));
        }
    }
    if call.is_u64() {
        let _ = write!(out, "#{call}");
    }
    if tool(record).is_string() {
        let _ = write!(out, "  {}", name(tool(record)));
    }
    for key in TOLD {
        let value = &record[*key];
        let told = match value {
            Value::Null => continue,
            Value::String(text) if text.is_empty() => continue,
            Value::String(text) => printable::text(text),
            Value::Object(of) if *key == "by" => {
                let uid = of.get("uid").unwrap_or(&Value::Null);
                format!("{}({uid})", name(of.get("role").unwrap_or(&Value::Null)))
            }
            Value::Object(of) if *key == "label" => {
                let untrusted = of.get("untrusted") == Some(&Value::Bool(true));
                let class = name(of.get("class").unwrap_or(&Value::Null));
                class + if untrusted { ",untrusted" } else { "" }
            }
            value if *key == "since" => time(value).map(written).unwrap_or_default(),
            other => printable::json(&other.to_string()),
        };
        let _ = write!(out, "  {key}={told}");
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_who_did_what_and_nothing_steers_the_terminal() {
        let row = serde_json::json!({"id": 7, "content": null, "record": {
            "record": "lowered", "at": 1_800_000_000_000_u64, "role": "bot", "session": "s",
            "label": {"class": "public", "untrusted": false},
            "by": {"role": "admin", "uid": 0}, "reason": "read\u{1b}[2J it",
        }});
        assert_eq!(
            line(&row),
            "     7  2027-01-15T08:00:00Z  lowered     bot/s  reason=read\\u{1b}[2J it  \
             label=public  by=admin(0)\n"
        );
    }

    #[test]
    fn requests_over_the_rate_are_told_with_their_role_number_and_time() {
        let row = serde_json::json!({"id": 8, "content": null, "record": {
            "record": "refused", "at": 1_800_000_060_000_u64, "role": "bot",
            "since": 1_800_000_000_000_u64, "count": 4711,
        }});
        assert_eq!(
            line(&row),
            "     8  2027-01-15T08:01:00Z  refused     bot  count=4711  since=2027-01-15T08:00:00Z\n"
        );
    }

    #[test]
    fn a_call_is_found_wherever_a_record_has_it() {
        let key = serde_json::json!({"role": "bot", "session": "s"});
        for record in [
            serde_json::json!({"call": {"session": key, "call": 3}, "tool": "t"}),
            serde_json::json!({"session": key, "call": 3, "tool": "t"}),
            serde_json::json!({"request": {"role": "bot", "session": "s", "call": 3, "tool": "t"}}),
        ] {
            let (role, session, call) = whose(&record);
            assert_eq!(
                (role, session, call),
                (&"bot".into(), &"s".into(), &3.into())
            );
            assert_eq!(tool(&record), "t");
        }
    }
}
