//! `write_file`, and what it shares with `edit_file`: a file is written beside the old one and renamed, so that
//! nobody ever sees half of it and links are never written through.

use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use cap_std::fs::{
    Dir, File, Metadata, MetadataExt, OpenOptions, OpenOptionsExt, Permissions, PermissionsExt,
};
use client::{Answer, Label};

use super::opening::{kind, locate};
use super::problem::Problem;
use crate::folders::Folders;
use crate::watch::Watch;

/// The largest content that is written, in bytes.
pub const MAX_WRITE_BYTES: usize = 4 << 20;

pub(super) fn write_file(
    folders: &Folders,
    path: &str,
    content: &str,
    watch: &Watch,
) -> Result<Answer, Problem> {
    let target = Target::open(folders, path)?;
    target.replace(content, watch, |_| Ok(()))?;
    // It tells what the agent has said itself, and nothing of what is in the folder: no session rises by it.
    Ok(Answer {
        content: format!("wrote {} bytes to {path}\n", content.len()),
        label: Label::BOTTOM,
    })
}

/// A file to be written, there or not, by the handle of its folder.
pub(super) struct Target<'a> {
    pub(super) parent: Dir,
    pub(super) name: &'a Path,
    pub(super) label: Label,
}

impl<'a> Target<'a> {
    pub(super) fn open(folders: &'a Folders, path: &'a str) -> Result<Self, Problem> {
        let (dir, below, asked) = locate(folders, path)?;
        let name = below.file_name().map(Path::new).ok_or(Problem::Root)?;
        asked.writable()?;
        let parent = match below.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => dir.open_dir(parent)?,
            Some(_) | None => dir.try_clone()?,
        };
        // A link may have led into another folder that is served.
        let place = asked
            .and(folders.place_of(&parent, Some(name))?)
            .writable()?;
        Ok(Self {
            parent,
            name,
            label: place.label,
        })
    }

    /// What is there now, if that is a regular file.
    pub(super) fn now(&self) -> Result<Option<Metadata>, Problem> {
        match self.parent.symlink_metadata(self.name) {
            Ok(meta) if meta.is_file() => Ok(Some(meta)),
            Ok(meta) => Err(Problem::NotAFile(kind(&meta))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Puts a file with this content in its place. `sure` is asked last of all, about what is there by then.
    pub(super) fn replace(
        &self,
        content: &str,
        watch: &Watch,
        sure: impl FnOnce(Option<&Metadata>) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        if content.len() > MAX_WRITE_BYTES {
            return Err(Problem::LargeContent);
        }
        // Never setuid or setgid for what an agent wrote.
        let before = self.now()?.map(|meta| meta.mode() & 0o777);
        // Until it has the old file's mode nobody else may read it.
        let mode = if before.is_some() { 0o600 } else { 0o666 };
        let (beside, mut file) = create_beside(&self.parent, mode)?;
        let written = (|| {
            file.write_all(content.as_bytes())?;
            if let Some(mode) = before {
                file.set_permissions(Permissions::from_mode(mode))?;
            }
            file.sync_all()?;
            watch.look()?;
            sure(self.now()?.as_ref())?;
            self.parent.rename(&beside, &self.parent, self.name)?;
            Ok(())
        })();
        if written.is_err() {
            // The first error is the one to tell.
            let _ = self.parent.remove_file(&beside);
        }
        written
    }
}

fn create_beside(parent: &Dir, mode: u32) -> io::Result<(String, File)> {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(mode);
    loop {
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let name = format!(".rolebroker-{}-{number}.new", std::process::id());
        match parent.open_with(&name, &options) {
            Ok(file) => return Ok((name, file)),
            // Left by a process of the same id that was killed: each try takes the next name.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}
