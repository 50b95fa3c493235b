//! Numbers of JSON by value: 1, 1.0 and 1e0 are one number. What a double may have rounded has no
//! value here, so that nothing is decided on a number that a runner might read differently.

use std::cmp::Ordering;
use std::fmt;

use serde_json::Number;

/// A number whose value is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Exact {
    /// An integer of i64 or u64, or a double without a fraction below 2^53.
    Int(i128),
    /// A double with a fraction: below 2^53 then.
    Frac(f64),
}

/// 2^53: from here on a double cannot tell neighbours apart.
const LIMIT: f64 = 9_007_199_254_740_992.0;
const LIMIT_INT: i128 = 1 << 53;

impl Exact {
    /// The value; `None` for integers beyond i64 and u64 and for doubles of 2^53 or more.
    pub(crate) fn of(number: &Number) -> Option<Exact> {
        if let Some(int) = number.as_i64() {
            return Some(Exact::Int(int.into()));
        }
        if let Some(int) = number.as_u64() {
            return Some(Exact::Int(int.into()));
        }
        number.as_f64().and_then(Exact::of_double)
    }

    /// The value of a double; `None` from 2^53 on, and for what is no number.
    pub(crate) fn of_double(double: f64) -> Option<Exact> {
        if !double.is_finite() || double.abs() >= LIMIT {
            None
        } else if double.fract() == 0.0 {
            // Below 2^53, so the cast is exact.
            Some(Exact::Int(double as i128))
        } else {
            Some(Exact::Frac(double))
        }
    }

    /// By value.
    pub(crate) fn compare(self, other: Exact) -> Ordering {
        match (self, other) {
            (Exact::Int(a), Exact::Int(b)) => a.cmp(&b),
            (Exact::Frac(a), Exact::Frac(b)) => a.total_cmp(&b),
            (Exact::Int(a), Exact::Frac(b)) => int_to_frac(a, b),
            (Exact::Frac(a), Exact::Int(b)) => int_to_frac(b, a).reverse(),
        }
    }
}

/// As JSON and TOML read it back.
impl fmt::Display for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exact::Int(int) => int.fmt(f),
            // The shortest that is read back as the same double; it has a point or an exponent.
            Exact::Frac(frac) => write!(f, "{frac:?}"),
        }
    }
}

fn int_to_frac(int: i128, frac: f64) -> Ordering {
    if int >= LIMIT_INT {
        Ordering::Greater
    } else if int <= -LIMIT_INT {
        Ordering::Less
    } else {
        // Within 2^53 the cast is exact.
        (int as f64).total_cmp(&frac)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(text: &str) -> Option<Exact> {
        Exact::of(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn one_number_has_one_value_however_it_is_written() {
        for same in ["1", "1.0", "1e0", "10e-1", "0.1e1"] {
            assert_eq!(exact(same), Some(Exact::Int(1)), "{same}");
        }
        assert_eq!(exact("-0"), exact("0"));
        assert_eq!(exact("-0.0"), exact("0"));
    }

    #[test]
    fn what_a_double_may_have_rounded_has_no_value() {
        assert_eq!(
            exact("18446744073709551615"),
            Some(Exact::Int(u64::MAX.into()))
        );
        for lost in [
            "18446744073709551616",
            "-9223372036854775809",
            "9007199254740992.0",
            "1e300",
        ] {
            assert_eq!(exact(lost), None, "{lost}");
        }
    }

    #[test]
    fn integers_and_fractions_are_ordered_together() {
        let rising = [
            "-9223372036854775808",
            "-1.5",
            "-1",
            "0",
            "0.5",
            "1",
            "1.5",
            "18446744073709551615",
        ];
        for (i, a) in rising.iter().enumerate() {
            for (j, b) in rising.iter().enumerate() {
                let order = exact(a).unwrap().compare(exact(b).unwrap());
                assert_eq!(order, i.cmp(&j), "{a} {b}");
            }
        }
    }
}
