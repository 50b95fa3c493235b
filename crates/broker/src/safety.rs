//! Whether a path can be trusted: it and every folder above it belong to root or the broker's user
//! and can be written by nobody else (DESIGN 5). Symbolic links are followed by hand, so that the
//! folders in which they stand are checked too.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

/// Symbolic links that are followed on the way to one file.
pub const MAX_LINKS: usize = 40;

const STICKY: u32 = 0o1000;
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Why a path is not trusted.
#[derive(Debug, thiserror::Error)]
pub enum Unsafe {
    /// It, or something on the way to it, cannot be looked at.
    #[error("{}: {error}", path.display())]
    Unreadable {
        /// Which part of the way.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Somebody else owns it.
    #[error(
        "{} belongs to uid {owner}: it must belong to root or to the user of the broker (chown)",
        path.display()
    )]
    Owner {
        /// Which part of the way.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
    },
    /// Somebody else can write it.
    #[error(
        "{} can be written by others (mode {mode:04o}): chmod go-w",
        path.display()
    )]
    Writable {
        /// Which part of the way.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// It is not what was expected there.
    #[error("{} is not a {expected}", path.display())]
    Kind {
        /// Which part of the way.
        path: PathBuf,
        /// What was expected.
        expected: &'static str,
    },
    /// Links that lead in a circle.
    #[error("{}: over {MAX_LINKS} symbolic links", path.display())]
    Links {
        /// Where it began.
        path: PathBuf,
    },
}

/// Opens a regular file that can be trusted, for reading. `euid` is the broker's user.
///
/// # Errors
/// [`Unsafe`], with the part of the way that is not.
pub fn open_file(path: &Path, euid: u32) -> Result<File, Unsafe> {
    let (real, seen) = resolve(path, euid)?;
    if !seen.is_file() {
        return Err(Unsafe::Kind {
            path: real,
            expected: "regular file",
        });
    }
    // No link can stand there any more, and no pipe can hold us up; what was opened is looked at
    // once more through its handle.
    let file = fs::OpenOptions::new()
        .read(true)
        .custom_flags(nix::fcntl::OFlag::O_NOFOLLOW.bits() | nix::fcntl::OFlag::O_NONBLOCK.bits())
        .open(&real)
        .map_err(|error| unreadable(&real, error))?;
    let opened = file.metadata().map_err(|error| unreadable(&real, error))?;
    check(&real, &opened, euid)?;
    if !opened.is_file() {
        return Err(Unsafe::Kind {
            path: real,
            expected: "regular file",
        });
    }
    Ok(file)
}

/// Checks that an existing folder can be trusted; gives its real path and what it is.
///
/// # Errors
/// [`Unsafe`], with the part of the way that is not.
pub fn check_folder(path: &Path, euid: u32) -> Result<(PathBuf, Metadata), Unsafe> {
    let (real, seen) = resolve(path, euid)?;
    if seen.is_dir() {
        Ok((real, seen))
    } else {
        Err(Unsafe::Kind {
            path: real,
            expected: "folder",
        })
    }
}

/// Walks a path from the root, part by part, and checks each. Gives the path without links.
fn resolve(path: &Path, euid: u32) -> Result<(PathBuf, Metadata), Unsafe> {
    let absolute = std::path::absolute(path).map_err(|error| unreadable(path, error))?;
    // What is still to be walked, the next part last.
    let mut rest: Vec<OsString> = parts(&absolute);
    let mut real = PathBuf::from("/");
    let mut seen = look(&real, euid)?;
    let mut links = 0;
    while let Some(part) = rest.pop() {
        if part == ".." {
            real.pop();
            seen = look(&real, euid)?;
            continue;
        }
        let next = real.join(&part);
        let found = look(&next, euid)?;
        if found.is_symlink() {
            links += 1;
            if links > MAX_LINKS {
                return Err(Unsafe::Links { path: absolute });
            }
            let target = fs::read_link(&next).map_err(|error| unreadable(&next, error))?;
            if target.is_absolute() {
                real = PathBuf::from("/");
            }
            rest.extend(parts(&target));
        } else {
            real = next;
            seen = found;
        }
    }
    Ok((real, seen))
}

fn look(path: &Path, euid: u32) -> Result<Metadata, Unsafe> {
    let found = fs::symlink_metadata(path).map_err(|error| unreadable(path, error))?;
    check(path, &found, euid)?;
    Ok(found)
}

/// A link's own mode says nothing: who can replace it is said by the folder that it stands in.
fn check(path: &Path, found: &Metadata, euid: u32) -> Result<(), Unsafe> {
    if found.uid() != 0 && found.uid() != euid {
        return Err(Unsafe::Owner {
            path: path.to_owned(),
            owner: found.uid(),
        });
    }
    let sticky_of_root = found.is_dir() && found.mode() & STICKY != 0 && found.uid() == 0;
    if found.is_symlink() || sticky_of_root || found.mode() & WRITABLE_BY_OTHERS == 0 {
        return Ok(());
    }
    Err(Unsafe::Writable {
        path: path.to_owned(),
        mode: found.mode() & 0o7777,
    })
}

/// The parts of a path, the first one last; `.` and the root fall away.
fn parts(path: &Path) -> Vec<OsString> {
    path.components()
        .rev()
        .filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir))
        .map(|part| part.as_os_str().to_owned())
        .collect()
}

fn unreadable(path: &Path, error: io::Error) -> Unsafe {
    Unsafe::Unreadable {
        path: path.to_owned(),
        error,
    }
}
