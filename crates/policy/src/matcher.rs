//! Matchers on arguments (DESIGN 6): each looks at one value, and either it matches, or it differs,
//! or the value cannot be evaluated. The last counts against permission and for restriction.

use std::cmp::Ordering;

use regex::Regex;
use serde_json::Value;

use crate::glob::ValueGlob;
use crate::host::HostPattern;
use crate::number::Exact;
use crate::path;
use crate::pointer::{self, Pointer};

/// How a value stands to a matcher, or the arguments to a `where`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// It matches.
    Matches,
    /// It does not.
    Differs,
    /// It is of another type, or not such that all would read it alike.
    Unclear,
}

/// A value that `equals` and `one_of` compare with.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Scalar {
    Text(String),
    Number(Exact),
    Bool(bool),
}

/// One matcher; `optional` is a [`Constraint`]'s.
#[derive(Debug, Clone)]
pub(crate) enum Matcher {
    /// `equals` (with one) and `one_of`.
    OneOf(Vec<Scalar>),
    Glob(ValueGlob),
    /// Anchored at both ends.
    Regex(Regex),
    /// A clean absolute folder.
    Under(String),
    Host(HostPattern),
    /// Both ends belong to it.
    Range {
        min: Option<Exact>,
        max: Option<Exact>,
    },
    /// UTF-8 bytes of a string, or elements of an array.
    MaxLen(u64),
    Any,
    Each(Box<Matcher>),
    Some(Box<Matcher>),
}

impl Matcher {
    /// How a value that is there stands to this matcher.
    pub(crate) fn fit(&self, value: &Value) -> Fit {
        match self {
            Matcher::OneOf(scalars) => one_of(scalars, value),
            Matcher::Glob(glob) => text(value, |text| glob.matches(text)),
            Matcher::Regex(regex) => text(value, |text| Some(regex.is_match(text))),
            Matcher::Under(folder) => text(value, |text| {
                path::is_clean_absolute(text).then(|| path::is_under(text, folder))
            }),
            Matcher::Host(host) => text(value, |text| host.matches(text)),
            Matcher::Range { min, max } => range(*min, *max, value),
            Matcher::MaxLen(most) => max_len(*most, value),
            Matcher::Any => Fit::Matches,
            Matcher::Each(inner) => elements(value, |all| each(inner, all)),
            Matcher::Some(inner) => elements(value, |all| some(inner, all)),
        }
    }
}

/// Equal matchers match the same values; unequal ones may.
impl PartialEq for Matcher {
    fn eq(&self, other: &Matcher) -> bool {
        match (self, other) {
            (Matcher::OneOf(a), Matcher::OneOf(b)) => a == b,
            (Matcher::Glob(a), Matcher::Glob(b)) => a.as_str() == b.as_str(),
            (Matcher::Regex(a), Matcher::Regex(b)) => a.as_str() == b.as_str(),
            (Matcher::Under(a), Matcher::Under(b)) => a == b,
            (Matcher::Host(a), Matcher::Host(b)) => a == b,
            (
                Matcher::Range { min, max },
                Matcher::Range {
                    min: low,
                    max: high,
                },
            ) => (min, max) == (low, high),
            (Matcher::MaxLen(a), Matcher::MaxLen(b)) => a == b,
            (Matcher::Any, Matcher::Any) => true,
            (Matcher::Each(a), Matcher::Each(b)) | (Matcher::Some(a), Matcher::Some(b)) => a == b,
            (
                Matcher::OneOf(_)
                | Matcher::Glob(_)
                | Matcher::Regex(_)
                | Matcher::Under(_)
                | Matcher::Host(_)
                | Matcher::Range { .. }
                | Matcher::MaxLen(_)
                | Matcher::Any
                | Matcher::Each(_)
                | Matcher::Some(_),
                _,
            ) => false,
        }
    }
}

/// A pointer and what must stand there.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Constraint {
    pub(crate) pointer: Pointer,
    /// Whether nothing at all may stand there too.
    pub(crate) optional: bool,
    pub(crate) matcher: Matcher,
}

impl Constraint {
    pub(crate) fn fit(&self, arguments: &Value) -> Fit {
        match self.pointer.resolve(arguments) {
            Some(value) => self.matcher.fit(value),
            None if self.optional => Fit::Matches,
            None => Fit::Differs,
        }
    }
}

/// A `where` or an `unless`: never empty.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Constraints(pub(crate) Vec<Constraint>);

impl Constraints {
    /// All must match: one that differs settles it, else one that is unclear does.
    pub(crate) fn fit(&self, arguments: &Value) -> Fit {
        all(self.0.iter().map(|constraint| constraint.fit(arguments)))
    }

    /// The constraint that [`Constraints::fit`] is not `Matches` for: the first that differs, else
    /// the first that is unclear.
    pub(crate) fn misfit(&self, arguments: &Value) -> Option<(&Constraint, Fit)> {
        let find = |fit| {
            let found = self.0.iter().find(|one| one.fit(arguments) == fit);
            found.map(|constraint| (constraint, fit))
        };
        find(Fit::Differs).or_else(|| find(Fit::Unclear))
    }

    /// Whether every leaf of the arguments lies at or below a pointer that is named here.
    pub(crate) fn cover(&self, arguments: &Value) -> bool {
        pointer::cover(
            self.0.iter().map(|constraint| &constraint.pointer),
            arguments,
        )
    }

    /// The pointers, in the order of their text.
    pub(crate) fn pointers(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|constraint| constraint.pointer.as_str())
    }
}

fn all(fits: impl Iterator<Item = Fit>) -> Fit {
    let mut sum = Fit::Matches;
    for fit in fits {
        match fit {
            Fit::Matches => {}
            Fit::Differs => return Fit::Differs,
            Fit::Unclear => sum = Fit::Unclear,
        }
    }
    sum
}

fn decided(matches: Option<bool>) -> Fit {
    match matches {
        Some(true) => Fit::Matches,
        Some(false) => Fit::Differs,
        None => Fit::Unclear,
    }
}

fn text(value: &Value, judge: impl FnOnce(&str) -> Option<bool>) -> Fit {
    decided(value.as_str().and_then(judge))
}

fn elements(value: &Value, judge: impl FnOnce(&[Value]) -> Fit) -> Fit {
    value.as_array().map_or(Fit::Unclear, |all| judge(all))
}

fn each(inner: &Matcher, elements: &[Value]) -> Fit {
    if elements.is_empty() {
        Fit::Differs
    } else {
        all(elements.iter().map(|e| inner.fit(e)))
    }
}

fn some(inner: &Matcher, elements: &[Value]) -> Fit {
    let mut sum = Fit::Differs;
    for element in elements {
        match inner.fit(element) {
            Fit::Matches => return Fit::Matches,
            Fit::Differs => {}
            Fit::Unclear => sum = Fit::Unclear,
        }
    }
    sum
}

/// A value of a type that none of the scalars has cannot be evaluated.
fn one_of(scalars: &[Scalar], value: &Value) -> Fit {
    let mut comparable = false;
    for scalar in scalars {
        let equal = match (scalar, value) {
            (Scalar::Text(a), Value::String(b)) => a == b,
            (Scalar::Bool(a), Value::Bool(b)) => a == b,
            (Scalar::Number(a), Value::Number(b)) => match Exact::of(b) {
                Some(b) => a.compare(b) == Ordering::Equal,
                None => continue,
            },
            (Scalar::Text(_) | Scalar::Bool(_) | Scalar::Number(_), _) => continue,
        };
        if equal {
            return Fit::Matches;
        }
        comparable = true;
    }
    if comparable {
        Fit::Differs
    } else {
        Fit::Unclear
    }
}

fn range(min: Option<Exact>, max: Option<Exact>, value: &Value) -> Fit {
    let Some(number) = value.as_number().and_then(Exact::of) else {
        return Fit::Unclear;
    };
    let enough = min.is_none_or(|min| number.compare(min) != Ordering::Less);
    let not_too_much = max.is_none_or(|max| number.compare(max) != Ordering::Greater);
    decided(Some(enough && not_too_much))
}

fn max_len(most: u64, value: &Value) -> Fit {
    let len = match value {
        Value::String(text) => text.len(),
        Value::Array(elements) => elements.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return Fit::Unclear,
    };
    decided(Some(u64::try_from(len).is_ok_and(|len| len <= most)))
}
