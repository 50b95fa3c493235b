//! Who this is, which users there are, and where things usually are for them.

use std::path::{Path, PathBuf};

use nix::unistd::{Uid, User, geteuid};

use super::place::Owner;
use crate::exit::Usage;

/// The uid of users whom the kernel cannot name; the daemon admits nobody by it.
const OVERFLOW_UID: u32 = 65_534;

/// A user of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    /// As it stands in the configuration: a name, or a number if there is none.
    pub(super) name: String,
    pub(super) uid: u32,
    gid: Option<u32>,
}

impl Known {
    /// This process's user.
    pub(super) fn own() -> Known {
        let uid = geteuid();
        // One without a name has its number.
        match User::from_uid(uid) {
            Ok(Some(user)) => Known::of(user),
            Ok(None) | Err(_) => Known::numbered(uid.as_raw()),
        }
    }

    /// A user by name or decimal number.
    ///
    /// # Errors
    /// There is none, with how to make one; or it cannot be one of a role.
    pub(super) fn find(name: &str, flag: &str) -> Result<Known, String> {
        let known = match name.parse::<u32>() {
            Ok(uid) => match User::from_uid(Uid::from_raw(uid)) {
                Ok(Some(user)) => Known::of(user),
                Ok(None) | Err(_) => Known::numbered(uid),
            },
            Err(_) => match User::from_name(name) {
                Ok(Some(user)) => Known::of(user),
                Ok(None) => return Err(missing(name, flag)),
                Err(error) => {
                    return Err(format!("the user {name:?} cannot be looked up: {error}"));
                }
            },
        };
        if known.uid == OVERFLOW_UID {
            return Err(format!(
                "{name} is the user of all whom the kernel cannot name: name another with {flag}"
            ));
        }
        Ok(known)
    }

    /// As the owner of a folder.
    pub(super) fn owner(&self) -> Owner {
        Owner(self.uid, self.gid)
    }

    fn of(user: User) -> Known {
        Known {
            name: user.name,
            uid: user.uid.as_raw(),
            gid: Some(user.gid.as_raw()),
        }
    }

    fn numbered(uid: u32) -> Known {
        Known {
            name: uid.to_string(),
            uid,
            gid: None,
        }
    }
}

fn missing(name: &str, flag: &str) -> String {
    let shown = name.escape_debug();
    format!(
        "there is no user {shown} on this machine: make it (`useradd --system {shown}`, or for rolebroker's own \
         users `systemd-sysusers` once its sysusers.d/rolebroker.conf is installed), or name another with {flag}"
    )
}

/// Where things usually are for an ordinary user.
#[derive(Debug)]
pub(super) struct Homes {
    home: Option<PathBuf>,
}

impl Homes {
    pub(super) fn of_process() -> Homes {
        let of_user = || User::from_uid(geteuid()).ok().flatten();
        Homes {
            home: variable("HOME").or_else(|| of_user().map(|user| user.dir)),
        }
    }

    /// `~/.config/rolebroker/rolebroker.toml`.
    ///
    /// # Errors
    /// As [`Self::folder`].
    pub(super) fn config(&self) -> Result<PathBuf, Usage> {
        let base = self.base("XDG_CONFIG_HOME", ".config", "--output")?;
        Ok(base.join("rolebroker/rolebroker.toml"))
    }

    /// `~/.local/share/rolebroker/files`.
    ///
    /// # Errors
    /// There is no home.
    pub(super) fn folder(&self) -> Result<PathBuf, Usage> {
        let base = self.base("XDG_DATA_HOME", ".local/share", "--folder")?;
        Ok(base.join("rolebroker/files"))
    }

    /// `~/.local/state/rolebroker`.
    ///
    /// # Errors
    /// As [`Self::folder`].
    pub(super) fn state(&self) -> Result<PathBuf, Usage> {
        let base = self.base("XDG_STATE_HOME", ".local/state", "--state-dir")?;
        Ok(base.join("rolebroker"))
    }

    /// Of the sockets: `$XDG_RUNTIME_DIR/rolebroker`, or, without a login that sets it, beside the state.
    ///
    /// # Errors
    /// As [`Self::folder`].
    pub(super) fn runtime(&self) -> Result<PathBuf, Usage> {
        match variable("XDG_RUNTIME_DIR") {
            Some(folder) => Ok(folder.join("rolebroker")),
            None => Ok(self
                .base("XDG_STATE_HOME", ".local/state", "--runtime-dir")?
                .join("rolebroker-sockets")),
        }
    }

    fn base(&self, name: &str, otherwise: &str, flag: &str) -> Result<PathBuf, Usage> {
        match (variable(name), &self.home) {
            (Some(stated), _) => Ok(stated),
            (None, Some(home)) => Ok(home.join(otherwise)),
            (None, None) => Err(Usage(format!("HOME is not set: set it, or say {flag}"))),
        }
    }
}

/// A folder as the environment states it: an absolute path, or else it does not count.
fn variable(name: &str) -> Option<PathBuf> {
    let value = std::env::var_os(name).map(PathBuf::from);
    value.filter(|path| path.is_absolute() && path != Path::new("/"))
}
