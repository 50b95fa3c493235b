//! `read_file`.

use client::Answer;

use super::opening::{locate, open_regular, read_all};
use super::problem::Problem;
use crate::folders::Folders;
use crate::watch::Watch;

/// The largest file that is read, in bytes.
pub const MAX_READ_BYTES: u64 = 4 << 20;

pub(super) fn read_file(folders: &Folders, path: &str, watch: &Watch) -> Result<Answer, Problem> {
    let (dir, below, asked) = locate(folders, path)?;
    let (mut file, meta) = open_regular(dir, below)?;
    let label = asked.and(folders.place_of(&file, None)?).label;
    let content = read_all(&mut file, &meta, watch)?;
    let content = String::from_utf8(content).map_err(|_| Problem::NotText)?;
    Ok(Answer { content, label })
}
