//! No error text carries anything from the frame.

use proto::{decode, json};
use serde_json::{Map, Value};

use crate::fixtures::{Fixture, folder};

const CANARY: &str = "canary-4b1d";

fn everything() -> impl Iterator<Item = Fixture> {
    ["reject", "accept", "wire"].into_iter().flat_map(folder)
}

/// Decodes, and looks at every text that an error can become.
fn no_canary(frame: &[u8], name: &str) {
    let Err(error) = decode(frame) else { return };
    for text in [error.to_string(), format!("{error:?}"), error.detail] {
        assert!(
            !text.contains("canary"),
            "{name}: {text}\n{}",
            String::from_utf8_lossy(frame)
        );
    }
}

#[test]
fn a_canary_as_value_or_key_anywhere_is_in_no_error() {
    for fixture in everything() {
        // What is no JSON is mutated as bytes, below.
        let Ok(value) = serde_json::from_slice::<Value>(&fixture.frame) else {
            continue;
        };
        let mut places = 0;
        while let Some(mutants) = mutate(&value, &mut places.clone()) {
            for mutant in mutants {
                no_canary(mutant.to_string().as_bytes(), &fixture.name);
            }
            places += 1;
        }
        assert!(places > 0, "{}", fixture.name);
    }
}

/// The values that come of `value` with a canary at its place number `place`, counted down on the
/// way; None if it has fewer places.
fn mutate(value: &Value, place: &mut usize) -> Option<Vec<Value>> {
    if *place == 0 {
        return Some(at_this_place(value));
    }
    *place -= 1;
    match value {
        Value::Object(object) => object.iter().find_map(|(key, member)| {
            let mutants = mutate(member, place)?;
            Some(
                mutants
                    .into_iter()
                    .map(|mutant| with(object, key, mutant))
                    .collect(),
            )
        }),
        Value::Array(array) => array.iter().enumerate().find_map(|(index, item)| {
            let mutants = mutate(item, place)?;
            let replaced = mutants.into_iter().map(|mutant| {
                let mut array = array.clone();
                array[index] = mutant;
                Value::Array(array)
            });
            Some(replaced.collect())
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn at_this_place(value: &Value) -> Vec<Value> {
    let canary = || Value::from(CANARY);
    let object = |value: Value| Value::Object(Map::from_iter([(CANARY.to_owned(), value)]));
    let mut mutants = vec![
        canary(),
        vec![canary()].into(),
        object(canary()),
        object(Value::Null),
    ];
    match value {
        Value::String(text) => mutants.push(format!("{text}{CANARY}").into()),
        Value::Array(array) => {
            mutants.push(Value::Array(
                array.iter().cloned().chain([canary()]).collect(),
            ));
        }
        Value::Object(members) => {
            mutants.push(with(members, CANARY, canary()));
            for (key, member) in members {
                let mut renamed = members.clone();
                renamed.remove(key);
                mutants.push(with(&renamed, CANARY, member.clone()));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    mutants
}

fn with(object: &Map<String, Value>, key: &str, member: Value) -> Value {
    let mut object = object.clone();
    object.insert(key.to_owned(), member);
    Value::Object(object)
}

#[test]
fn a_canary_between_any_two_bytes_is_in_no_error() {
    let insertions = [
        CANARY.to_owned(),
        format!("\"{CANARY}\""),
        format!("\"{CANARY}\":1,"),
        format!("{{\"{CANARY}\":\"{CANARY}\"}},"),
    ];
    for fixture in everything() {
        for place in 0..=fixture.frame.len() {
            let (before, behind) = fixture.frame.split_at(place);
            for insertion in &insertions {
                let frame = [before, insertion.as_bytes(), behind].concat();
                no_canary(&frame, &fixture.name);
            }
        }
    }
}

#[test]
fn strict_json_says_nothing_of_what_it_read() {
    for text in [
        "{\"canary\":1,\"canary\":1}",
        "\"canary\\ud800\"",
        "canary",
        "[\"canary\"",
        "{\"canary\":1e999}",
    ] {
        let error = json::parse(text).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("canary"), "{text}");
    }
}
