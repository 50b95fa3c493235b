//! A table of the configuration, read key by key. Whatever is wrong is noted as a fault, with the
//! table's place in words, and reading goes on; a faulty key reads as one that is absent.

use std::fmt::Display;
use std::ops::RangeInclusive;

use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use super::faults::{Faults, Span, hint};
use super::units;
use crate::limits::MAX_LIST;

/// A value and where it stands.
pub(crate) type Node<'d> = Spanned<DeValue<'d>>;

/// A text and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Text<'d> {
    pub(crate) text: &'d str,
    pub(crate) span: Span,
}

/// One table.
#[derive(Debug, Clone)]
pub(crate) struct Section<'d> {
    table: &'d DeTable<'d>,
    /// Where it stands.
    pub(crate) span: Span,
    /// What it is, in words: "grant `docs`".
    pub(crate) place: String,
}

impl<'d> Section<'d> {
    /// Takes a table, and notes every key that it may not have.
    pub(crate) fn new(
        table: &'d DeTable<'d>,
        span: Span,
        place: String,
        keys: &[&str],
        faults: &mut Faults,
    ) -> Self {
        for key in table
            .keys()
            .filter(|key| !keys.contains(&key.get_ref().as_ref()))
        {
            let name = key.get_ref();
            let hint = hint(name, keys.iter().copied());
            faults.add(&key.span(), format!("{place}: unknown key `{name}`{hint}"));
        }
        Section { table, span, place }
    }

    /// Takes a value that must be a table.
    pub(crate) fn of(
        node: &'d Node<'d>,
        place: String,
        keys: &[&str],
        faults: &mut Faults,
    ) -> Option<Self> {
        match node.get_ref().as_table() {
            Some(table) => Some(Section::new(table, node.span(), place, keys, faults)),
            None => {
                faults.add(
                    &node.span(),
                    format!("{place} must be a table, not {}", kind(node)),
                );
                None
            }
        }
    }

    /// Notes a fault at `span`, as this table's.
    pub(crate) fn fault(&self, faults: &mut Faults, span: &Span, what: impl Display) {
        faults.add(span, format!("{}: {what}", self.place));
    }

    /// What stands under a key.
    pub(crate) fn get(&self, key: &str) -> Option<&'d Node<'d>> {
        self.table
            .iter()
            .find(|(name, _)| name.get_ref() == key)
            .map(|(_, node)| node)
    }

    /// Whether there is such a key, faulty or not.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Where a key's value stands, or else the table.
    pub(crate) fn span_of(&self, key: &str) -> Span {
        self.get(key).map_or(self.span.clone(), Spanned::span)
    }

    /// Notes a key that must be there and is not, with a value that could stand there.
    pub(crate) fn require(&self, faults: &mut Faults, key: &str, example: &str, note: &str) {
        if !self.has(key) {
            let what = format!("`{key}` is missing; write `{key} = {example}`{note}");
            self.fault(faults, &self.span, what);
        }
    }

    /// Notes a key that may not be there.
    pub(crate) fn forbid(&self, faults: &mut Faults, key: &str, why: &str) {
        if let Some(node) = self.get(key) {
            self.fault(faults, &node.span(), format!("`{key}` {why}; leave it out"));
        }
    }

    /// A value of another type than the key wants.
    pub(crate) fn mistyped(&self, faults: &mut Faults, key: &str, node: &Node<'_>, want: &str) {
        self.fault(
            faults,
            &node.span(),
            format!("`{key}` must be {want}, not {}", kind(node)),
        );
    }

    /// A string.
    pub(crate) fn text(&self, faults: &mut Faults, key: &str) -> Option<Text<'d>> {
        let node = self.get(key)?;
        let text = node.get_ref().as_str().map(|text| Text {
            text,
            span: node.span(),
        });
        if text.is_none() {
            self.mistyped(faults, key, node, "a string");
        }
        text
    }

    /// A string of at most `most` bytes.
    pub(crate) fn short_text(
        &self,
        faults: &mut Faults,
        key: &str,
        most: usize,
    ) -> Option<Text<'d>> {
        let text = self.text(faults, key)?;
        if text.text.len() > most {
            self.fault(
                faults,
                &text.span,
                format!("`{key}` has at most {most} bytes"),
            );
            return None;
        }
        Some(text)
    }

    /// A list of strings.
    pub(crate) fn texts(&self, faults: &mut Faults, key: &str) -> Option<Vec<Text<'d>>> {
        let node = self.get(key)?;
        let Some(array) = node.get_ref().as_array() else {
            self.mistyped(faults, key, node, "a list of strings");
            return None;
        };
        if array.len() > MAX_LIST {
            self.fault(
                faults,
                &node.span(),
                format!("`{key}` has at most {MAX_LIST} entries"),
            );
            return None;
        }
        let mut texts: Vec<Text<'d>> = Vec::new();
        for entry in array.iter() {
            match entry.get_ref().as_str() {
                Some(text) if texts.iter().any(|known| known.text == text) => {
                    self.fault(faults, &entry.span(), format!("`{key}` has `{text}` twice"));
                }
                Some(text) => texts.push(Text {
                    text,
                    span: entry.span(),
                }),
                None => self.mistyped(faults, key, entry, "a list of strings"),
            }
        }
        Some(texts)
    }

    /// `true` or `false`.
    pub(crate) fn flag(&self, faults: &mut Faults, key: &str) -> Option<bool> {
        let node = self.get(key)?;
        let flag = node.get_ref().as_bool();
        if flag.is_none() {
            self.mistyped(faults, key, node, "true or false");
        }
        flag
    }

    /// A word out of a few.
    pub(crate) fn word<T: Copy>(
        &self,
        faults: &mut Faults,
        key: &str,
        words: &[(&str, T)],
    ) -> Option<T> {
        let text = self.text(faults, key)?;
        let found = words
            .iter()
            .find(|(word, _)| *word == text.text)
            .map(|(_, value)| *value);
        if found.is_none() {
            let hint = hint(text.text, words.iter().map(|(word, _)| *word));
            self.fault(
                faults,
                &text.span,
                format!("`{key}` cannot be `{}`{hint}", text.text),
            );
        }
        found
    }

    /// An integer within bounds.
    pub(crate) fn integer(
        &self,
        faults: &mut Faults,
        key: &str,
        bounds: RangeInclusive<u64>,
    ) -> Option<u64> {
        let node = self.get(key)?;
        let Some(integer) = node.get_ref().as_integer() else {
            self.mistyped(faults, key, node, "an integer");
            return None;
        };
        let value = unsigned(integer).filter(|value| bounds.contains(value));
        if value.is_none() {
            let (least, most) = bounds.into_inner();
            self.fault(
                faults,
                &node.span(),
                format!("`{key}` must be from {least} to {most}"),
            );
        }
        value
    }

    /// A duration such as `"30s"`, in milliseconds.
    pub(crate) fn duration(
        &self,
        faults: &mut Faults,
        key: &str,
        bounds: RangeInclusive<u64>,
    ) -> Option<u64> {
        let node = self.get(key)?;
        let Some(text) = node.get_ref().as_str() else {
            self.mistyped(
                faults,
                key,
                node,
                "a duration such as \"30s\", \"15m\", \"1h\" or \"7d\"",
            );
            return None;
        };
        let value = match units::duration(text) {
            Ok(value) => value,
            Err(rule) => {
                self.fault(faults, &node.span(), format!("`{key}`: {rule}"));
                return None;
            }
        };
        if !bounds.contains(&value) {
            let (least, most) = bounds.into_inner();
            let (least, most) = (units::duration_text(least), units::duration_text(most));
            self.fault(
                faults,
                &node.span(),
                format!("`{key}` must be from {least} to {most}"),
            );
            return None;
        }
        Some(value)
    }

    /// A size such as `"8MiB"`, or an integer of bytes.
    pub(crate) fn size(
        &self,
        faults: &mut Faults,
        key: &str,
        bounds: RangeInclusive<u64>,
    ) -> Option<u64> {
        let node = self.get(key)?;
        let value = match node.get_ref() {
            DeValue::String(text) => units::size(text),
            DeValue::Integer(integer) => unsigned(integer),
            DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_)
            | DeValue::Table(_) => None,
        };
        let Some(value) = value else {
            let want = "a size such as \"64KiB\", \"8MiB\" or \"1GiB\", or bytes as an integer";
            self.fault(faults, &node.span(), format!("`{key}` must be {want}"));
            return None;
        };
        if !bounds.contains(&value) {
            let (least, most) = bounds.into_inner();
            let (least, most) = (units::size_text(least), units::size_text(most));
            self.fault(
                faults,
                &node.span(),
                format!("`{key}` must be from {least} to {most}"),
            );
            return None;
        }
        Some(value)
    }

    /// The tables of a list of tables, with their places in the list.
    pub(crate) fn tables(&self, faults: &mut Faults, key: &str) -> Vec<&'d Node<'d>> {
        let Some(node) = self.get(key) else {
            return Vec::new();
        };
        let Some(array) = node.get_ref().as_array() else {
            self.mistyped(faults, key, node, "a list of tables");
            return Vec::new();
        };
        array.iter().collect()
    }

    /// The keys and values of a table whose keys are free.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (Text<'d>, &'d Node<'d>)> + use<'d> {
        self.table.iter().map(|(key, node)| {
            (
                Text {
                    text: key.get_ref().as_ref(),
                    span: key.span(),
                },
                node,
            )
        })
    }
}

/// A value's type, with its article.
pub(crate) fn kind(node: &Node<'_>) -> &'static str {
    match node.get_ref() {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// An integer that is not negative.
pub(crate) fn unsigned(integer: &DeInteger<'_>) -> Option<u64> {
    u64::from_str_radix(integer.as_str(), integer.radix()).ok()
}
