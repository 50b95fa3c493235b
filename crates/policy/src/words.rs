//! Matchers in words, for whoever reads why a grant fell. Patterns are the configuration's own; no
//! value of the arguments is ever told.

use std::time::{Duration, UNIX_EPOCH};

use proto::Timestamp;
use serde_json::Value;

use crate::matcher::{Constraint, Fit, Matcher, Scalar};

/// Characters of a pattern that are shown.
const MAX_SHOWN: usize = 80;
/// Values of a `one_of` that are shown.
const MAX_VALUES: usize = 4;
/// The last moment that a date can be written of: 9999-12-31T23:59:59Z.
pub(crate) const LAST_DATE: u64 = 253_402_300_799_000;

/// `2027-06-30T00:00:00Z`; what is past the year 9999 as its last second.
pub(crate) fn date(time: Timestamp) -> String {
    let millis = time.millis().min(LAST_DATE);
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_millis(millis)).to_string()
}

/// Why a constraint does not match: `wants "/path" to be under "/srv", and it is not`.
pub(crate) fn misfit(constraint: &Constraint, fit: Fit, arguments: &Value) -> String {
    let pointer = place(constraint.pointer.as_str());
    let wants = wants(&constraint.matcher);
    let why = match (constraint.pointer.resolve(arguments).is_some(), fit) {
        (false, _) => "nothing stands there".to_owned(),
        (true, Fit::Unclear) => format!(
            "what stands there cannot be judged, because it is not {}",
            judged(&constraint.matcher)
        ),
        (true, Fit::Differs | Fit::Matches) => "what stands there is something else".to_owned(),
    };
    let if_there = if constraint.optional {
        ", if it is there,"
    } else {
        ""
    };
    format!("wants {pointer}{if_there} {wants}, and {why}")
}

/// A JSON Pointer for a reader.
pub(crate) fn place(pointer: &str) -> String {
    if pointer.is_empty() {
        "the arguments as a whole".to_owned()
    } else {
        shown(pointer)
    }
}

fn wants(matcher: &Matcher) -> String {
    match matcher {
        Matcher::OneOf(scalars) => match scalars.as_slice() {
            [one] => format!("to equal {}", scalar(one)),
            many => {
                let first: Vec<_> = many.iter().take(MAX_VALUES).map(scalar).collect();
                let more = many.len().saturating_sub(MAX_VALUES);
                let rest = if more > 0 {
                    format!(" and {more} more")
                } else {
                    String::new()
                };
                format!("to be one of {}{rest}", first.join(", "))
            }
        },
        Matcher::Glob(glob) => format!("to match the glob {}", shown(glob.as_str())),
        Matcher::Regex(regex) => {
            let text = regex.as_str();
            let inner = text
                .strip_prefix(r"\A(?:")
                .and_then(|t| t.strip_suffix(r")\z"));
            format!("to match the regex {}", shown(inner.unwrap_or(text)))
        }
        Matcher::Under(folder) => format!("to be under {}", shown(folder)),
        Matcher::Host(host) => format!("to be a URL of the host {}", shown(&host.to_string())),
        Matcher::Range { min, max } => match (min, max) {
            (Some(min), Some(max)) => format!("to be from {min} to {max}"),
            (Some(min), None) => format!("to be {min} or more"),
            (None, Some(max)) => format!("to be {max} or less"),
            (None, None) => "to be a number".to_owned(),
        },
        Matcher::MaxLen(most) => format!("to have at most {most} bytes or elements"),
        Matcher::Any => "to be there".to_owned(),
        Matcher::Each(inner) => format!("to be a list of which each element has {}", wants(inner)),
        Matcher::Some(inner) => format!("to be a list of which some element has {}", wants(inner)),
    }
}

/// What a value must be before the matcher can judge it.
fn judged(matcher: &Matcher) -> String {
    match matcher {
        Matcher::OneOf(_) => "of a type that this compares with, or no exact number",
        Matcher::Glob(glob) => glob.wants(),
        Matcher::Regex(_) => "text",
        Matcher::Under(_) => "an absolute path without `.`, `..` and empty parts",
        Matcher::Host(_) => "a plain URL with a host and without a user",
        Matcher::Range { .. } => "a number that every reader reads alike",
        Matcher::MaxLen(_) => "text or a list",
        Matcher::Any => "anything",
        Matcher::Each(inner) | Matcher::Some(inner) => {
            return format!("a list whose elements are {}", judged(inner));
        }
    }
    .to_owned()
}

fn scalar(scalar: &Scalar) -> String {
    match scalar {
        Scalar::Text(text) => format!("{:?}", cut(text)),
        Scalar::Number(number) => number.to_string(),
        Scalar::Bool(flag) => flag.to_string(),
    }
}

fn shown(pattern: &str) -> String {
    format!("`{}`", cut(pattern))
}

fn cut(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}
