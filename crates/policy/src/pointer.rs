//! JSON Pointers (RFC 6901), read once; and whether a set of them covers a whole value.

use serde_json::Value;

/// A pointer that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pointer {
    text: String,
    tokens: Vec<String>,
}

impl Pointer {
    /// Reads a pointer: `""`, or parts that each begin with `/`; `~` only as `~0` and `~1`.
    pub(crate) fn new(text: &str) -> Result<Pointer, &'static str> {
        let mut tokens = Vec::new();
        if !text.is_empty() {
            let Some(rest) = text.strip_prefix('/') else {
                return Err("a JSON Pointer begins with `/`");
            };
            for part in rest.split('/') {
                let plain = part.replace("~0", "").replace("~1", "");
                if plain.contains('~') {
                    return Err(
                        "in a JSON Pointer `~` is written `~0`, and `/` inside a name `~1`",
                    );
                }
                tokens.push(part.replace("~1", "/").replace("~0", "~"));
            }
        }
        Ok(Pointer {
            text: text.to_owned(),
            tokens,
        })
    }

    /// As it was written.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// The parts by which this pointer goes on from `above`: none for the same pointer, `None` if it
    /// does not lie at or below it.
    pub(crate) fn below(&self, above: &Pointer) -> Option<&[String]> {
        self.tokens.strip_prefix(above.tokens.as_slice())
    }

    /// What stands there; `None`: it is absent.
    pub(crate) fn resolve<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        let mut here = value;
        for token in &self.tokens {
            here = match here {
                Value::Object(fields) => fields.get(token)?,
                Value::Array(elements) => elements.get(index(token)?)?,
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
            };
        }
        Some(here)
    }
}

/// An element's number: digits without a leading zero, so that one element has one pointer.
fn index(token: &str) -> Option<usize> {
    let digits = token.bytes().all(|b| b.is_ascii_digit());
    if !digits || (token.len() > 1 && token.starts_with('0')) {
        None
    } else {
        token.parse().ok()
    }
}

/// Whether every leaf of `value` lies at or below one of the pointers (64 at most). A leaf is a
/// scalar, or an empty object or array; the empty object as a whole has none.
pub(crate) fn cover<'p>(
    pointers: impl Iterator<Item = &'p Pointer> + Clone,
    value: &Value,
) -> bool {
    if value.as_object().is_some_and(serde_json::Map::is_empty) {
        return true;
    }
    covered(&pointers, value, 0, u64::MAX)
}

/// `active` has a bit for each pointer of which the first `depth` parts led here.
fn covered<'p>(
    pointers: &(impl Iterator<Item = &'p Pointer> + Clone),
    value: &Value,
    depth: usize,
    active: u64,
) -> bool {
    let alive = || {
        pointers
            .clone()
            .enumerate()
            .filter(|(i, _)| active & bit(*i) != 0)
    };
    if alive().any(|(_, pointer)| pointer.tokens.len() == depth) {
        return true;
    }
    let below = |is: &dyn Fn(&str) -> bool| {
        alive().fold(0, |next, (i, pointer)| match pointer.tokens.get(depth) {
            Some(token) if is(token) => next | bit(i),
            Some(_) | None => next,
        })
    };
    match value {
        Value::Object(fields) if !fields.is_empty() => fields.iter().all(|(key, field)| {
            let next = below(&|token| token == key);
            next != 0 && covered(pointers, field, depth + 1, next)
        }),
        Value::Array(elements) if !elements.is_empty() => {
            elements.iter().enumerate().all(|(place, element)| {
                let next = below(&|token| index(token) == Some(place));
                next != 0 && covered(pointers, element, depth + 1, next)
            })
        }
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Object(_)
        | Value::Array(_) => false,
    }
}

fn bit(place: usize) -> u64 {
    u32::try_from(place)
        .ok()
        .and_then(|place| 1_u64.checked_shl(place))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn covers(pointers: &[&str], value: Value) -> bool {
        let pointers: Vec<_> = pointers.iter().map(|p| Pointer::new(p).unwrap()).collect();
        cover(pointers.iter(), &value)
    }

    #[test]
    fn a_pointer_names_one_place() {
        let value = json!({"a/b": {"m~n": [10, 20]}, "": 1, "0": 2});
        let at = |p: &str| Pointer::new(p).unwrap().resolve(&value).cloned();
        assert_eq!(at("/a~1b/m~0n/1"), Some(json!(20)));
        assert_eq!(at("/"), Some(json!(1)));
        assert_eq!(at("/0"), Some(json!(2)));
        assert_eq!(at(""), Some(value.clone()));
        for absent in [
            "/a~1b/m~0n/01",
            "/a~1b/m~0n/-",
            "/a~1b/m~0n/2",
            "/a",
            "//x",
            "/0/0",
        ] {
            assert_eq!(at(absent), None, "{absent}");
        }
    }

    #[test]
    fn what_is_no_pointer_is_refused() {
        for bad in ["a", "a/b", "/~", "/~2", "/a~"] {
            assert!(Pointer::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_leaf_must_lie_at_or_below_a_pointer() {
        assert!(covers(&["/a"], json!({"a": 1})));
        assert!(covers(&["/a"], json!({"a": {"b": [1, {"c": 2}]}})));
        assert!(covers(&["/a", "/b"], json!({"a": 1, "b": 2})));
        assert!(covers(&["/a/0", "/a/1"], json!({"a": [1, 2]})));
        assert!(covers(&[""], json!({"a": 1})));
        assert!(covers(&["/a"], json!({})));
        assert!(!covers(&["/a"], json!({"a": 1, "b": 2})));
        assert!(!covers(&["/a/b"], json!({"a": {"b": 1, "c": 2}})));
        assert!(!covers(&["/a/0"], json!({"a": [1, 2]})));
        assert!(!covers(&["/a"], json!({"a": 1, "b": null})));
        assert!(!covers(&["/a"], json!({"a": 1, "b": {}})));
        assert!(!covers(&["/a"], json!({"a": 1, "b": []})));
        assert!(!covers(&["/a/b"], json!({"a": 1})));
        assert!(!covers(&["/a"], json!({"ab": 1})));
    }
}
