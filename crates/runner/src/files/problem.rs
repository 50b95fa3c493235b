//! What is wrong with a path or a call, to be said behind the path.

use std::io;

use super::list::MAX_ENTRIES;
use super::read::MAX_READ_BYTES;
use super::write::MAX_WRITE_BYTES;
use super::{MAX_PATH_BYTES, search};
use crate::folders::PathError;
use crate::watch::Ended;

#[derive(Debug, thiserror::Error)]
pub(super) enum Problem {
    #[error(transparent)]
    Path(#[from] PathError),
    #[error(transparent)]
    Ended(#[from] Ended),
    #[error("{}", in_words(.0))]
    Io(#[from] io::Error),
    #[error("is longer than {MAX_PATH_BYTES} bytes")]
    Long,
    #[error("is {0}, not a file")]
    NotAFile(&'static str),
    #[error("is larger than the {MAX_READ_BYTES} bytes that are read at most")]
    Large,
    #[error("is not text in UTF-8")]
    NotText,
    #[error("has more than the {MAX_ENTRIES} entries that are listed at most")]
    ManyEntries,
    #[error("would become larger than the {MAX_WRITE_BYTES} bytes that are written at most")]
    LargeContent,
    #[error("is a folder that is served, not a file")]
    Root,
    #[error("was not edited: `old` is empty")]
    EmptyOld,
    #[error("was not edited: `old` and `new` are the same")]
    NothingToEdit,
    #[error("was not edited: `old` does not stand in it; read the file again")]
    NotThere,
    #[error(
        "was not edited: `old` stands in it {0} times; give more of the text around it, or `all`"
    )]
    NotOnce(usize),
    #[error(
        "was not edited: `old` does not stand in it once, or all of it cannot be written; read the file again"
    )]
    NotEdited,
    #[error("was changed by somebody else meanwhile, and was not edited; read it again")]
    Changed,
    #[error(
        "was not searched: give `pattern`, for what stands in files, or `glob`, for their names"
    )]
    NothingToSearch,
    #[error(
        "was not searched: `pattern` and `glob` have at most {} bytes",
        search::MAX_PATTERN
    )]
    LongPattern,
    #[error(
        "was not searched: `pattern` is no regular expression of the `regex` crate, or too large a one"
    )]
    Regex,
    #[error("was not searched: `glob` is no glob")]
    Glob,
}

/// What the system said, in words of one's own where the usual ones mislead.
fn in_words(error: &io::Error) -> String {
    let kind = error.kind();
    if kind == io::ErrorKind::NotFound {
        "does not exist".to_owned()
    } else if kind == io::ErrorKind::PermissionDenied {
        "may not be opened by this runner, or leads out of its folder".to_owned()
    } else if kind == io::ErrorKind::NotADirectory {
        "is not a folder, or goes through something that is none".to_owned()
    } else if kind == io::ErrorKind::IsADirectory {
        "is a folder, not a file".to_owned()
    } else if kind == io::ErrorKind::InvalidFilename {
        "has a name that is too long".to_owned()
    } else if error.raw_os_error() == Some(nix::errno::Errno::ENXIO as i32) {
        "is a socket or a device, not a file".to_owned()
    } else {
        format!("failed: {error}")
    }
}
