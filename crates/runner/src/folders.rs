//! The folders that are served, and the label of what lies in each: the longest one that contains a path counts.

use std::os::fd::AsRawFd;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use client::{DataClass, Label};

/// What may be done below a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Looked at.
    Read,
    /// Also changed.
    Write,
}

/// A folder as the command line names it: `DIR[:class[:untrusted]]`, and as `[[folder]]` does.
///
/// On the command line it counts as internal without a class, as written by the house without `untrusted`, and
/// may be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// The folder.
    pub path: PathBuf,
    /// What its files count as.
    pub label: Label,
    /// What may be done below it.
    pub access: Access,
}

impl FromStr for Folder {
    type Err = FolderError;

    fn from_str(text: &str) -> Result<Self, FolderError> {
        let (rest, untrusted) = match text.strip_suffix(":untrusted") {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        let stated = rest
            .rsplit_once(':')
            .and_then(|(path, class)| Some((path, DataClass::from_str(class).ok()?)));
        let (path, class) = match stated {
            Some(stated) => stated,
            None if untrusted => return Err(FolderError::NoClass),
            None => (rest, DataClass::Internal),
        };
        if path.is_empty() {
            return Err(FolderError::NoPath);
        }
        Ok(Folder {
            path: PathBuf::from(path),
            label: Label { class, untrusted },
            access: Access::Write,
        })
    }
}

/// Why folders cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Only a class was given.
    #[error("a folder is DIR[:class[:untrusted]], and the DIR is missing")]
    NoPath,
    /// `untrusted` without a class.
    #[error(
        "a folder is DIR[:class[:untrusted]]: name the class too (public, internal, confidential, secret)"
    )]
    NoClass,
    /// The folder cannot be opened.
    #[error("the folder {} cannot be opened: {source}", path.display())]
    Open {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// What is there are no files.
    #[error("the folder {} is the kernel's own: what is below /proc and /sys is not served", path.display())]
    Kernel {
        /// The folder.
        path: PathBuf,
    },
    /// The folder was named twice.
    #[error("the folder {} is named twice", path.display())]
    Twice {
        /// The folder.
        path: PathBuf,
    },
}

/// Why a path leads to nothing that is served. Said to the agent behind the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PathError {
    #[error("must be an absolute path")]
    Relative,
    #[error("must have no `.`, `..` or empty parts")]
    Unclean,
    #[error("lies in no folder that is served")]
    Outside,
    #[error("cannot be told where it lies")]
    Unknown,
    #[error("lies in a folder that is served for reading only")]
    ReadOnly,
}

/// Where a path lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// What lies there counts as.
    pub label: Label,
    /// What may be done there.
    pub access: Access,
}

impl Place {
    /// Both at once: the higher label, the lesser access.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            label: self.label.join(other.label),
            access: match (self.access, other.access) {
                (Access::Write, Access::Write) => Access::Write,
                (Access::Read, _) | (_, Access::Read) => Access::Read,
            },
        }
    }

    /// An error where nothing may be changed.
    pub(crate) fn writable(self) -> Result<Self, PathError> {
        match self.access {
            Access::Write => Ok(self),
            Access::Read => Err(PathError::ReadOnly),
        }
    }
}

/// The opened folders.
pub struct Folders {
    /// Longest path first.
    opened: Vec<Opened>,
}

struct Opened {
    root: PathBuf,
    place: Place,
    dir: Dir,
}

impl Folders {
    /// Opens every folder, once.
    ///
    /// # Errors
    /// [`FolderError`] when one cannot be opened, or is named twice.
    pub fn open(folders: &[Folder]) -> Result<Self, FolderError> {
        let mut opened: Vec<Opened> = Vec::new();
        for Folder {
            path,
            label,
            access,
        } in folders
        {
            let failed = |source| FolderError::Open {
                path: path.clone(),
                source,
            };
            let stated = std::path::absolute(path).map_err(failed)?;
            let real = path.canonicalize().map_err(failed)?;
            if of_the_kernel(&real) {
                return Err(FolderError::Kernel { path: real });
            }
            if opened.iter().any(|other| other.root == real) {
                return Err(FolderError::Twice { path: real });
            }
            // An agent may use the name that was stated, although a link stands in it.
            let names = if stated == real {
                vec![real]
            } else {
                vec![real, stated]
            };
            for root in names {
                let dir = Dir::open_ambient_dir(path, ambient_authority()).map_err(failed)?;
                opened.push(Opened {
                    root,
                    place: Place {
                        label: *label,
                        access: *access,
                    },
                    dir,
                });
            }
        }
        opened.sort_by_key(|folder| std::cmp::Reverse(folder.root.components().count()));
        Ok(Self { opened })
    }

    /// The handle below which `path` is to be looked up, the path from there, and what the folder is.
    pub(crate) fn locate<'a>(
        &'a self,
        path: &'a str,
    ) -> Result<(&'a Dir, &'a Path, Place), PathError> {
        let rest = path.strip_prefix('/').ok_or(PathError::Relative)?;
        let unclean = |part: &str| matches!(part, "" | "." | "..");
        if !rest.is_empty() && rest.split('/').any(unclean) {
            return Err(PathError::Unclean);
        }
        let path = Path::new(path);
        let folder = self.containing(path).ok_or(PathError::Outside)?;
        let below = path
            .strip_prefix(&folder.root)
            .map_err(|_| PathError::Outside)?;
        let below = if below.as_os_str().is_empty() {
            Path::new(".")
        } else {
            below
        };
        Ok((&folder.dir, below, folder.place))
    }

    /// Where that lies which was really opened, wherever links led, or `name` in it.
    pub(crate) fn place_of(
        &self,
        opened: &impl AsRawFd,
        name: Option<&Path>,
    ) -> Result<Place, PathError> {
        let mut real = real_path(opened)?;
        real.extend(name);
        self.place_at(&real).ok_or(PathError::Outside)
    }

    /// What all that is served counts as, at least: a failure's label at the broker.
    pub(crate) fn floor(&self) -> Label {
        let least = |one: Label, other: Label| Label {
            class: one.class.min(other.class),
            untrusted: one.untrusted && other.untrusted,
        };
        let labels = self.opened.iter().map(|folder| folder.place.label);
        labels.reduce(least).unwrap_or(Label::BOTTOM)
    }

    /// Where an absolute path without links lies.
    pub(crate) fn place_at(&self, path: &Path) -> Option<Place> {
        self.containing(path).map(|folder| folder.place)
    }

    fn containing(&self, path: &Path) -> Option<&Opened> {
        self.opened
            .iter()
            .find(|folder| path.starts_with(&folder.root))
    }
}

/// The path of what is open, without links.
pub(crate) fn real_path(opened: &impl AsRawFd) -> Result<PathBuf, PathError> {
    // The kernel's own word, race-free, since it is asked about what is open already.
    let link = format!("/proc/self/fd/{}", opened.as_raw_fd());
    let real = std::fs::read_link(link).map_err(|_| PathError::Unknown)?;
    // Sockets and the like have no path.
    if real.components().next() != Some(Component::RootDir) || of_the_kernel(&real) {
        return Err(PathError::Outside);
    }
    Ok(real)
}

/// Whether a path leads to what is no file but the kernel's own: serving `/` does not serve that.
fn of_the_kernel(real: &Path) -> bool {
    real.starts_with("/proc") || real.starts_with("/sys")
}
