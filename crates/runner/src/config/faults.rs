//! Faults as they are found, by their place in the text; told in the order of the lines.

use std::fmt;
use std::ops::Range;

/// Faults that are told of one text.
pub const MAX_FAULTS: usize = 100;

/// Bytes of the text that something stands in.
pub(super) type Span = Range<usize>;

/// Why a configuration was not taken: every fault at once, in the order of the lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// Each as `FILE:LINE: what`.
    pub faults: Vec<String>,
}

impl std::error::Error for ConfigError {}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.faults.join("\n"))
    }
}

/// The faults of one text.
pub(super) struct Faults {
    /// Where each line ends.
    ends: Vec<usize>,
    found: Vec<(usize, String)>,
}

impl Faults {
    pub(super) fn new(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self {
            ends: ends.map(|(place, _)| place).collect(),
            found: Vec::new(),
        }
    }

    /// Notes a fault where `span` begins.
    pub(super) fn add(&mut self, span: &Span, what: impl Into<String>) {
        let line = self.ends.partition_point(|end| *end < span.start) + 1;
        self.found.push((line, what.into()));
    }

    /// What was read, if it has no fault.
    pub(super) fn settle<T>(mut self, file: &str, read: T) -> Result<T, ConfigError> {
        if self.found.is_empty() {
            return Ok(read);
        }
        self.found.sort_by_key(|(line, _)| *line);
        let more = self.found.len().saturating_sub(MAX_FAULTS);
        self.found.truncate(MAX_FAULTS);
        let told = |(line, what): &(usize, String)| format!("{file}:{line}: {what}");
        let mut faults: Vec<String> = self.found.iter().map(told).collect();
        if more > 0 {
            faults.push(format!("{file}: and {more} more faults"));
        }
        Err(ConfigError { faults })
    }
}
