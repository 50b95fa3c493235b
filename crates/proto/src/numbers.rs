//! The numbers of the wire: call ids and times.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A tool request's number within its session; should grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct CallId(pub u64);

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Unix milliseconds, at most 2^53-1, so that every JSON reader holds it exactly (DESIGN 4).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(try_from = "u64", into = "u64")]
pub struct Timestamp(u64);

/// A time over 2^53-1 milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}", Timestamp::RULE)]
pub struct TimeError;

impl Timestamp {
    /// The largest time: 2^53-1.
    pub const MAX: Timestamp = Timestamp((1 << 53) - 1);

    /// What [`TimeError`] says.
    pub(crate) const RULE: &'static str = "a time must be at most 9007199254740991 ms";

    /// Checks and takes Unix milliseconds.
    ///
    /// # Errors
    /// [`TimeError`] over [`Self::MAX`].
    pub fn from_millis(millis: u64) -> Result<Self, TimeError> {
        if millis <= Self::MAX.0 {
            Ok(Self(millis))
        } else {
            Err(TimeError)
        }
    }

    /// Unix milliseconds.
    pub fn millis(self) -> u64 {
        self.0
    }

    /// This time and `millis` more, at most [`Self::MAX`].
    #[must_use]
    pub fn plus(self, millis: u64) -> Self {
        Self(self.0.saturating_add(millis).min(Self::MAX.0))
    }

    /// Milliseconds since `earlier`; 0 if it is later.
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl TryFrom<u64> for Timestamp {
    type Error = TimeError;
    fn try_from(millis: u64) -> Result<Self, TimeError> {
        Self::from_millis(millis)
    }
}

impl From<Timestamp> for u64 {
    fn from(time: Timestamp) -> u64 {
        time.0
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Timestamp {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Timestamp".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "integer", "minimum": 0, "maximum": Timestamp::MAX.0,
            "description": "Unix milliseconds"
        })
    }
}
