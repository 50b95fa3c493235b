//! Names that can be taken for others, by the tables of Unicode's UTS 39: a word that mixes scripts, or that looks
//! like one in plain ASCII.

use std::collections::BTreeSet;

use unicode_security::MixedScript as _;
use unicode_security::confusable_detection::skeleton;

use crate::printable;

const LATIN: &str = "Latin";

/// A word that is not what it looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lookalike {
    /// The word.
    pub word: String,
    /// Its characters that are no ASCII, each once, as `U+0430 Cyrillic`; a mark without its script.
    pub characters: Vec<String>,
    /// The ASCII that it looks like; empty where it only mixes scripts.
    pub looks_like: String,
}

/// The words of `text` that can be taken for others, each once, in the order in which they stand.
///
/// Names (a text without spaces, or what holds a `/`, `@`, `:` or the like between letters) are judged strictly. In
/// prose a word is let through that is written in one script, if the same script stands there with letters that look
/// like none of ASCII: it is how that language is written.
pub fn lookalikes(text: &str) -> Vec<Lookalike> {
    if text.is_ascii() {
        return Vec::new();
    }
    let mut found: Vec<&str> = Vec::new();
    let mut seen = BTreeSet::new();
    let homes = homes(text);
    let is_prose = text.contains(char::is_whitespace);
    for token in text.split_whitespace() {
        if token.is_ascii() {
            continue;
        }
        let is_name = !is_prose || joins_words(token);
        // A name is looked at in its words, which may each be of a script, and then for what stands between them.
        let words = token.split(|c: char| !is_of_word(c));
        let words = words.filter(|word| is_suspect(word, &homes, is_name));
        let suspects: Vec<&str> = words.collect();
        let marks = is_name && has_false_mark(token);
        for word in suspects.into_iter().chain(marks.then_some(token)) {
            if seen.insert(word) {
                found.push(word);
            }
        }
    }
    found.into_iter().map(describe).collect()
}

fn is_suspect(word: &str, homes: &BTreeSet<&str>, is_name: bool) -> bool {
    if word.is_ascii() {
        return false;
    }
    let is_mixed = word.contains(|c: char| c.is_ascii_alphabetic());
    if ascii_look(word).is_some() {
        return is_name || is_mixed || !is_at_home(word, homes);
    }
    !word.is_single_script() && !is_east_asian(word)
}

/// Chinese, Japanese and Korean are written with Latin words among them.
fn is_east_asian(word: &str) -> bool {
    let others = |c: &char| printable::script(*c) != Some(LATIN);
    let others: String = word.chars().filter(others).collect();
    let scripts = others.resolve_script_set();
    scripts.hanb || scripts.jpan || scripts.kore
}

/// The ASCII text that this looks like, all of it.
fn ascii_look(word: &str) -> Option<String> {
    let mut look = String::new();
    for c in word.chars() {
        if c.is_ascii() {
            look.push(c); // Its own skeleton may be another one, as `rn` for `m`.
        } else {
            look.extend(skeleton(c.encode_utf8(&mut [0; 4])));
        }
    }
    (!look.is_empty() && look.chars().all(|c| (' '..='~').contains(&c))).then_some(look)
}

/// The scripts that stand in `text` with letters that look like none of ASCII.
fn homes(text: &str) -> BTreeSet<&'static str> {
    let own = |c: &char| !c.is_ascii() && ascii_look(c.encode_utf8(&mut [0; 4])).is_none();
    text.chars()
        .filter(own)
        .filter_map(printable::script)
        .collect()
}

fn is_at_home(word: &str, homes: &BTreeSet<&str>) -> bool {
    let mut foreign = word.chars().filter(|c| !c.is_ascii());
    foreign
        .find_map(printable::script)
        .is_some_and(|script| homes.contains(script))
}

/// Whether it holds, between letters or digits, one of the marks that names are put together with.
fn joins_words(token: &str) -> bool {
    let inner = token.trim_matches(|c: char| !c.is_alphanumeric());
    inner.contains(['/', '\\', '@', ':', '.', '_', '=', '-'])
}

/// A mark that looks like one of ASCII, such as a fraction slash, and that splits or joins words.
fn has_false_mark(token: &str) -> bool {
    let is_mark = |c: &char| !c.is_ascii() && !is_of_word(*c) && printable::is_shown(*c);
    let marks = token.chars().filter(is_mark);
    marks
        .into_iter()
        .any(|c| ascii_look(c.encode_utf8(&mut [0; 4])).is_some())
}

/// Letters, digits and their marks; not what is shown as an escape, which nobody takes for anything else.
fn is_of_word(c: char) -> bool {
    printable::is_shown(c) && (c.is_alphanumeric() || printable::script(c).is_some())
}

fn describe(word: &str) -> Lookalike {
    let mut characters: Vec<String> = Vec::new();
    for c in word.chars().filter(|c| !c.is_ascii()) {
        let code = format!("U+{:04X}", u32::from(c));
        let character = match printable::script(c) {
            Some(script) => format!("{code} {script}"),
            None => code,
        };
        if !characters.contains(&character) {
            characters.push(character);
        }
    }
    let looks_like = ascii_look(word).unwrap_or_default();
    Lookalike {
        word: word.to_owned(),
        characters,
        looks_like,
    }
}
