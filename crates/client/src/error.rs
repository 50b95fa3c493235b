//! What can go wrong between a role and the broker: what happened, to what, and what to do next.
//!
//! That a call was denied or failed is no error but an [`crate::Outcome`].

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use proto::{ErrorCode, NameError, RoleKind};

/// Why the broker could not be reached, or could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The socket could not be connected to.
    #[error("cannot connect to {}: {cause}; {}", path.display(), advice(cause))]
    Connect {
        /// The socket.
        path: PathBuf,
        /// What the system said; part of the message, so no `source`.
        cause: io::Error,
    },
    /// The broker hung up before it said anything: it does not admit this uid.
    #[error(
        "the broker closed {} at once: it does not admit uid {} to this role; name that user in the \
         role's `users` and reload, or connect as one of them",
        path.display(), uid.map_or_else(|| "?".to_owned(), |uid| uid.to_string())
    )]
    NotAdmitted {
        /// The socket.
        path: PathBuf,
        /// This process's uid, where it can be told.
        uid: Option<u32>,
    },
    /// Nobody answered the hello.
    #[error(
        "{} was connected, but nothing answered within {seconds} s; is rolebrokerd hung? see its log",
        path.display()
    )]
    NoWelcome {
        /// The socket.
        path: PathBuf,
        /// How long was waited.
        seconds: u64,
    },
    /// The socket is that of a role of another kind.
    #[error(
        "{} is the socket of {} role `{role}`, and {} role is needed here; name the socket of another role",
        path.display(), article(*found), article(*wanted)
    )]
    WrongKind {
        /// The socket.
        path: PathBuf,
        /// The role that it belongs to.
        role: String,
        /// That role's kind.
        found: RoleKind,
        /// The kind that was expected.
        wanted: RoleKind,
    },
    /// The connection ended; calls that were under way run on, and their answers are told to a repeat.
    #[error(
        "the connection to {} ended ({reason}); connect again, and repeat a call under the same session and \
         number: it is answered, not run again",
        path.display()
    )]
    Lost {
        /// The socket.
        path: PathBuf,
        /// How it ended.
        reason: String,
    },
    /// The broker did not take a request.
    #[error("the broker did not take the request: {code:?}: {detail}")]
    Rejected {
        /// Which rule was broken.
        code: ErrorCode,
        /// The field's path and the rule.
        detail: String,
    },
    /// A request does not fit a frame.
    #[error(
        "the request takes {bytes} bytes and a frame holds {limit}; send less, or raise `max_frame`"
    )]
    TooLarge {
        /// What it takes.
        bytes: usize,
        /// What a frame holds.
        limit: usize,
    },
    /// A name is outside its alphabet.
    #[error(transparent)]
    Name(#[from] NameError),
    /// None of the offered tools is served or waits for an operator.
    #[error("the broker refused every offered tool: {reasons}; see `offers` of this role")]
    OfferRefused {
        /// Each tool, and why not.
        reasons: String,
    },
    /// The broker said what it should not; this library and the daemon do not fit.
    #[error(
        "the broker sent what this version does not understand ({detail}); are both of one version?"
    )]
    Misbehaved {
        /// What was wrong with it; no content.
        detail: String,
    },
}

impl Error {
    pub(crate) fn not_admitted(path: &Path) -> Self {
        Error::NotAdmitted {
            path: path.to_owned(),
            // The owner of /proc/self is the effective uid; std has no other way to it.
            uid: std::fs::metadata("/proc/self").ok().map(|meta| meta.uid()),
        }
    }

    pub(crate) fn misbehaved(detail: impl Into<String>) -> Self {
        Error::Misbehaved {
            detail: detail.into(),
        }
    }
}

fn article(kind: RoleKind) -> &'static str {
    match kind {
        RoleKind::Agent => "an agent",
        RoleKind::Runner => "a runner",
        RoleKind::Approver => "an approver",
        RoleKind::Operator => "an operator",
    }
}

/// What to do about a connection that could not be made.
fn advice(error: &io::Error) -> &'static str {
    // The kinds of std are many and not ours: the rest is one case.
    if error.kind() == io::ErrorKind::NotFound {
        "is rolebrokerd running, and is there such a role in its configuration? start it with \
         `rolebrokerd`; another folder of sockets is named with \
         ROLEBROKER_RUNTIME_DIR"
    } else if error.kind() == io::ErrorKind::ConnectionRefused {
        "is rolebrokerd running? start it with `rolebrokerd`"
    } else if error.kind() == io::ErrorKind::PermissionDenied {
        "the socket's `mode` or `group` does not let this user in; ask who configured the role"
    } else {
        "see whether rolebrokerd is running and the path is right"
    }
}
