//! One text for one value: what is hashed and what a standing approval pins.

use serde_json::Value;

/// JSON with the keys of objects in order and no spaces.
pub(crate) fn write(value: &Value, out: &mut String) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            out.push_str(&value.to_string());
        }
        Value::Array(elements) => {
            out.push('[');
            for (place, element) in elements.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                write(element, out);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            let mut keys: Vec<_> = fields.iter().collect();
            keys.sort_by_key(|(key, _)| key.as_str());
            out.push('{');
            for (place, (key, field)) in keys.into_iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                write(&Value::from(key.as_str()), out);
                out.push(':');
                write(field, out);
            }
            out.push('}');
        }
    }
}

/// As [`write()`], alone.
pub(crate) fn text(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

/// Whether every number in it is an integer that was read as it was written, so that equal texts
/// mean equal numbers for every reader.
pub(crate) fn is_exact(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => true,
        Value::Number(number) => number.is_i64() || number.is_u64(),
        Value::Array(elements) => elements.iter().all(is_exact),
        Value::Object(fields) => fields.values().all(is_exact),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spacing_and_order_do_not_show() {
        let a: Value =
            serde_json::from_str(r#"{"b": [1, {"d":2,"c":"\u0041"}], "a": null}"#).unwrap();
        assert_eq!(text(&a), r#"{"a":null,"b":[1,{"c":"A","d":2}]}"#);
    }

    #[test]
    fn a_double_is_not_exact() {
        for (json, exact) in [
            ("[1,-1,18446744073709551615]", true),
            ("1.0", false),
            ("{\"a\":[18446744073709551616]}", false),
        ] {
            assert_eq!(
                is_exact(&serde_json::from_str(json).unwrap()),
                exact,
                "{json}"
            );
        }
    }
}
