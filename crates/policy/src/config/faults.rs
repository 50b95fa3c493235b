//! Faults as they are found, by their place in the text; told in the order of the lines.

use std::ops::Range;

use super::{ConfigError, Fault};
use crate::limits::MAX_FAULTS;

/// Bytes of the text that something stands in.
pub(crate) type Span = Range<usize>;

/// The faults of one text.
#[derive(Debug)]
pub(crate) struct Faults {
    /// Where each line ends.
    ends: Vec<usize>,
    found: Vec<(usize, String)>,
}

impl Faults {
    pub(crate) fn new(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Faults {
            ends: ends.map(|(place, _)| place).collect(),
            found: Vec::new(),
        }
    }

    /// Notes a fault where `span` begins.
    pub(crate) fn add(&mut self, span: &Span, what: impl Into<String>) {
        self.found.push((self.line(span), what.into()));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The line that `span` begins in, from 1.
    pub(crate) fn line(&self, span: &Span) -> usize {
        self.ends.partition_point(|end| *end < span.start) + 1
    }

    /// All of them, up to [`MAX_FAULTS`], and how many more there are.
    pub(crate) fn into_error(mut self, file: &str) -> ConfigError {
        self.found.sort_by_key(|(line, _)| *line);
        let more = self.found.len().saturating_sub(MAX_FAULTS);
        self.found.truncate(MAX_FAULTS);
        if more > 0 {
            let last = self.found.last().map_or(1, |(line, _)| *line);
            self.found.push((last, format!("and {more} more faults")));
        }
        let fault = |(line, what)| Fault {
            file: file.to_owned(),
            line,
            what,
        };
        ConfigError {
            faults: self.found.into_iter().map(fault).collect(),
        }
    }
}

/// The candidate that a misspelt word most likely meant.
pub(crate) fn nearest<'c>(
    word: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    let word: Vec<char> = word.chars().take(64).collect();
    let allowed = (word.len() / 2).clamp(1, 3);
    candidates
        .into_iter()
        .map(|candidate| (distance(&word, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// `; did you mean …?`, or else `; one of …`.
pub(crate) fn hint<'c>(
    word: &str,
    candidates: impl IntoIterator<Item = &'c str> + Clone,
) -> String {
    if let Some(near) = nearest(word, candidates.clone()) {
        return format!("; did you mean `{near}`?");
    }
    let all: Vec<_> = candidates.into_iter().map(|c| format!("`{c}`")).collect();
    match all.len() {
        0 => String::new(),
        1..=12 => format!("; there is {}", all.join(", ")),
        _ => format!(
            "; there is {}, …",
            all.get(..12).unwrap_or_default().join(", ")
        ),
    }
}

/// Letters to add, drop or change (Levenshtein).
fn distance(a: &[char], b: &str) -> usize {
    let mut row: Vec<usize> = (0..=a.len()).collect();
    for (y, there) in b.chars().enumerate() {
        let mut diagonal = y;
        if let Some(first) = row.first_mut() {
            *first = y + 1;
        }
        for (x, here) in a.iter().enumerate() {
            let left = row.get(x).copied().unwrap_or(0);
            let Some(cell) = row.get_mut(x + 1) else {
                continue;
            };
            let changed = diagonal + usize::from(*here != there);
            diagonal = *cell;
            *cell = changed.min(diagonal + 1).min(left + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_word_finds_what_it_meant() {
        let keys = ["roles", "sessions", "tools", "effect"];
        assert_eq!(nearest("efect", keys), Some("effect"));
        assert_eq!(nearest("role", keys), Some("roles"));
        assert_eq!(nearest("when", keys), None);
    }

    #[test]
    fn distance_counts_letters() {
        let chars: Vec<char> = "kitten".chars().collect();
        assert_eq!(distance(&chars, "sitting"), 3);
        assert_eq!(distance(&chars, "kitten"), 0);
        assert_eq!(distance(&[], "abc"), 3);
    }
}
