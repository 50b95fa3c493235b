//! Globs. Over names (roles, sessions, tools) `*` matches any text: names are flat. Over the values
//! of arguments `*` stops at `/`, and `**`, which stands alone between slashes, does not.

use globset::{GlobBuilder, GlobMatcher};

use crate::limits::MAX_PATTERN;
use crate::path;

/// Characters that are no name's own.
const SPECIAL: [char; 7] = ['*', '?', '[', ']', '{', '}', '\\'];

/// A glob over names.
#[derive(Debug, Clone)]
pub(crate) struct NameGlob {
    text: String,
    form: Form,
}

/// The usual forms are told apart once, so that the others alone cost a regex.
#[derive(Debug, Clone)]
enum Form {
    Any,
    Literal,
    /// Bytes of the text before its only special character, a `*` at the end.
    Prefix(usize),
    Glob(Box<GlobMatcher>),
}

impl NameGlob {
    /// Compiles a glob: `*`, `?`, `[…]`, `{…,…}`.
    pub(crate) fn new(text: &str) -> Result<NameGlob, String> {
        limit(text)?;
        let special = text.find(SPECIAL);
        let form = match special {
            None => Form::Literal,
            Some(0) if text == "*" => Form::Any,
            Some(at) if at + 1 == text.len() && text.ends_with('*') => Form::Prefix(at),
            Some(_) => Form::Glob(Box::new(compile(text, false)?)),
        };
        Ok(NameGlob {
            text: text.to_owned(),
            form,
        })
    }

    /// As it was written.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it matches the name.
    pub(crate) fn matches(&self, name: &str) -> bool {
        match &self.form {
            Form::Any => true,
            Form::Literal => self.text == name,
            Form::Prefix(len) => name.as_bytes().get(..*len) == self.text.as_bytes().get(..*len),
            Form::Glob(glob) => glob.is_match(name),
        }
    }

    /// Whether it surely matches every name that `other` matches.
    pub(crate) fn covers(&self, other: &NameGlob) -> bool {
        match (&self.form, other.literal()) {
            (Form::Any, _) => true,
            (_, Some(name)) => self.matches(name),
            (Form::Literal, None) => false,
            (Form::Prefix(_), None) => other.head().starts_with(self.head()),
            (Form::Glob(_), None) => self.text == other.text,
        }
    }

    /// Whether some name could match both; false is a proof.
    pub(crate) fn overlaps(&self, other: &NameGlob) -> bool {
        match (self.literal(), other.literal()) {
            (Some(name), _) => other.matches(name),
            (None, Some(name)) => self.matches(name),
            (None, None) => {
                let (a, b) = (self.head(), other.head());
                a.starts_with(b) || b.starts_with(a)
            }
        }
    }

    /// What every name that it matches begins with.
    fn head(&self) -> &str {
        let end = self.text.find(SPECIAL).unwrap_or(self.text.len());
        self.text.get(..end).unwrap_or_default()
    }

    /// The one name that it matches, if it is no pattern.
    pub(crate) fn literal(&self) -> Option<&str> {
        match &self.form {
            Form::Literal => Some(&self.text),
            Form::Any | Form::Prefix(_) | Form::Glob(_) => None,
        }
    }
}

/// Equal texts compile to equal globs.
impl PartialEq for NameGlob {
    fn eq(&self, other: &NameGlob) -> bool {
        self.text == other.text
    }
}

/// A glob over a value of the arguments.
#[derive(Debug, Clone)]
pub(crate) struct ValueGlob {
    glob: GlobMatcher,
    paths: Paths,
}

/// What a value must be before a glob can judge it.
#[derive(Debug, Clone, Copy)]
enum Paths {
    /// The glob has no `/`, or is over URLs: any text.
    Any,
    /// It has a `/`: no part may be empty, `.` or `..`.
    Clean,
    /// It begins with `/`: an absolute path besides.
    Absolute,
}

impl ValueGlob {
    /// Compiles a glob: `*`, `**`, `?`, `[…]`, `{…,…}`.
    pub(crate) fn new(text: &str) -> Result<ValueGlob, String> {
        limit(text)?;
        if text
            .split('/')
            .any(|part| part.contains("**") && part != "**")
        {
            return Err("`**` stands alone between slashes, as in `/srv/**/x`".to_owned());
        }
        if text.contains("[!") || text.contains("[^") {
            return Err("`[!…]` would match `/` too; write a `regex`".to_owned());
        }
        let paths = if text.starts_with('/') {
            Paths::Absolute
        } else if text.contains('/') && !text.contains("://") {
            Paths::Clean
        } else {
            Paths::Any
        };
        Ok(ValueGlob {
            glob: compile(text, true)?,
            paths,
        })
    }

    /// As it was written.
    pub(crate) fn as_str(&self) -> &str {
        self.glob.glob().glob()
    }

    /// What a value must be before it can be judged, in words.
    pub(crate) fn wants(&self) -> &'static str {
        match self.paths {
            Paths::Any => "text",
            Paths::Clean => "a path without `.`, `..` and empty parts",
            Paths::Absolute => "an absolute path without `.`, `..` and empty parts",
        }
    }

    /// Whether it matches; `None` where the glob is over paths and the value is no clean one.
    pub(crate) fn matches(&self, value: &str) -> Option<bool> {
        let judged = match self.paths {
            Paths::Any => true,
            Paths::Clean => path::is_clean(value),
            Paths::Absolute => path::is_clean_absolute(value),
        };
        judged.then(|| self.glob.is_match(value))
    }
}

fn limit(text: &str) -> Result<(), String> {
    if text.is_empty() {
        Err("an empty glob matches nothing".to_owned())
    } else if text.len() > MAX_PATTERN {
        Err(format!("a glob has at most {MAX_PATTERN} bytes"))
    } else if text.chars().any(char::is_control) {
        Err("a glob has no control characters".to_owned())
    } else {
        Ok(())
    }
}

fn compile(text: &str, literal_separator: bool) -> Result<GlobMatcher, String> {
    GlobBuilder::new(text)
        .literal_separator(literal_separator)
        .backslash_escape(true)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|e| e.kind().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn over_names_a_star_matches_any_text() {
        for (glob, name, expected) in [
            ("*", "bot", true),
            ("bot", "bot", true),
            ("bot", "bots", false),
            ("mail.*", "mail.send", true),
            ("mail.*", "mail.a/b.c", true),
            ("mail.*", "mail.", true),
            ("mail.*", "mail", false),
            ("mm-*", "mm-4:x@y", true),
            ("*.send", "mail.send", true),
            ("*.send", "a/b.send", true),
            ("b?t", "bot", true),
            ("b?t", "boot", false),
            ("{a,b}-*", "b-1", true),
            ("{a,b}-*", "c-1", false),
            ("[a-c]1", "b1", true),
        ] {
            assert_eq!(
                NameGlob::new(glob).unwrap().matches(name),
                expected,
                "{glob} {name}"
            );
        }
    }

    #[test]
    fn that_a_glob_covers_another_is_proved_and_so_is_that_they_are_apart() {
        let names = ["a", "ab", "abc", "a.b", "b", "b.a", "ab.c", ""];
        let globs = [
            "*", "a*", "ab*", "a", "ab", "a.*", "*b", "{a,b}*", "a?", "[ab]*", "b*", "?",
        ];
        let glob = |text: &str| NameGlob::new(text).unwrap();
        for (a, b) in globs.iter().flat_map(|a| globs.iter().map(move |b| (a, b))) {
            let (a, b) = (glob(a), glob(b));
            let both = |name: &&&str| a.matches(name) && b.matches(name);
            let outside = |name: &&&str| !a.matches(name) && b.matches(name);
            if let Some(name) = names.iter().find(outside) {
                assert!(!a.covers(&b), "{a:?} {b:?} {name}");
            }
            if let Some(name) = names.iter().find(both) {
                assert!(a.overlaps(&b), "{a:?} {b:?} {name}");
            }
        }
        assert!(glob("a*").covers(&glob("ab*")) && glob("a*").covers(&glob("a{b,c}")));
        assert!(!glob("a*").overlaps(&glob("b*")) && !glob("a.*").overlaps(&glob("ab")));
    }

    #[test]
    fn only_a_glob_without_special_characters_is_literal() {
        assert_eq!(
            NameGlob::new("mail.send").unwrap().literal(),
            Some("mail.send")
        );
        for pattern in ["*", "mail.*", "mail.sen?", "{a}", "[a]"] {
            assert_eq!(NameGlob::new(pattern).unwrap().literal(), None, "{pattern}");
        }
    }

    #[test]
    fn over_values_a_star_stops_at_a_slash_and_two_do_not() {
        for (glob, value, expected) in [
            ("*@example.org", "a@example.org", Some(true)),
            ("*@example.org", "a/b@example.org", Some(false)),
            ("*@example.org", "a@example.org.evil", Some(false)),
            ("/srv/*", "/srv/a", Some(true)),
            ("/srv/*", "/srv/a/b", Some(false)),
            ("/srv/?", "/srv/a", Some(true)),
            ("/srv/**", "/srv/a/b", Some(true)),
            ("/srv/**", "/srv", Some(false)),
            ("/**/*.pem", "/a.pem", Some(true)),
            ("/**/*.pem", "/a/b/c.pem", Some(true)),
            ("/**/*.pem", "/a/b/c.pem.txt", Some(false)),
            ("/**/*.pem", "a.pem", None),
            ("/srv/**", "/srv/../etc/shadow", None),
            ("/srv/**", "/srv//x", None),
            ("/srv/**", "/srv/", None),
            ("**/*.md", "docs/a.md", Some(true)),
            ("**/*.md", "docs/../a.md", None),
            ("docs/**", "docs/../../etc", None),
            ("**", "any/thing", Some(true)),
            (
                "https://example.org/**",
                "https://example.org/a/b",
                Some(true),
            ),
            ("a\nb", "", None),
        ] {
            let glob = ValueGlob::new(glob).ok();
            assert_eq!(
                glob.as_ref().and_then(|g| g.matches(value)),
                expected,
                "{glob:?} {value}"
            );
        }
    }

    #[test]
    fn globs_that_mislead_are_refused() {
        for bad in [
            "",
            "a**",
            "/srv/**.md",
            "[!a]",
            "[",
            "{a",
            &"a".repeat(MAX_PATTERN + 1),
        ] {
            assert!(ValueGlob::new(bad).is_err(), "{bad}");
        }
    }
}
