//! What can be said of all arguments at once: whether whatever one `where` matches, another applies
//! to or is not meant for. Each answer is a proof; where there is none, the answer is `Unsure`.

use serde_json::{Number, Value};

use crate::grant::{Grant, Word};
use crate::matcher::{Constraint, Constraints, Fit, Matcher, Scalar};
use crate::number::Exact;
use crate::path;

/// How a restriction stands to all the arguments that a grant permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    /// It applies to all of them.
    All,
    /// It applies to none of them.
    None,
    /// It may apply to some and not to others.
    Unsure,
}

impl Over {
    /// For names of two kinds: both must be meant.
    pub(crate) fn and(self, other: Over) -> Over {
        match (self, other) {
            (Over::None, _) | (_, Over::None) => Over::None,
            (Over::All, Over::All) => Over::All,
            (Over::Unsure, _) | (_, Over::Unsure) => Over::Unsure,
        }
    }
}

/// How `restriction` (an ask or a deny) stands to the arguments that `grant` permits.
pub(crate) fn over(grant: &Grant, restriction: &Grant) -> Over {
    let within = Within::of(grant);
    let excused = match &restriction.unless {
        Some(unless) => within.all(unless),
        None => Sure::Differs,
    };
    if excused == Sure::Matches {
        return Over::None;
    }
    let applies = match &restriction.constraints {
        Some(constraints) => within.all(constraints),
        None => Sure::Matches,
    };
    match (applies, excused) {
        (Sure::Differs, _) => Over::None,
        // An `unless` that cannot be evaluated excuses nothing.
        (Sure::Matches | Sure::NotDiffers, Sure::Differs | Sure::NotMatches) => Over::All,
        (
            Sure::Matches | Sure::NotDiffers | Sure::NotMatches | Sure::Unsure,
            Sure::Matches | Sure::NotDiffers | Sure::Differs | Sure::NotMatches | Sure::Unsure,
        ) => Over::Unsure,
    }
}

/// Whether no arguments at all can match the `where` of an allow.
pub(crate) fn is_contradictory(grant: &Grant) -> bool {
    let Some(Constraints(all)) = &grant.constraints else {
        return false;
    };
    grant.effect == Word::Allow
        && all.iter().any(|upper| {
            is_no_object_at_root(upper)
                || all
                    .iter()
                    .any(|lower| !lower.optional && cannot_hold(upper, lower))
        })
}

/// The arguments are an object, and of those only `any` matches.
fn is_no_object_at_root(constraint: &Constraint) -> bool {
    constraint.pointer.as_str().is_empty() && constraint.matcher != Matcher::Any
}

/// Whether nothing that `upper` matches can have a value at the pointer of `lower`, below it.
fn cannot_hold(upper: &Constraint, lower: &Constraint) -> bool {
    let below = lower.pointer.below(&upper.pointer);
    let Some(next) = below.and_then(|rest| rest.first()) else {
        return false;
    };
    let index = next.parse::<u64>().ok();
    match &upper.matcher {
        Matcher::Any => false,
        Matcher::MaxLen(most) => index.is_none_or(|index| index >= *most),
        Matcher::Each(_) | Matcher::Some(_) => index.is_none(),
        Matcher::OneOf(_)
        | Matcher::Glob(_)
        | Matcher::Regex(_)
        | Matcher::Under(_)
        | Matcher::Host(_)
        | Matcher::Range { .. } => true,
    }
}

/// What is certain of how some arguments, of which only a part is known, stand to a matcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sure {
    Matches,
    /// It matches or cannot be evaluated.
    NotDiffers,
    Differs,
    /// It differs or cannot be evaluated.
    NotMatches,
    Unsure,
}

/// The arguments that a grant permits.
struct Within<'g> {
    constraints: &'g [Constraint],
    /// Whether there is nothing besides what the constraints name.
    only: bool,
}

impl<'g> Within<'g> {
    fn of(grant: &'g Grant) -> Self {
        match &grant.constraints {
            Some(constraints) => Within {
                constraints: &constraints.0,
                only: grant.only,
            },
            None => Within {
                constraints: &[],
                only: false,
            },
        }
    }

    /// All must match: one that differs settles it.
    fn all(&self, other: &Constraints) -> Sure {
        let mut sum = Sure::Matches;
        for constraint in &other.0 {
            sum = match (sum, self.one(constraint)) {
                (_, Sure::Differs) => return Sure::Differs,
                (sum, Sure::Matches) => sum,
                (Sure::Matches | Sure::NotDiffers, Sure::NotDiffers) => Sure::NotDiffers,
                (_, Sure::NotMatches) | (Sure::NotMatches, _) => Sure::NotMatches,
                (_, Sure::NotDiffers | Sure::Unsure) => Sure::Unsure,
            };
        }
        sum
    }

    fn one(&self, wanted: &Constraint) -> Sure {
        if self.is_absent(wanted) {
            return if wanted.optional {
                Sure::Matches
            } else {
                Sure::Differs
            };
        }
        let present = self.is_present(wanted);
        if wanted.matcher == Matcher::Any && (wanted.optional || present) {
            return Sure::Matches;
        }
        let same = |known: &&Constraint| known.pointer == wanted.pointer;
        let Some(known) = self.constraints.iter().find(same) else {
            return Sure::Unsure;
        };
        let value = relation(&known.matcher, &wanted.matcher);
        match (present, wanted.optional) {
            (true, _) => value,
            // Where nothing stands it matches.
            (false, true) => match value {
                Sure::Matches | Sure::NotDiffers => value,
                Sure::Differs | Sure::NotMatches | Sure::Unsure => Sure::Unsure,
            },
            // Where nothing stands it differs.
            (false, false) => match value {
                Sure::Differs | Sure::NotMatches => value,
                Sure::Matches | Sure::NotDiffers | Sure::Unsure => Sure::Unsure,
            },
        }
    }

    /// Whether something must stand at the pointer: it, or something below it, is demanded.
    fn is_present(&self, wanted: &Constraint) -> bool {
        self.constraints
            .iter()
            .any(|known| !known.optional && known.pointer.below(&wanted.pointer).is_some())
    }

    /// Whether nothing can stand at the pointer: no named pointer lies at, above or below it, so
    /// that any leaf there would not be covered.
    fn is_absent(&self, wanted: &Constraint) -> bool {
        let related = |known: &Constraint| {
            known.pointer.below(&wanted.pointer).is_some()
                || wanted.pointer.below(&known.pointer).is_some()
        };
        self.only && !self.constraints.iter().any(related)
    }
}

/// How every value that `known` matches stands to `wanted`.
fn relation(known: &Matcher, wanted: &Matcher) -> Sure {
    if known == wanted || *wanted == Matcher::Any {
        return Sure::Matches;
    }
    match (known, wanted) {
        (Matcher::OneOf(scalars), wanted) => each_of(scalars, wanted),
        (Matcher::Under(inner), Matcher::Under(outer)) => {
            if path::is_under(inner, outer) {
                Sure::Matches
            } else if path::is_under(outer, inner) {
                Sure::Unsure
            } else {
                Sure::Differs
            }
        }
        (Matcher::Host(host), wanted) if host.is_exact() => match wanted {
            Matcher::Host(wanted) => sure(wanted.matches(&format!("https://{host}/"))),
            _ => kinds(known, wanted),
        },
        (
            Matcher::Range { min, max },
            Matcher::Range {
                min: low,
                max: high,
            },
        ) => ranges((*min, *max), (*low, *high)),
        (Matcher::MaxLen(most), Matcher::MaxLen(limit)) if most <= limit => Sure::Matches,
        (Matcher::Each(known), Matcher::Each(wanted) | Matcher::Some(wanted))
        | (Matcher::Some(known), Matcher::Some(wanted)) => match relation(known, wanted) {
            sure @ (Sure::Matches | Sure::NotDiffers) => sure,
            Sure::Differs | Sure::NotMatches | Sure::Unsure => Sure::Unsure,
        },
        (known, wanted) => kinds(known, wanted),
    }
}

fn sure(matches: Option<bool>) -> Sure {
    match matches {
        Some(true) => Sure::Matches,
        Some(false) => Sure::Differs,
        None => Sure::Unsure,
    }
}

/// A few values, all of which can be tried.
fn each_of(scalars: &[Scalar], wanted: &Matcher) -> Sure {
    let mut fits = Vec::new();
    for scalar in scalars {
        let value = match scalar {
            Scalar::Text(text) => Value::from(text.as_str()),
            Scalar::Bool(flag) => Value::from(*flag),
            Scalar::Number(number) => match json_number(*number) {
                Some(number) => Value::Number(number),
                None => return Sure::Unsure,
            },
        };
        fits.push(wanted.fit(&value));
    }
    let all = |allowed: &[Fit]| fits.iter().all(|fit| allowed.contains(fit));
    if all(&[Fit::Matches]) {
        Sure::Matches
    } else if all(&[Fit::Differs]) {
        Sure::Differs
    } else if all(&[Fit::Matches, Fit::Unclear]) {
        Sure::NotDiffers
    } else if all(&[Fit::Differs, Fit::Unclear]) {
        Sure::NotMatches
    } else {
        Sure::Unsure
    }
}

fn json_number(number: Exact) -> Option<Number> {
    match number {
        Exact::Int(int) => i64::try_from(int)
            .map(Number::from)
            .or_else(|_| u64::try_from(int).map(Number::from))
            .ok(),
        Exact::Frac(frac) => Number::from_f64(frac),
    }
}

type Ends = (Option<Exact>, Option<Exact>);

fn ranges(known: Ends, wanted: Ends) -> Sure {
    let at_least = |a: Option<Exact>, b: Option<Exact>| match (a, b) {
        (_, None) => true,
        (Some(a), Some(b)) => a.compare(b).is_ge(),
        (None, Some(_)) => false,
    };
    let at_most = |a: Option<Exact>, b: Option<Exact>| match (a, b) {
        (_, None) => true,
        (Some(a), Some(b)) => a.compare(b).is_le(),
        (None, Some(_)) => false,
    };
    let over =
        |a: Option<Exact>, b: Option<Exact>| a.zip(b).is_some_and(|(a, b)| a.compare(b).is_gt());
    if at_least(known.0, wanted.0) && at_most(known.1, wanted.1) {
        Sure::Matches
    } else if over(known.0, wanted.1) || over(wanted.0, known.1) {
        Sure::Differs
    } else {
        Sure::Unsure
    }
}

/// Values of types that `wanted` does not take cannot be evaluated by it.
fn kinds(known: &Matcher, wanted: &Matcher) -> Sure {
    let (Some(have), Some(takes)) = (kind(known), kind(wanted)) else {
        return Sure::Unsure;
    };
    if have == takes {
        Sure::Unsure
    } else {
        Sure::NotDiffers
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    List,
}

/// The one type of value that a matcher evaluates.
fn kind(matcher: &Matcher) -> Option<Kind> {
    match matcher {
        Matcher::Glob(_) | Matcher::Regex(_) | Matcher::Under(_) | Matcher::Host(_) => {
            Some(Kind::Text)
        }
        Matcher::Range { .. } => Some(Kind::Number),
        Matcher::Each(_) | Matcher::Some(_) => Some(Kind::List),
        Matcher::OneOf(_) | Matcher::MaxLen(_) | Matcher::Any => None,
    }
}

#[cfg(test)]
mod tests {
    use regex::Regex;
    use serde_json::json;

    use super::*;
    use crate::glob::ValueGlob;
    use crate::host::HostPattern;

    fn matchers() -> Vec<Matcher> {
        let text = |text: &str| Scalar::Text(text.to_owned());
        let int = |int: i128| Some(Exact::Int(int));
        let host = |text| Matcher::Host(HostPattern::new(text).unwrap());
        let plain = vec![
            Matcher::OneOf(vec![text("/a/b")]),
            Matcher::OneOf(vec![text("/a/b"), text("https://x.org/")]),
            Matcher::OneOf(vec![text("x"), Scalar::Bool(true)]),
            Matcher::OneOf(vec![
                Scalar::Number(Exact::Int(2)),
                Scalar::Number(Exact::Frac(0.5)),
            ]),
            Matcher::Glob(ValueGlob::new("/a/*").unwrap()),
            Matcher::Glob(ValueGlob::new("*").unwrap()),
            Matcher::Regex(Regex::new(r"\A(?:.*b)\z").unwrap()),
            Matcher::Under("/a".to_owned()),
            Matcher::Under("/a/b".to_owned()),
            Matcher::Under("/c".to_owned()),
            host("x.org"),
            host("*.x.org"),
            host("y.x.org"),
            Matcher::Range {
                min: int(0),
                max: int(3),
            },
            Matcher::Range {
                min: None,
                max: int(2),
            },
            Matcher::Range {
                min: int(4),
                max: None,
            },
            Matcher::MaxLen(0),
            Matcher::MaxLen(4),
            Matcher::Any,
        ];
        let each = plain
            .iter()
            .cloned()
            .map(|inner| Matcher::Each(Box::new(inner)));
        let some = plain
            .iter()
            .cloned()
            .map(|inner| Matcher::Some(Box::new(inner)));
        plain.iter().cloned().chain(each).chain(some).collect()
    }

    fn values() -> Vec<Value> {
        let plain = [
            json!("/a/b"),
            json!("/a"),
            json!("/c"),
            json!("x"),
            json!(""),
            json!("/a/../b"),
            json!("https://x.org/"),
            json!("https://y.x.org/p"),
            json!("https://u@x.org/"),
            json!(0),
            json!(2),
            json!(0.5),
            json!(3),
            json!(7),
            json!(1e300),
            json!(true),
            Value::Null,
        ];
        let lists = plain
            .iter()
            .flat_map(|a| plain.iter().map(move |b| json!([a, b])));
        plain
            .iter()
            .cloned()
            .chain(lists)
            .chain([json!([]), json!({})])
            .collect()
    }

    #[test]
    fn what_is_said_of_one_matcher_within_another_holds_for_every_value() {
        let (matchers, values) = (matchers(), values());
        let mut certain = 0;
        for (known, wanted) in matchers
            .iter()
            .flat_map(|a| matchers.iter().map(move |b| (a, b)))
        {
            let said = relation(known, wanted);
            certain += usize::from(said != Sure::Unsure);
            for value in values
                .iter()
                .filter(|value| known.fit(value) == Fit::Matches)
            {
                let fit = wanted.fit(value);
                let holds = match said {
                    Sure::Matches => fit == Fit::Matches,
                    Sure::NotDiffers => fit != Fit::Differs,
                    Sure::Differs => fit == Fit::Differs,
                    Sure::NotMatches => fit != Fit::Matches,
                    Sure::Unsure => true,
                };
                assert!(holds, "{known:?} {wanted:?} {said:?} {value}");
            }
        }
        assert!(certain > 800, "little is said: {certain}");
    }
}
