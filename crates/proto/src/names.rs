//! Names whose alphabet and length were checked: a value of these types is valid because it exists.
//! The alphabets are those of DESIGN 4.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A name outside its alphabet or length. Carries the rule, never the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what} must match {pattern}")]
pub struct NameError {
    /// Which kind of name it was meant to be.
    pub what: &'static str,
    /// The pattern that it does not match.
    pub pattern: &'static str,
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $pattern:literal, $valid:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// The pattern that every value matches.
            pub const PATTERN: &'static str = $pattern;
            /// What [`NameError`] says.
            pub(crate) const RULE: &'static str = concat!($what, " must match ", $pattern);

            /// Checks and takes a name.
            ///
            /// # Errors
            /// [`NameError`] when it is outside [`Self::PATTERN`].
            pub fn new(name: impl AsRef<str>) -> Result<Self, NameError> {
                let name = name.as_ref();
                let valid: fn(&[u8]) -> bool = $valid;
                if valid(name.as_bytes()) {
                    Ok(Self(Arc::from(name)))
                } else {
                    Err(NameError { what: $what, pattern: $pattern })
                }
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({:?})", stringify!($name), &*self.0)
            }
        }

        impl FromStr for $name {
            type Err = NameError;
            fn from_str(name: &str) -> Result<Self, NameError> {
                Self::new(name)
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;
            fn try_from(name: String) -> Result<Self, NameError> {
                Self::new(name)
            }
        }

        impl TryFrom<&str> for $name {
            type Error = NameError;
            fn try_from(name: &str) -> Result<Self, NameError> {
                Self::new(name)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.as_str().to_owned()
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "pattern": $pattern })
            }
        }
    };
}

name!(
    /// One conversation, as its agent role calls it.
    SessionId,
    "a session",
    "^[A-Za-z0-9][A-Za-z0-9_.:@-]{0,127}$",
    |s| framed(s, 128, u8::is_ascii_alphanumeric, |b| {
        b.is_ascii_alphanumeric() || b"_.:@-".contains(b)
    })
);
name!(
    /// A tool, over all runner roles.
    ToolName,
    "a tool name",
    "^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$",
    |s| framed(s, 128, u8::is_ascii_alphanumeric, |b| {
        b.is_ascii_alphanumeric() || b"._/-".contains(b)
    })
);
name!(
    /// A role, as the configuration names it.
    RoleName,
    "a role",
    "^[a-z][a-z0-9-]{0,31}$",
    |s| framed(s, 32, u8::is_ascii_lowercase, |b| {
        b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-'
    })
);
name!(
    /// A grant, unique in the ruleset.
    GrantId,
    "a grant",
    "^[A-Za-z0-9._-]{1,64}$",
    |s| framed(s, 64, identifier, identifier)
);
name!(
    /// One approval; a standing approval is named likewise.
    ApprovalId,
    "an approval",
    "^[A-Za-z0-9._-]{1,64}$",
    |s| framed(s, 64, identifier, identifier)
);
name!(
    /// A SHA-256 in lower-case hexadecimal.
    Digest,
    "a digest",
    "^[0-9a-f]{64}$",
    |s| s.len() == 64 && s.iter().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(b))
);

impl Digest {
    /// The hexadecimal writing of 32 bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let text: String = bytes
            .iter()
            .flat_map(|b| [HEX[usize::from(b >> 4)], HEX[usize::from(b & 15)]])
            .map(char::from)
            .collect();
        Self(Arc::from(text))
    }
}

fn identifier(b: &u8) -> bool {
    b.is_ascii_alphanumeric() || b"._-".contains(b)
}

fn framed(name: &[u8], max: usize, first: fn(&u8) -> bool, rest: fn(&u8) -> bool) -> bool {
    name.len() <= max && name.first().is_some_and(first) && name.iter().all(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_1_to_128_bytes_and_starts_alphanumeric() {
        assert!(SessionId::new("mm-thread-42").is_ok());
        assert!(SessionId::new("a".repeat(128)).is_ok());
        for bad in ["", "-a", ".a", "a b", "a/b", "ä", &"a".repeat(129)] {
            assert!(SessionId::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_role_is_lower_case() {
        assert!(RoleName::new("rb-files").is_ok());
        for bad in ["", "A", "1a", "a_b", &"a".repeat(33)] {
            assert!(RoleName::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_digest_is_written_in_lower_case_hexadecimal() {
        let digest = Digest::from_bytes([0xa5; 32]);
        assert_eq!(digest.as_str(), "a5".repeat(32));
        assert_eq!(Digest::new(digest.as_str()), Ok(digest));
    }
}
