//! A table of the configuration, read key by key. Whatever is wrong is noted as a fault, and reading goes on; a
//! faulty key reads as one that is absent.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use super::faults::{Faults, Span};

/// Entries of a list in the configuration.
pub(super) const MAX_LIST: usize = 256;

/// A value and where it stands.
pub(super) type Node<'d> = Spanned<DeValue<'d>>;

/// A text and where it stands.
#[derive(Debug, Clone)]
pub(super) struct Text<'d> {
    pub(super) text: &'d str,
    pub(super) span: Span,
}

/// One table.
pub(super) struct Section<'d> {
    table: &'d DeTable<'d>,
    pub(super) span: Span,
    /// What it is, in words: "command `disk-usage`".
    pub(super) place: String,
}

impl<'d> Section<'d> {
    /// Takes a table, and notes every key that it may not have.
    pub(super) fn new(
        table: &'d DeTable<'d>,
        span: Span,
        place: String,
        keys: &[&str],
        faults: &mut Faults,
    ) -> Self {
        for key in table.keys() {
            let name = key.get_ref().as_ref();
            if !keys.contains(&name) {
                let all = keys.join("`, `");
                let what = format!("{place}: unknown key `{name}`; there is `{all}`");
                faults.add(&key.span(), what);
            }
        }
        Section { table, span, place }
    }

    /// Takes a value that must be a table.
    pub(super) fn of(
        node: &'d Node<'d>,
        place: String,
        keys: &[&str],
        faults: &mut Faults,
    ) -> Option<Self> {
        let Some(table) = node.get_ref().as_table() else {
            faults.add(&node.span(), format!("{place} must be a table"));
            return None;
        };
        Some(Section::new(table, node.span(), place, keys, faults))
    }

    /// Notes a fault at `span`, as this table's.
    pub(super) fn fault(&self, faults: &mut Faults, span: &Span, what: impl Display) {
        faults.add(span, format!("{}: {what}", self.place));
    }

    pub(super) fn get(&self, key: &str) -> Option<&'d Node<'d>> {
        self.table
            .iter()
            .find(|(name, _)| name.get_ref() == key)
            .map(|(_, node)| node)
    }

    /// Where a key's value stands, or else the table.
    pub(super) fn span_of(&self, key: &str) -> Span {
        self.get(key).map_or(self.span.clone(), Spanned::span)
    }

    /// Notes a key that must be there and is not.
    pub(super) fn require(&self, faults: &mut Faults, key: &str, example: &str) {
        if self.get(key).is_none() {
            let what = format!("`{key}` is missing; write `{key} = {example}`");
            self.fault(faults, &self.span, what);
        }
    }

    /// Notes a key that may not be there.
    pub(super) fn forbid(&self, faults: &mut Faults, key: &str, why: &str) {
        if let Some(node) = self.get(key) {
            self.fault(faults, &node.span(), format!("`{key}` {why}; leave it out"));
        }
    }

    /// Notes that a value is none of what the key wants.
    fn mistyped(&self, faults: &mut Faults, key: &str, node: &Node<'_>, want: &str) {
        self.fault(faults, &node.span(), format!("`{key}` must be {want}"));
    }

    /// A string.
    pub(super) fn text(&self, faults: &mut Faults, key: &str) -> Option<Text<'d>> {
        let node = self.get(key)?;
        match node.get_ref().as_str() {
            Some(text) if text.contains('\0') => {
                self.mistyped(faults, key, node, "a string without NUL");
                None
            }
            Some(text) => Some(Text {
                text,
                span: node.span(),
            }),
            None => {
                self.mistyped(faults, key, node, "a string");
                None
            }
        }
    }

    /// A list of strings; the same one may stand there twice.
    pub(super) fn texts(&self, faults: &mut Faults, key: &str) -> Option<Vec<Text<'d>>> {
        let node = self.get(key)?;
        let want = "a list of strings without NUL, at most 256";
        let array = node.get_ref().as_array().filter(|a| a.len() <= MAX_LIST);
        let Some(array) = array else {
            self.mistyped(faults, key, node, want);
            return None;
        };
        let mut texts = Vec::new();
        for entry in array.iter() {
            match entry.get_ref().as_str().filter(|text| !text.contains('\0')) {
                Some(text) => texts.push(Text {
                    text,
                    span: entry.span(),
                }),
                None => self.mistyped(faults, key, entry, want),
            }
        }
        Some(texts)
    }

    /// `true` or `false`.
    pub(super) fn flag(&self, faults: &mut Faults, key: &str) -> Option<bool> {
        let node = self.get(key)?;
        let flag = node.get_ref().as_bool();
        if flag.is_none() {
            self.mistyped(faults, key, node, "true or false");
        }
        flag
    }

    /// A word out of a few.
    pub(super) fn word<T: Copy>(
        &self,
        faults: &mut Faults,
        key: &str,
        words: &[(&str, T)],
    ) -> Option<T> {
        let text = self.text(faults, key)?;
        let found = words.iter().find(|(word, _)| *word == text.text);
        if found.is_none() {
            let all: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            let what = format!("`{key}` must be one of `{}`", all.join("`, `"));
            self.fault(faults, &text.span, what);
        }
        found.map(|(_, value)| *value)
    }

    /// An integer within bounds.
    pub(super) fn integer(
        &self,
        faults: &mut Faults,
        key: &str,
        bounds: RangeInclusive<i64>,
    ) -> Option<i64> {
        let node = self.get(key)?;
        let value = node.get_ref().as_integer().and_then(signed);
        let value = value.filter(|value| bounds.contains(value));
        if value.is_none() {
            let (least, most) = bounds.into_inner();
            let want = format!("an integer from {least} to {most}");
            self.mistyped(faults, key, node, &want);
        }
        value
    }

    /// As [`Self::integer`], for a count.
    pub(super) fn count(
        &self,
        faults: &mut Faults,
        key: &str,
        bounds: RangeInclusive<u32>,
    ) -> Option<u32> {
        let (least, most) = bounds.into_inner();
        let value = self.integer(faults, key, i64::from(least)..=i64::from(most));
        value.and_then(|value| u32::try_from(value).ok())
    }

    /// A list of integers within bounds.
    pub(super) fn integers(
        &self,
        faults: &mut Faults,
        key: &str,
        bounds: RangeInclusive<i64>,
    ) -> Option<Vec<i64>> {
        let node = self.get(key)?;
        let read = |node: &Node<'_>| {
            let value = node.get_ref().as_integer().and_then(signed);
            value.filter(|value| bounds.contains(value))
        };
        let array = node.get_ref().as_array().filter(|a| a.len() <= MAX_LIST);
        let values = array.and_then(|array| array.iter().map(read).collect());
        if values.is_none() {
            let (least, most) = bounds.clone().into_inner();
            let want = format!("a list of integers from {least} to {most}");
            self.mistyped(faults, key, node, &want);
        }
        values
    }

    /// A duration such as `"30s"`.
    pub(super) fn duration(
        &self,
        faults: &mut Faults,
        key: &str,
        bounds: RangeInclusive<Duration>,
    ) -> Option<Duration> {
        let node = self.get(key)?;
        let text = node.get_ref().as_str();
        let value = text.and_then(|text| humantime::parse_duration(text).ok());
        let value = value.filter(|value| bounds.contains(value));
        if value.is_none() {
            let (least, most) = bounds.into_inner();
            let (least, most) = (
                humantime::format_duration(least),
                humantime::format_duration(most),
            );
            let want = format!("a duration such as \"30s\" or \"5m\", from {least} to {most}");
            self.mistyped(faults, key, node, &want);
        }
        value
    }

    /// A size such as `"8MiB"`, in bytes.
    pub(super) fn size(
        &self,
        faults: &mut Faults,
        key: &str,
        bounds: RangeInclusive<u64>,
    ) -> Option<u64> {
        let node = self.get(key)?;
        let value = node.get_ref().as_str().and_then(size);
        let value = value.filter(|value| bounds.contains(value));
        if value.is_none() {
            let (least, most) = bounds.into_inner();
            let (least, most) = (size_text(least), size_text(most));
            let want = format!("a size such as \"64KiB\" or \"8MiB\", from {least} to {most}");
            self.mistyped(faults, key, node, &want);
        }
        value
    }

    /// The tables of a list of tables.
    pub(super) fn tables(&self, faults: &mut Faults, key: &str) -> Vec<&'d Node<'d>> {
        let Some(node) = self.get(key) else {
            return Vec::new();
        };
        match node.get_ref().as_array() {
            Some(array) if array.len() <= MAX_LIST => array.iter().collect(),
            Some(_) | None => {
                let want = format!("tables under `[[{key}]]`, at most {MAX_LIST}");
                self.mistyped(faults, key, node, &want);
                Vec::new()
            }
        }
    }

    /// The keys and values of the table under a key, whose keys are free.
    pub(super) fn entries(&self, faults: &mut Faults, key: &str) -> Vec<(Text<'d>, &'d Node<'d>)> {
        let Some(node) = self.get(key) else {
            return Vec::new();
        };
        let table = node.get_ref().as_table();
        let Some(table) = table.filter(|table| table.len() <= MAX_LIST) else {
            let want = format!("a table with at most {MAX_LIST} keys");
            self.mistyped(faults, key, node, &want);
            return Vec::new();
        };
        let entry = |(key, node): (&'d Spanned<_>, _)| {
            let name: &'d std::borrow::Cow<'d, str> = key.get_ref();
            let text = Text {
                text: name.as_ref(),
                span: key.span(),
            };
            (text, node)
        };
        table.iter().map(entry).collect()
    }
}

fn signed(integer: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

const UNITS: [(&str, u32); 4] = [("GiB", 30), ("MiB", 20), ("KiB", 10), ("B", 0)];

/// Bytes of `512B`, `64KiB`, `8MiB`, `1GiB`.
fn size(text: &str) -> Option<u64> {
    let (number, shift) = UNITS
        .iter()
        .find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift)))?;
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

fn size_text(bytes: u64) -> String {
    for (unit, shift) in UNITS {
        if bytes >= 1 << shift && bytes.trailing_zeros() >= shift {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    format!("{bytes}B")
}
