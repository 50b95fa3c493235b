//! How the process ends: the exit codes of DESIGN 10, and the faults that lead to them.

use std::io::ErrorKind;
use std::process::ExitCode;

/// Why the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It did what it was asked.
    Done,
    /// The command line is wrong.
    Usage,
    /// A fault of the broker's own.
    Internal,
    /// The store cannot be written.
    Store,
    /// The system does not let the broker do what the configuration says.
    Permission,
    /// The configuration is wrong, or cannot be trusted.
    Configuration,
}

impl Exit {
    /// The number that the parent process sees.
    pub fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Usage => 64,
            Exit::Internal => 70,
            Exit::Store => 74,
            Exit::Permission => 77,
            Exit::Configuration => 78,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.code())
    }
}

/// Why the broker does not start, or does not take a configuration: in words for a person, who
/// reads what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The configuration is wrong or unsafe: one fault a line.
    #[error("{0}")]
    Configuration(String),
    /// The system refused.
    #[error("{0}")]
    Permission(String),
    /// The store cannot be read or written.
    #[error("{0}")]
    Store(String),
    /// Anything else.
    #[error("{0}")]
    Internal(String),
}

impl Fault {
    /// The store cannot be had, or cannot be trusted.
    pub fn of_store(error: &store::StoreError) -> Self {
        Fault::Store(error.to_string())
    }

    /// A failed system call on a path: a refusal, a disk without room, or else a fault of the
    /// configuration that names the path.
    pub fn of_path(doing: &str, path: &std::path::Path, error: &std::io::Error) -> Self {
        let text = format!("{doing} {}: {error}", path.display());
        match error.kind() {
            ErrorKind::PermissionDenied => Fault::Permission(text),
            ErrorKind::ReadOnlyFilesystem => Fault::Permission(format!(
                "{text}: mount it for writing, or configure another folder"
            )),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                Fault::Store(format!("{text}: make room there"))
            }
            _ => Fault::Configuration(text),
        }
    }

    /// How the process ends with it.
    pub fn exit(&self) -> Exit {
        match self {
            Fault::Configuration(_) => Exit::Configuration,
            Fault::Permission(_) => Exit::Permission,
            Fault::Store(_) => Exit::Store,
            Fault::Internal(_) => Exit::Internal,
        }
    }
}
