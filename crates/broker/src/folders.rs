//! The runtime and the state folder: made if absent, checked, and claimed by one broker at a time.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use nix::sys::stat::{Mode, umask};
use nix::unistd::geteuid;
use policy::Settings;
use store::beside::LOCK;

use crate::exit::Fault;
use crate::safety::{self, Unsafe};

/// The umask of the whole process, but for the moment in which a socket or its folder is made.
pub const UMASK: u32 = 0o077;

const RUNTIME_MODE: u32 = 0o755;
const STATE_MODE: u32 = 0o700;

/// Another umask for as long as this lives; [`UMASK`] afterwards. It is the whole process's: nothing
/// else may make files meanwhile outside the state folder, which nobody else can enter.
#[derive(Debug)]
pub struct UmaskFor(());

impl UmaskFor {
    /// Whatever is made now gets at most the bits of `mode`.
    #[must_use = "the umask is back as soon as this is dropped"]
    pub fn mode(mode: u32) -> Self {
        umask(Mode::from_bits_truncate(0o777 & !mode));
        Self(())
    }
}

impl Drop for UmaskFor {
    fn drop(&mut self) {
        umask(Mode::from_bits_truncate(UMASK));
    }
}

/// Both folders, locked until this is dropped or the process ends.
#[derive(Debug)]
pub struct Folders {
    /// Where the sockets are.
    pub runtime: PathBuf,
    /// Where the store is.
    pub state: PathBuf,
    _locks: [File; 2],
}

impl Folders {
    /// Makes, checks and locks both folders.
    ///
    /// # Errors
    /// One cannot be made, cannot be trusted, or is another broker's.
    pub fn claim(settings: &Settings) -> Result<Self, Fault> {
        let runtime = PathBuf::from(&settings.runtime_dir);
        let state = PathBuf::from(&settings.state_dir);
        make(&runtime, RUNTIME_MODE)?;
        make(&state, STATE_MODE)?;
        check(&runtime)?;
        let mode = check(&state)?.mode() & 0o777;
        if mode & !STATE_MODE != 0 {
            return Err(Fault::Configuration(format!(
                "state_dir {} is open to others (mode {mode:04o}): chmod 0700",
                state.display()
            )));
        }
        let locks = [lock(&runtime)?, lock(&state)?];
        Ok(Self {
            runtime,
            state,
            _locks: locks,
        })
    }
}

fn make(path: &Path, mode: u32) -> Result<(), Fault> {
    let _umask = UmaskFor::mode(mode);
    DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(path)
        .map_err(|error| Fault::of_path("cannot make", path, &error))
}

fn check(path: &Path) -> Result<std::fs::Metadata, Fault> {
    match safety::check_folder(path, geteuid().as_raw()) {
        Ok((_, found)) => Ok(found),
        Err(Unsafe::Unreadable { path, error }) => {
            Err(Fault::of_path("cannot look at", &path, &error))
        }
        Err(
            error @ (Unsafe::Owner { .. }
            | Unsafe::Writable { .. }
            | Unsafe::Kind { .. }
            | Unsafe::Links { .. }),
        ) => Err(Fault::Configuration(error.to_string())),
    }
}

fn lock(path: &Path) -> Result<File, Fault> {
    // A file that nobody else can open: what others may read, they may lock too.
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(OFlag::O_NOFOLLOW.bits())
        .open(path.join(LOCK))
        .map_err(|error| Fault::of_path("cannot open", &path.join(LOCK), &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Fault::Configuration(format!(
            "another broker runs on {}: stop it, or configure another folder",
            path.display()
        ))),
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
            Err(Fault::Configuration(format!(
                "{}: this file system cannot lock a file: configure another folder",
                path.display()
            )))
        }
        Err(TryLockError::Error(error)) => Err(Fault::of_path("cannot lock", path, &error)),
    }
}
