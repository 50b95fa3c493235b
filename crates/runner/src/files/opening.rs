//! Opening below a folder's handle without waiting for anybody.

use std::io::Read;
use std::path::Path;

use cap_std::fs::{Dir, File, FileTypeExt, Metadata, OpenOptions, OpenOptionsExt};
use nix::fcntl::OFlag;

use super::MAX_PATH_BYTES;
use super::problem::Problem;
use super::read::MAX_READ_BYTES;
use crate::folders::{Folders, Place};
use crate::watch::Watch;

/// Bytes that are read between two looks at the watch.
const STEP: u64 = 256 << 10;

pub(super) fn locate<'a>(
    folders: &'a Folders,
    path: &'a str,
) -> Result<(&'a Dir, &'a Path, Place), Problem> {
    if path.len() > MAX_PATH_BYTES {
        return Err(Problem::Long);
    }
    Ok(folders.locate(path)?)
}

/// Opens only what is a regular file, and never waits for a FIFO's other end.
pub(super) fn open_regular(dir: &Dir, below: &Path) -> Result<(File, Metadata), Problem> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .custom_flags(OFlag::O_NONBLOCK.bits() | OFlag::O_NOCTTY.bits());
    let file = dir.open_with(below, &options)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(Problem::NotAFile(kind(&meta)));
    }
    Ok((file, meta))
}

/// All of a file, if that is not too much.
pub(super) fn read_all(
    file: &mut File,
    meta: &Metadata,
    watch: &Watch,
) -> Result<Vec<u8>, Problem> {
    if meta.len() > MAX_READ_BYTES {
        return Err(Problem::Large);
    }
    let mut content = Vec::new();
    loop {
        watch.look()?;
        let read = file.by_ref().take(STEP).read_to_end(&mut content)?;
        // It may have grown since it was asked for its size.
        if content.len() as u64 > MAX_READ_BYTES {
            return Err(Problem::Large);
        }
        if (read as u64) < STEP {
            return Ok(content);
        }
    }
}

pub(super) fn kind(meta: &Metadata) -> &'static str {
    let kind = meta.file_type();
    if kind.is_dir() {
        "a folder"
    } else if kind.is_symlink() {
        "a link"
    } else if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}
