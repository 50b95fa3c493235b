//! `edit_file`: one text for another, in a file that nobody else changes meanwhile.

use cap_std::fs::{Metadata, MetadataExt};
use client::Answer;
use serde::Deserialize;

use super::opening::{open_regular, read_all};
use super::own_words;
use super::problem::Problem;
use super::write::{MAX_WRITE_BYTES, Target};
use crate::folders::Folders;
use crate::watch::Watch;

pub(super) const RULE: &str =
    "`path`, `old` and `new`, all strings, and `all`, true or false, if wanted";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    pub(super) path: String,
    old: String,
    new: String,
    #[serde(default)]
    all: bool,
}

pub(super) fn edit_file(
    folders: &Folders,
    asked: &Arguments,
    watch: &Watch,
) -> Result<Answer, Problem> {
    let Arguments { path, old, new, .. } = asked;
    if old.is_empty() {
        return Err(Problem::EmptyOld);
    }
    if old == new {
        return Err(Problem::NothingToEdit);
    }
    let target = Target::open(folders, path)?;
    // Says what a link or a FIFO is, before it is opened.
    target.now()?;
    let (mut file, read) = open_regular(&target.parent, target.name)?;
    let label = folders.place_of(&file, None)?.label.join(target.label);
    let content = read_all(&mut file, &read, watch)?;
    // A failure counts as the tool's floor, and may tell no more than that of what stands in the file.
    let told = label.is_within(folders.floor());
    let (edited, count) = edited(content, asked)
        .map_err(|problem| if told { problem } else { Problem::NotEdited })?;
    target.replace(&edited, watch, |now| match now {
        Some(now) if same(now, &read) => Ok(()),
        Some(_) | None => Err(Problem::Changed),
    })?;
    let times = if count == 1 { "once" } else { "each time" };
    let text = format!("replaced it {times} ({count}) in {path}\n");
    Ok(own_words(text, label))
}

/// What becomes of a content, and how often `old` stood in it.
fn edited(content: Vec<u8>, asked: &Arguments) -> Result<(String, usize), Problem> {
    let Arguments { old, new, .. } = asked;
    let content = String::from_utf8(content).map_err(|_| Problem::NotText)?;
    let count = content.matches(old.as_str()).count();
    match count {
        0 => return Err(Problem::NotThere),
        1 => {}
        more if !asked.all => return Err(Problem::NotOnce(more)),
        _ => {}
    }
    // Before it is made: a short text for a long one, a million times.
    let kept = content.len() - count * old.len();
    if kept.saturating_add(new.len().saturating_mul(count)) > MAX_WRITE_BYTES {
        return Err(Problem::LargeContent);
    }
    Ok((content.replace(old.as_str(), new), count))
}

/// Whether a file is the one that was read, and nobody wrote to it since, as far as its times tell.
fn same(now: &Metadata, read: &Metadata) -> bool {
    let of = |meta: &Metadata| {
        let times = [
            (meta.mtime(), meta.mtime_nsec()),
            (meta.ctime(), meta.ctime_nsec()),
        ];
        (meta.dev(), meta.ino(), meta.len(), times)
    };
    of(now) == of(read)
}
