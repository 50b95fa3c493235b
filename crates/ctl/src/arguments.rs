//! A tool's arguments, as one types them: a JSON object, or `key=text` and `key:=json` pairs.

use client::proto::json;
use serde_json::{Map, Value};

use crate::exit::Usage;

/// The JSON object that the words mean. A JSON object is passed on as it was written.
///
/// # Errors
/// [`Usage`] when they are neither an object nor pairs, or name a key twice.
pub fn parse(words: &[String]) -> Result<String, Usage> {
    if let [object] = words
        && object.trim_start().starts_with('{')
    {
        return match json::parse(object) {
            Ok(_) => Ok(object.clone()),
            Err(error) => Err(Usage(format!("the arguments are no JSON object: {error}"))),
        };
    }
    let mut object = Map::new();
    for word in words {
        let (key, value) = pair(word)?;
        if object.insert(key.to_owned(), value).is_some() {
            return Err(Usage(format!("the argument `{key}` is given twice")));
        }
    }
    Ok(Value::Object(object).to_string())
}

fn pair(word: &str) -> Result<(&str, Value), Usage> {
    let (key, text) = word.split_once('=').ok_or_else(|| {
        Usage(format!(
            "`{word}` is no argument: write KEY=TEXT, KEY:=JSON, or all of them as one JSON object"
        ))
    })?;
    match key.strip_suffix(':') {
        None => Ok((key, Value::from(text))),
        Some(key) => match json::parse(text) {
            Ok(value) => Ok((key, value)),
            Err(error) => Err(Usage(format!("the argument `{key}` is no JSON: {error}"))),
        },
    }
}
