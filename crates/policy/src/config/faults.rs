//! Faults as they are found, by their place in the text; told in the order of the lines.

use std::ops::Range;

use super::{ConfigError, Fault};
use crate::limits::MAX_FAULTS;

/// Bytes of the text that something stands in.
pub(crate) type Span = Range<usize>;

/// The faults of one text.
#[derive(Debug)]
pub(crate) struct Faults<'t> {
    text: &'t str,
    found: Vec<(usize, String)>,
}

impl<'t> Faults<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Faults {
            text,
            found: Vec::new(),
        }
    }

    /// Notes a fault where `span` begins.
    pub(crate) fn add(&mut self, span: &Span, what: impl Into<String>) {
        self.found.push((line(self.text, span.start), what.into()));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The line that `span` begins in, from 1.
    pub(crate) fn line(&self, span: &Span) -> usize {
        line(self.text, span.start)
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

fn line(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    before.iter().filter(|b| **b == b'\n').count() + 1
}

/// The candidate that a misspelt word most likely meant.
pub(crate) fn nearest<'c>(
    word: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    let word: Vec<char> = word.chars().take(64).collect();
    let allowed = (word.len() / 3).clamp(1, 3);
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
