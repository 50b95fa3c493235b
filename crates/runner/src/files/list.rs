//! `list_dir`.

use client::Answer;

use super::on_one_line;
use super::opening::locate;
use super::problem::Problem;
use crate::folders::Folders;
use crate::watch::Watch;

/// The most entries of a folder that are listed.
pub const MAX_ENTRIES: usize = 10_000;

pub(super) fn list_dir(folders: &Folders, path: &str, watch: &Watch) -> Result<Answer, Problem> {
    let (dir, below, asked) = locate(folders, path)?;
    let dir = dir.open_dir(below)?;
    let label = asked.and(folders.place_of(&dir, None)?).label;
    let mut names = Vec::new();
    for entry in dir.entries()? {
        watch.look()?;
        let entry = entry?;
        if names.len() == MAX_ENTRIES {
            return Err(Problem::ManyEntries);
        }
        let mut name = on_one_line(&entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            name.push('/');
        }
        name.push('\n');
        names.push(name);
    }
    names.sort();
    Ok(Answer {
        content: names.concat(),
        label,
    })
}
