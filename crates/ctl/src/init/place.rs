//! Files and folders as the daemon will want them: with the modes that are stated here, whatever the umask, and
//! only where nobody else can put something else in their place.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown,
};
use std::path::{Component, Path, PathBuf};

use nix::fcntl::OFlag;

use crate::exit::{NotDone, Usage};

const FILE_MODE: u32 = 0o644;
/// Of the folders above a configuration.
pub(super) const OPEN: u32 = 0o755;
const STICKY: u32 = 0o1000;
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// What becomes of a file that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Existing {
    /// It stays, and nothing is written.
    Kept,
    /// Another one takes its place.
    Replaced,
}

/// Who a made folder is given to: uid, and gid if it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owner(pub(super) u32, pub(super) Option<u32>);

/// The path from the root, without `.` and a `/` at the end. Nothing is looked up.
///
/// # Errors
/// It has `..` in it, or cannot be written into a configuration.
pub(super) fn absolute(path: &Path) -> Result<PathBuf, Usage> {
    let bad = |why: &str| Usage(format!("{}: {why}", path.display()));
    if path.components().any(|part| part == Component::ParentDir) {
        return Err(bad("write it without `..`"));
    }
    let absolute = std::path::absolute(path).map_err(|error| bad(&error.to_string()))?;
    let absolute: PathBuf = absolute.components().collect();
    match absolute.to_str() {
        Some(text) if text.contains(char::is_control) => {
            Err(bad("it has a control character in it: name another"))
        }
        Some(_) => Ok(absolute),
        None => Err(bad("it is not UTF-8: name another")),
    }
}

/// Makes a folder, and those above it that are missing; gives those that it made. One that is there stays as it is.
///
/// # Errors
/// One cannot be made, or something else stands there.
pub(super) fn make_folder(
    path: &Path,
    above: u32,
    mode: u32,
    owner: Option<Owner>,
) -> Result<Vec<PathBuf>, NotDone> {
    let missing: Vec<&Path> = path
        .ancestors()
        .take_while(|folder| std::fs::symlink_metadata(folder).is_err())
        .collect();
    if missing.is_empty() && !path.is_dir() {
        return Err(NotDone(format!("{} is not a folder", path.display())));
    }
    let mut made = Vec::new();
    for folder in missing.into_iter().rev() {
        let last = folder == path;
        let (mode, owner) = if last { (mode, owner) } else { (above, None) };
        make_one(folder, mode, owner).map_err(|error| {
            NotDone(format!(
                "cannot make the folder {}: {error}",
                folder.display()
            ))
        })?;
        made.push(folder.to_owned());
    }
    Ok(made)
}

fn make_one(path: &Path, mode: u32, owner: Option<Owner>) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)?;
    // Through a handle: whoever can write the folder above cannot have another one changed instead.
    let folder = OpenOptions::new()
        .read(true)
        .custom_flags((OFlag::O_NOFOLLOW | OFlag::O_DIRECTORY).bits())
        .open(path)?;
    if let Some(Owner(uid, gid)) = owner {
        fchown(&folder, Some(uid), gid)?;
    }
    folder.set_permissions(Permissions::from_mode(mode))
}

/// That the daemon will trust what is written below this existing folder: it and all above it belong to root or to
/// `euid`, and nobody else can write them.
///
/// # Errors
/// Which one is not so, and what to do.
pub(super) fn check_trusted(folder: &Path, euid: u32) -> Result<(), NotDone> {
    let unreadable =
        |path: &Path, error: io::Error| NotDone(format!("{}: {error}", path.display()));
    let real = folder
        .canonicalize()
        .map_err(|error| unreadable(folder, error))?;
    for part in real.ancestors() {
        let found = part.metadata().map_err(|error| unreadable(part, error))?;
        let (owner, mode) = (found.uid(), found.mode() & 0o7777);
        if owner != 0 && owner != euid {
            return Err(NotDone(format!(
                "{} belongs to uid {owner}, who could replace the configuration, so the daemon would refuse it: \
                 name another place with --output, or chown it",
                part.display()
            )));
        }
        let sticky_of_root = owner == 0 && mode & STICKY != 0;
        if mode & WRITABLE_BY_OTHERS != 0 && !sticky_of_root {
            return Err(NotDone(format!(
                "{path} can be written by others (mode {mode:04o}), so the daemon would refuse the configuration: \
                 chmod go-w {quoted}",
                path = part.display(),
                quoted = super::next::quoted(part)
            )));
        }
    }
    Ok(())
}

/// Writes a file beside its place and moves it there, so that nobody ever sees half of it.
///
/// # Errors
/// It cannot be written, or there is one and it is to be kept.
pub(super) fn write(path: &Path, text: &str, existing: Existing) -> Result<(), NotDone> {
    let fault = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => there_is_one(path),
        _ => NotDone(format!("cannot write {}: {error}", path.display())),
    };
    let folder = path
        .parent()
        .ok_or_else(|| NotDone(format!("{} is no file", path.display())))?;
    let mut file = tempfile::Builder::new()
        .prefix(".rolebroker-")
        .tempfile_in(folder)
        .map_err(fault)?;
    file.write_all(text.as_bytes()).map_err(fault)?;
    let opened: &File = file.as_file();
    opened
        .set_permissions(Permissions::from_mode(FILE_MODE))
        .map_err(fault)?;
    opened.sync_all().map_err(fault)?;
    match existing {
        Existing::Kept => file.persist_noclobber(path),
        Existing::Replaced => file.persist(path),
    }
    .map_err(|refused| fault(refused.error))?;
    Ok(())
}

/// That a file is in the way.
pub(super) fn there_is_one(path: &Path) -> NotDone {
    NotDone(format!(
        "{} is there already: --force replaces what is there, --output FILE writes elsewhere, --print shows what would be \
         written",
        path.display()
    ))
}
