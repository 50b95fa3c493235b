//! Labels: how confidential what a session has seen is, and whether a stranger could have written it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How confidential data is, least first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DataClass {
    /// May be seen by anyone.
    #[default]
    Public,
    /// Of the house.
    Internal,
    /// Of some in the house.
    Confidential,
    /// Keys, and what is like them.
    Secret,
}

impl DataClass {
    /// Every class, least first.
    pub const ALL: [DataClass; 4] = [
        DataClass::Public,
        DataClass::Internal,
        DataClass::Confidential,
        DataClass::Secret,
    ];

    /// The class as the wire and the configuration write it.
    pub fn as_str(self) -> &'static str {
        match self {
            DataClass::Public => "public",
            DataClass::Internal => "internal",
            DataClass::Confidential => "confidential",
            DataClass::Secret => "secret",
        }
    }
}

impl fmt::Display for DataClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A word that is no data class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a data class is one of public, internal, confidential, secret")]
pub struct ClassError;

impl FromStr for DataClass {
    type Err = ClassError;
    fn from_str(text: &str) -> Result<Self, ClassError> {
        DataClass::ALL
            .into_iter()
            .find(|class| class.as_str() == text)
            .ok_or(ClassError)
    }
}

/// What a session has seen so far. Labels only go up, by [`Label::join`] (DESIGN 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Label {
    /// The highest class seen.
    pub class: DataClass,
    /// Whether something seen could have been written by a stranger.
    pub untrusted: bool,
}

impl Label {
    /// The label of a new session: public and trusted.
    pub const BOTTOM: Label = Label {
        class: DataClass::Public,
        untrusted: false,
    };
    /// The highest label: what nobody declared counts as this.
    pub const TOP: Label = Label {
        class: DataClass::Secret,
        untrusted: true,
    };

    /// The least label that is at least both.
    #[must_use]
    pub fn join(self, other: Label) -> Label {
        Label {
            class: self.class.max(other.class),
            untrusted: self.untrusted || other.untrusted,
        }
    }

    /// The greatest label that is at most both.
    #[must_use]
    pub fn meet(self, other: Label) -> Label {
        Label {
            class: self.class.min(other.class),
            untrusted: self.untrusted && other.untrusted,
        }
    }

    /// Whether this label is at most `other`.
    pub fn is_within(self, other: Label) -> bool {
        self.join(other) == other
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, {}",
            self.class,
            if self.untrusted {
                "untrusted"
            } else {
                "trusted"
            }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> impl Iterator<Item = Label> {
        DataClass::ALL
            .into_iter()
            .flat_map(|class| [false, true].map(|untrusted| Label { class, untrusted }))
    }

    #[test]
    fn join_is_the_least_upper_bound() {
        for a in all() {
            for b in all() {
                let join = a.join(b);
                assert!(a.is_within(join) && b.is_within(join));
                for c in all().filter(|c| a.is_within(*c) && b.is_within(*c)) {
                    assert!(join.is_within(c), "{a} join {b}");
                }
            }
        }
    }
}
