//! Strict JSON: one value, no duplicate keys at any depth, bounded depth and count, and no number
//! that two readers would read differently. For a frame that is not written canonically, and for
//! the arguments of tools.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::grammar::{self, Limits, Listener, Stop};

/// The most arrays and objects inside each other.
pub const MAX_DEPTH: usize = 64;
/// The most values in one text, of any type, the outermost being the first.
pub const MAX_VALUES: usize = 65_536;

/// Why a text is not strict JSON. Carries the rule, never a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct JsonError(pub &'static str);

impl JsonError {
    /// Not one value in the grammar of RFC 8259.
    pub const GRAMMAR: JsonError = JsonError("not one JSON value");
    /// Deeper than [`MAX_DEPTH`].
    pub const DEPTH: JsonError = JsonError("more than 64 levels");
    /// More than [`MAX_VALUES`].
    pub const VALUES: JsonError = JsonError("more than 65536 values");
    /// An integer that 64 bits do not hold, or a number that is no finite double.
    pub const NUMBER: JsonError = JsonError("a number is out of range");
    /// A key stands twice in one object.
    pub const DUPLICATE: JsonError = JsonError("a key stands twice in one object");
    /// An escape for one half of a surrogate pair.
    pub const SURROGATE: JsonError = JsonError("a string holds half of a surrogate pair");
}

/// Parses `text` strictly: one RFC 8259 value, no duplicate keys at any depth, within
/// [`MAX_DEPTH`] and [`MAX_VALUES`]; integers fit `u64` or `i64`, other numbers a finite `f64`.
///
/// # Errors
/// [`JsonError`] with the rule that was broken.
pub fn parse(text: &str) -> Result<Value, JsonError> {
    let mut numbers = Numbers { in_range: true };
    let limits = Limits {
        depth: MAX_DEPTH,
        values: MAX_VALUES,
    };
    grammar::walk(text, limits, &mut numbers).map_err(|stop| match stop {
        Stop::Grammar(_) => JsonError::GRAMMAR,
        Stop::Depth => JsonError::DEPTH,
        Stop::Values => JsonError::VALUES,
    })?;
    if !numbers.in_range {
        return Err(JsonError::NUMBER);
    }
    let duplicate = Cell::new(false);
    let mut deserializer = serde_json::Deserializer::from_str(text);
    // Grammar and numbers are known to be good: what is left are surrogates.
    Strict {
        duplicate: &duplicate,
    }
    .deserialize(&mut deserializer)
    .map_err(|_| {
        if duplicate.get() {
            JsonError::DUPLICATE
        } else {
            JsonError::SURROGATE
        }
    })
}

/// Sees whether every number is one that is held exactly (integers) or at all (the rest).
struct Numbers {
    in_range: bool,
}

impl<'a> Listener<'a> for Numbers {
    fn key(&mut self, _: usize, _: &'a [u8]) {}

    fn scalar(&mut self, _: usize, raw: &'a [u8]) {
        if raw
            .first()
            .is_some_and(|b| b.is_ascii_digit() || *b == b'-')
        {
            self.in_range &= std::str::from_utf8(raw).is_ok_and(number_in_range);
        }
    }
}

fn number_in_range(text: &str) -> bool {
    if text.contains(['.', 'e', 'E']) {
        text.parse::<f64>().is_ok_and(f64::is_finite)
    } else {
        text.parse::<u64>().is_ok() || text.parse::<i64>().is_ok()
    }
}

/// Builds a [`Value`] and refuses a key that stands twice.
#[derive(Clone, Copy)]
struct Strict<'a> {
    duplicate: &'a Cell<bool>,
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, d: D) -> Result<Value, D::Error> {
        d.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("not finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            if object.contains_key(&key) {
                self.duplicate.set(true);
                return Err(A::Error::custom("duplicate"));
            }
            object.insert(key, members.next_value_seed(self)?);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_text_is_read_as_serde_json_reads_it() {
        for good in [
            "null",
            "[true,false,\"a\\u00e9\\ud83d\\ude00\",-1,1.5,18446744073709551615]",
            " {\"a\":{\"a\":[{\"a\":1}]},\"b\":{\"a\":2}} ",
            "-9223372036854775808",
            "1e308",
            "-0",
        ] {
            let value: Value = serde_json::from_str(good).unwrap();
            assert_eq!(parse(good), Ok(value), "{good}");
        }
    }

    #[test]
    fn each_rule_has_its_own_text() {
        let rules = [
            ("[1", JsonError::GRAMMAR),
            ("1 1", JsonError::GRAMMAR),
            ("{\"a\":1,\"a\":1}", JsonError::DUPLICATE),
            ("[{\"b\":{\"a\":1,\"\\u0061\":2}}]", JsonError::DUPLICATE),
            ("18446744073709551616", JsonError::NUMBER),
            ("[-9223372036854775809]", JsonError::NUMBER),
            ("1e400", JsonError::NUMBER),
            ("\"\\ud800\"", JsonError::SURROGATE),
            ("{\"\\udc00\":1}", JsonError::SURROGATE),
        ];
        for (text, rule) in rules {
            assert_eq!(parse(text), Err(rule), "{text}");
        }
    }

    #[test]
    fn depth_and_count_are_bounded_at_their_limits() {
        let nested = |n: usize| "[".repeat(n) + &"]".repeat(n);
        assert!(parse(&nested(MAX_DEPTH)).is_ok());
        assert_eq!(parse(&nested(MAX_DEPTH + 1)), Err(JsonError::DEPTH));
        let many = |n: usize| format!("[{}]", vec!["0"; n - 1].join(","));
        assert!(parse(&many(MAX_VALUES)).is_ok());
        assert_eq!(parse(&many(MAX_VALUES + 1)), Err(JsonError::VALUES));
        assert_eq!(
            JsonError::DEPTH.to_string(),
            format!("more than {MAX_DEPTH} levels")
        );
        assert_eq!(
            JsonError::VALUES.to_string(),
            format!("more than {MAX_VALUES} values")
        );
    }

    #[test]
    fn keys_keep_no_order_that_counts() {
        assert_eq!(parse("{\"b\":1,\"a\":2}"), Ok(json!({"a": 2, "b": 1})));
    }
}
