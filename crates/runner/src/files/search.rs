//! `search_files`: what stands in files below a folder, and which names they have.
//!
//! Links are not followed. Whatever was looked into raises the result's label, also where nothing was found: that
//! it is not there is something to know, too.

use std::path::Path;

use cap_std::fs::Dir;
use client::{Answer, Label};
use globset::{GlobBuilder, GlobMatcher};
use regex::{Regex, RegexBuilder};
use serde::Deserialize;

use super::on_one_line;
use super::opening::{locate, open_regular, read_all};
use super::problem::Problem;
use crate::folders::{Folders, PathError};
use crate::watch::{Ended, Watch};

/// Files and folders that one search looks at.
pub const MAX_SEARCH_ENTRIES: usize = 50_000;
/// Folders below each other that one search goes into.
pub const MAX_SEARCH_DEPTH: usize = 32;
/// Bytes of all files that one search reads.
pub const MAX_SEARCH_BYTES: u64 = 256 << 20;
/// The largest file that is looked into, in bytes.
pub const MAX_SEARCH_FILE: u64 = 4 << 20;
/// Bytes of a line that are looked into: patterns can be slow, and are asked for one line after the other.
pub const MAX_SEARCH_LINE: usize = 16 << 10;
/// Lines that one search tells.
pub const MAX_MATCHES: usize = 1000;
/// Bytes of a line that are told.
const MAX_LINE: usize = 400;
/// Bytes of a pattern or a glob.
pub(super) const MAX_PATTERN: usize = 1024;
/// Bytes of a compiled pattern, and of what matching it keeps.
const MAX_COMPILED: usize = 1 << 20;

pub(super) const RULE: &str = "`path`, a string; `pattern` or `glob` or both, strings; and `regex` and \
                               `ignore_case`, true or false, if wanted";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    pub(super) path: String,
    pattern: Option<String>,
    glob: Option<String>,
    #[serde(default)]
    regex: bool,
    #[serde(default)]
    ignore_case: bool,
}

pub(super) fn search_files(
    folders: &Folders,
    asked: &Arguments,
    watch: &Watch,
) -> Result<Answer, Problem> {
    let (pattern, glob) = (asked.pattern()?, asked.glob()?);
    let (dir, below, place) = locate(folders, &asked.path)?;
    let mut search = Search {
        folders,
        pattern: pattern.as_ref(),
        glob,
        watch,
        label: place.label,
        lines: String::new(),
        seen: Seen::default(),
    };
    let top = dir.open_dir(below)?;
    search.raise(folders.place_of(&top, None)?.label);
    let stopped = match search.walk(&top, Path::new(""), 0) {
        Ok(()) => None,
        Err(Stop::Bound(bound)) => Some(bound),
        Err(Stop::Ended(Ended::Late)) => Some("its time was over"),
        Err(Stop::Ended(ended @ Ended::Cancelled)) => return Err(ended.into()),
    };
    let mut content = search.lines;
    content.push_str(&search.seen.told(stopped));
    Ok(Answer {
        content,
        label: search.label,
    })
}

impl Arguments {
    fn pattern(&self) -> Result<Option<Regex>, Problem> {
        let Some(pattern) = self.pattern.as_deref().filter(|text| !text.is_empty()) else {
            let nothing = self.glob.as_deref().is_none_or(str::is_empty);
            return if nothing {
                Err(Problem::NothingToSearch)
            } else {
                Ok(None)
            };
        };
        if pattern.len() > MAX_PATTERN {
            return Err(Problem::LongPattern);
        }
        let pattern = if self.regex {
            pattern.to_owned()
        } else {
            regex::escape(pattern)
        };
        RegexBuilder::new(&pattern)
            .case_insensitive(self.ignore_case)
            .size_limit(MAX_COMPILED)
            .dfa_size_limit(MAX_COMPILED)
            .build()
            .map(Some)
            .map_err(|_| Problem::Regex)
    }

    /// A glob without `/` is about the name alone, one with it about the path below the folder.
    fn glob(&self) -> Result<Option<Names>, Problem> {
        let Some(glob) = self.glob.as_deref().filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        if glob.len() > MAX_PATTERN {
            return Err(Problem::LongPattern);
        }
        let built = GlobBuilder::new(glob)
            .literal_separator(true)
            .case_insensitive(self.ignore_case)
            .build()
            .map_err(|_| Problem::Glob)?;
        let matcher = built.compile_matcher();
        Ok(Some(if glob.contains('/') {
            Names::Path(matcher)
        } else {
            Names::Name(matcher)
        }))
    }
}

enum Names {
    Name(GlobMatcher),
    Path(GlobMatcher),
}

impl Names {
    fn take(&self, path: &Path) -> bool {
        match self {
            Names::Name(matcher) => path.file_name().is_some_and(|name| matcher.is_match(name)),
            Names::Path(matcher) => matcher.is_match(path),
        }
    }
}

/// Why a walk goes no further.
enum Stop {
    Bound(&'static str),
    Ended(Ended),
}

impl From<Ended> for Stop {
    fn from(ended: Ended) -> Self {
        Stop::Ended(ended)
    }
}

struct Search<'a> {
    folders: &'a Folders,
    pattern: Option<&'a Regex>,
    glob: Option<Names>,
    watch: &'a Watch,
    label: Label,
    lines: String,
    seen: Seen,
}

/// What a search met.
#[derive(Default)]
struct Seen {
    entries: usize,
    bytes: u64,
    matches: usize,
    searched: usize,
    links: usize,
    binary: usize,
    large: usize,
    unreadable: usize,
    deep: usize,
    long: usize,
}

/// So many bytes of a line, or a few less where a character would be cut.
fn beginning(line: &str, most: usize) -> &str {
    line.split_at(line.floor_char_boundary(most)).0
}

impl Search<'_> {
    fn raise(&mut self, label: Label) {
        self.label = self.label.join(label);
    }

    fn walk(&mut self, dir: &Dir, path: &Path, depth: usize) -> Result<(), Stop> {
        if depth == MAX_SEARCH_DEPTH {
            self.seen.deep += 1;
            return Ok(());
        }
        let Ok(entries) = dir.entries() else {
            self.seen.unreadable += 1;
            return Ok(());
        };
        let mut names = Vec::new();
        for entry in entries {
            self.watch.look()?;
            self.seen.entries += 1;
            if self.seen.entries > MAX_SEARCH_ENTRIES {
                return Err(Stop::Bound("it had looked at as many entries as it may"));
            }
            match entry.and_then(|entry| Ok((entry.file_name(), entry.file_type()?))) {
                Ok(named) => names.push(named),
                Err(_) => self.seen.unreadable += 1,
            }
        }
        // In the same order each time, whatever the file system says.
        names.sort_by(|(one, _), (other, _)| one.cmp(other));
        for (name, kind) in names {
            self.watch.look()?;
            let path = path.join(&name);
            if kind.is_symlink() {
                self.seen.links += 1;
            } else if kind.is_dir() {
                let opened = dir.open_dir(&name).map_err(|_| PathError::Unknown);
                let placed = opened.and_then(|dir| {
                    let place = self.folders.place_of(&dir, None)?;
                    Ok((dir, place))
                });
                match placed {
                    Ok((dir, place)) => {
                        self.raise(place.label);
                        self.walk(&dir, &path, depth + 1)?;
                    }
                    Err(_) => self.seen.unreadable += 1,
                }
            } else if kind.is_file() && self.glob.as_ref().is_none_or(|glob| glob.take(&path)) {
                self.file(dir, Path::new(&name), &path)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, dir: &Dir, name: &Path, path: &Path) -> Result<(), Stop> {
        let Some(pattern) = self.pattern else {
            return self.tell(&on_one_line(&path.to_string_lossy()));
        };
        let Some(text) = self.text(dir, name)? else {
            return Ok(());
        };
        self.seen.searched += 1;
        let path = on_one_line(&path.to_string_lossy());
        for (number, line) in text.lines().enumerate() {
            self.watch.look()?;
            let searched = beginning(line, MAX_SEARCH_LINE);
            if searched.len() < line.len() {
                self.seen.long += 1;
            }
            if pattern.is_match(searched) {
                let shown = beginning(line, MAX_LINE);
                let cut = if shown.len() < line.len() {
                    "\u{2026}"
                } else {
                    ""
                };
                self.tell(&format!("{path}:{}: {shown}{cut}", number + 1))?;
            }
        }
        Ok(())
    }

    /// A file's text; `None`, counted, if it cannot be searched.
    fn text(&mut self, dir: &Dir, name: &Path) -> Result<Option<String>, Stop> {
        let opened = open_regular(dir, name).and_then(|(file, meta)| {
            let place = self.folders.place_of(&file, None)?;
            Ok((file, meta, place))
        });
        let Ok((mut file, meta, place)) = opened else {
            self.seen.unreadable += 1;
            return Ok(None);
        };
        self.raise(place.label);
        if meta.len() > MAX_SEARCH_FILE {
            self.seen.large += 1;
            return Ok(None);
        }
        self.seen.bytes = self.seen.bytes.saturating_add(meta.len());
        if self.seen.bytes > MAX_SEARCH_BYTES {
            return Err(Stop::Bound("it had read as many bytes as it may"));
        }
        match read_all(&mut file, &meta, self.watch) {
            Ok(content) if content.contains(&0) => self.seen.binary += 1,
            Ok(content) => match String::from_utf8(content) {
                Ok(text) => return Ok(Some(text)),
                Err(_) => self.seen.binary += 1,
            },
            Err(Problem::Ended(ended)) => return Err(ended.into()),
            Err(Problem::Large) => self.seen.large += 1,
            Err(_) => self.seen.unreadable += 1,
        }
        Ok(None)
    }

    fn tell(&mut self, line: &str) -> Result<(), Stop> {
        if self.seen.matches == MAX_MATCHES {
            return Err(Stop::Bound("it had found as much as it may tell"));
        }
        self.seen.matches += 1;
        self.lines.push_str(line);
        self.lines.push('\n');
        Ok(())
    }
}

impl Seen {
    /// The last line: what was searched, what was not, and why it ended early if it did.
    fn told(&self, stopped: Option<&str>) -> String {
        let mut text = format!("-- {} found", self.matches);
        if self.searched > 0 {
            text.push_str(&format!(", {} files searched", self.searched));
        }
        for (count, what) in [
            (self.links, "links not followed"),
            (self.binary, "files that are no text"),
            (self.large, "files too large"),
            (self.unreadable, "unreadable"),
            (self.deep, "folders too deep"),
            (self.long, "lines looked into at their beginning only"),
        ] {
            if count > 0 {
                text.push_str(&format!(", {count} {what}"));
            }
        }
        if let Some(stopped) = stopped {
            text.push_str(&format!("; stopped early: {stopped}; ask for less"));
        }
        text.push('\n');
        text
    }
}
