//! `docs/schemas/<kind>.json` says what the types say: the whole envelope with that kind's body.
//! After a change of the types, rewrite them with
//! `RB_WRITE_SCHEMAS=1 cargo test -p e2e --test schemas`.

#![cfg(test)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proto::{ApprovalId, Digest, Envelope, GrantId, RoleName, SessionId, ToolName};
use serde_json::{Map, Value, json};

const REWRITE: &str = "RB_WRITE_SCHEMAS";

#[test]
fn the_schemas_in_docs_are_those_of_the_types() {
    let folder = root().join("docs/schemas");
    let expected: BTreeMap<String, String> = schemas()
        .into_iter()
        .map(|(kind, schema)| (format!("{kind}.json"), text(&schema)))
        .collect();
    if std::env::var_os(REWRITE).is_some() {
        fs::create_dir_all(&folder).unwrap();
        for name in present(&folder)
            .into_keys()
            .filter(|name| !expected.contains_key(name))
        {
            fs::remove_file(folder.join(name)).unwrap();
        }
        for (name, text) in &expected {
            fs::write(folder.join(name), text).unwrap();
        }
    }
    let present = present(&folder);
    let names: BTreeSet<&String> = expected.keys().chain(present.keys()).collect();
    let drifted: Vec<_> = names
        .into_iter()
        .filter(|name| expected.get(*name) != present.get(*name))
        .collect();
    assert!(
        drifted.is_empty(),
        "docs/schemas differs from the types in {drifted:?}; rewrite it with \
         `{REWRITE}=1 cargo test -p e2e --test schemas` and look at the difference"
    );
}

#[test]
fn every_object_of_a_schema_is_closed_and_needs_all_its_fields() {
    for (kind, schema) in schemas() {
        each_object(&schema, &mut |object| {
            if object.get("type") != Some(&json!("object")) {
                return;
            }
            assert_eq!(
                object.get("additionalProperties"),
                Some(&json!(false)),
                "{kind}: {object:?}"
            );
            let fields = object.get("properties").and_then(Value::as_object);
            let fields: BTreeSet<&str> = fields.into_iter().flatten().map(|(k, _)| &**k).collect();
            let required = object.get("required").and_then(Value::as_array);
            let required = required
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            assert_eq!(fields, required, "{kind}: {object:?}");
        });
    }
}

#[test]
fn what_is_taken_fits_its_schema() {
    for folder in ["accept", "wire"] {
        for (name, frame) in fixtures(folder) {
            let value: Value = serde_json::from_slice(&frame).unwrap();
            assert!(fits_one(&value), "{folder}/{name}");
        }
    }
}

/// A schema judges values, where a key stands once: it cannot see that one was written twice.
#[test]
fn what_is_refused_fits_no_schema() {
    let mut looked_at = 0;
    for (name, frame) in fixtures("reject") {
        let Ok(value) = serde_json::from_slice::<Value>(&frame) else {
            continue;
        };
        if name.contains("-twice") {
            continue;
        }
        looked_at += 1;
        assert!(!fits_one(&value), "{name}");
    }
    assert!(looked_at > 100, "{looked_at}");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn present(folder: &Path) -> BTreeMap<String, String> {
    let Ok(entries) = fs::read_dir(folder) else {
        return BTreeMap::new();
    };
    entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect()
}

fn fixtures(folder: &str) -> BTreeMap<String, Vec<u8>> {
    fs::read_dir(root().join("crates/proto/tests/fixtures").join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .map(|path| {
            (
                path.file_name().unwrap().to_str().unwrap().to_owned(),
                fs::read(path).unwrap(),
            )
        })
        .collect()
}

fn text(schema: &Value) -> String {
    serde_json::to_string_pretty(schema).unwrap() + "\n"
}

/// The schema of each kind: that of the envelope, its `msg` cut down to the kind.
fn schemas() -> BTreeMap<String, Value> {
    let mut whole = schemars::schema_for!(Envelope).to_value();
    settle(&mut whole);
    whole["properties"]["v"] = json!({ "const": proto::PROTOCOL_VERSION });
    let messages = whole["$defs"]["Message"]["oneOf"]
        .as_array()
        .unwrap()
        .clone();
    messages
        .into_iter()
        .map(|message| {
            let kind = message["properties"]["kind"]["const"]
                .as_str()
                .unwrap()
                .to_owned();
            let mut schema = whole.clone();
            schema["title"] = kind.as_str().into();
            schema["description"] = message["description"].clone();
            schema["properties"]["msg"] = message;
            keep_what_is_used(&mut schema);
            schema.sort_all_objects();
            (kind, schema)
        })
        .collect()
}

/// States the upper ends that the types have, and takes the links of rustdoc out of descriptions.
fn settle(value: &mut Value) {
    match value {
        Value::Object(object) => {
            if let Some(Value::String(description)) = object.get_mut("description") {
                *description = description
                    .replace("[`", "`")
                    .replace("`]", "`")
                    .replace("`crate::", "`")
                    .replace("`Self::", "`");
            }
            let maximum = match object.get("format").and_then(Value::as_str) {
                Some("uint64") => Some(u64::MAX),
                Some("uint32") => Some(u64::from(u32::MAX)),
                _ => None,
            };
            if let Some(maximum) = maximum {
                object.insert("maximum".to_owned(), maximum.into());
            }
            object.values_mut().for_each(settle);
        }
        Value::Array(items) => items.iter_mut().for_each(settle),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Drops the definitions that nothing refers to.
fn keep_what_is_used(schema: &mut Value) {
    let definitions = schema["$defs"].take();
    let mut used = Map::new();
    let mut open = references(schema);
    while let Some(name) = open.pop() {
        if !used.contains_key(&name) {
            open.extend(references(&definitions[&name]));
            used.insert(name.clone(), definitions[&name].clone());
        }
    }
    let schema = schema.as_object_mut().unwrap();
    schema.remove("$defs");
    if !used.is_empty() {
        schema.insert("$defs".to_owned(), used.into());
    }
}

fn references(schema: &Value) -> Vec<String> {
    let mut names = Vec::new();
    each_object(schema, &mut |object| {
        if let Some(Value::String(reference)) = object.get("$ref") {
            names.push(reference.strip_prefix("#/$defs/").unwrap().to_owned());
        }
    });
    names
}

fn each_object(value: &Value, look: &mut impl FnMut(&Map<String, Value>)) {
    match value {
        Value::Object(object) => {
            look(object);
            object.values().for_each(|member| each_object(member, look));
        }
        Value::Array(items) => items.iter().for_each(|item| each_object(item, look)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn fits_one(value: &Value) -> bool {
    schemas()
        .values()
        .filter(|schema| fits(value, schema, &schema["$defs"]))
        .count()
        == 1
}

/// The part of JSON Schema that the generated schemas use; another keyword is a panic.
fn fits(value: &Value, schema: &Value, definitions: &Value) -> bool {
    let Value::Object(rules) = schema else {
        panic!("a schema that is no object: {schema}")
    };
    rules.iter().all(|(keyword, rule)| match keyword.as_str() {
        "$schema" | "$defs" | "title" | "description" | "format" | "required" => true,
        "$ref" => {
            let name = rule.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
            fits(value, &definitions[name], definitions)
        }
        "type" => has_type(value, rule.as_str().unwrap()),
        "const" => value == rule,
        "enum" => rule.as_array().unwrap().contains(value),
        "oneOf" => {
            let alternatives = rule.as_array().unwrap();
            alternatives
                .iter()
                .filter(|one| fits(value, one, definitions))
                .count()
                == 1
        }
        "minimum" => value.as_f64().unwrap_or(0.0) >= rule.as_f64().unwrap(),
        "maximum" => value.as_f64().is_none() || value.as_u64() <= rule.as_u64() && value.is_u64(),
        "pattern" => value
            .as_str()
            .is_none_or(|name| matches(rule.as_str().unwrap(), name)),
        "items" => value
            .as_array()
            .is_none_or(|items| items.iter().all(|i| fits(i, rule, definitions))),
        "properties" => value.as_object().is_none_or(|object| {
            let needed = rules.get("required").and_then(Value::as_array);
            needed
                .into_iter()
                .flatten()
                .all(|name| object.contains_key(name.as_str().unwrap()))
                && object.iter().all(|(name, member)| {
                    rule.get(name)
                        .is_none_or(|rule| fits(member, rule, definitions))
                })
        }),
        "additionalProperties" => value.as_object().is_none_or(|object| {
            let known = |name: &String| {
                rules
                    .get("properties")
                    .is_some_and(|p| p.get(name).is_some())
            };
            object.keys().all(known)
        }),
        other => panic!("the keyword {other} is not known here"),
    })
}

fn has_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        other => panic!("the type {other} is not known here"),
    }
}

/// The patterns are those of the names, whose own checks stand for them here.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern {
        SessionId::PATTERN => SessionId::new(name).is_ok(),
        ToolName::PATTERN => ToolName::new(name).is_ok(),
        RoleName::PATTERN => RoleName::new(name).is_ok(),
        GrantId::PATTERN => GrantId::new(name).is_ok() && ApprovalId::new(name).is_ok(),
        Digest::PATTERN => Digest::new(name).is_ok(),
        other => panic!("the pattern {other} is not known here"),
    }
}

#[test]
fn the_worked_frame_of_the_protocol_page_is_a_frame() {
    let page = include_str!("../docs/protocol.md");
    let frame = page
        .lines()
        .find(|line| line.starts_with(r#"{"v":1,"id":7,"#))
        .unwrap();
    let envelope = proto::decode(frame.as_bytes()).unwrap();
    assert_eq!(proto::encode(&envelope), frame.as_bytes());
    let [_, _, high, low] = u32::try_from(frame.len()).unwrap().to_be_bytes();
    for told in [
        format!("00 00 {high:02x} {low:02x}  7b 22 76"),
        format!("└ {}, big-endian u32", frame.len()),
    ] {
        assert!(
            page.contains(&told),
            "docs/protocol.md does not say `{told}`"
        );
    }
}
