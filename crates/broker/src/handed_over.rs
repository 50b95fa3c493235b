//! Sockets that systemd hands over, by name (DESIGN 5): one for each configured role, each a listening
//! stream that is bound to a path. Anything else is a fault, and all faults are told at once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use listenfd::ListenFd;
use nix::sys::socket::{getsockopt, sockopt::AcceptConn};
use policy::{Config, Role};
use proto::RoleName;

use crate::exit::Fault;
use crate::users::gid_of;

/// How the names of what is handed over are stated.
const NAMES: &str = "LISTEN_FDNAMES";

/// What was handed over, and under which names; not looked at yet.
pub struct HandedOver {
    sockets: ListenFd,
    names: Vec<String>,
}

/// One role's socket, and where it is.
#[derive(Debug)]
pub struct Handed {
    /// It listens already.
    pub listener: UnixListener,
    /// The path that it is bound to.
    pub path: PathBuf,
}

impl HandedOver {
    /// What the environment says. To be called before there is a second thread: it takes what it has
    /// read out of the environment.
    pub fn from_env() -> Self {
        let sockets = ListenFd::from_env();
        let names = std::env::var(NAMES).unwrap_or_default();
        Self {
            sockets,
            names: names.split(':').map(str::to_owned).collect(),
        }
    }

    /// The socket of each role; `None` if nothing was handed over.
    ///
    /// # Errors
    /// Every fault: names that are no role's, roles without a socket, sockets of another kind.
    pub fn take(mut self, config: &Config) -> Result<Option<BTreeMap<RoleName, Handed>>, Fault> {
        if self.sockets.len() == 0 {
            return Ok(None);
        }
        if self.names.len() != self.sockets.len() {
            return Err(Fault::Configuration(format!(
                "{} sockets are handed over, but {NAMES} has {} names: let each .socket unit say \
                 FileDescriptorName=",
                self.sockets.len(),
                self.names.len()
            )));
        }
        let names = std::mem::take(&mut self.names);
        let mut faults = misfits(names.iter().map(String::as_str), config);
        let mut taken = BTreeMap::new();
        for (index, name) in names.into_iter().enumerate() {
            match self.socket(index) {
                Ok(handed) => {
                    if let Ok(role) = RoleName::new(&name) {
                        taken.insert(role, handed);
                    }
                }
                Err(why) => faults.push(format!("the socket handed over as {name:?} {why}")),
            }
        }
        if faults.is_empty() {
            Ok(Some(taken))
        } else {
            Err(Fault::Configuration(faults.join("\n")))
        }
    }

    fn socket(&mut self, index: usize) -> Result<Handed, String> {
        const UNIT: &str = "let its .socket unit say ListenStream=/run/rolebroker/<role>.sock";
        let listener = self
            .sockets
            .take_unix_listener(index)
            .map_err(|error| format!("is no Unix stream socket ({error}): {UNIT}"))?
            .ok_or("was taken before")?;
        let listens = getsockopt(&listener, AcceptConn).map_err(|error| {
            format!("cannot be looked at (fd {}): {error}", listener.as_raw_fd())
        })?;
        if !listens {
            return Err(format!("does not listen: {UNIT}, and Accept=no"));
        }
        let path = listener
            .local_addr()
            .ok()
            .and_then(|address| address.as_pathname().map(Path::to_owned))
            .ok_or_else(|| format!("is not bound to a path: {UNIT}"))?;
        listener
            .set_nonblocking(true)
            .map_err(|error| format!("cannot be used: {error}"))?;
        Ok(Handed { listener, path })
    }
}

/// How the names of handed-over sockets and the roles of a configuration differ, one fault each.
pub fn misfits<'a>(names: impl Iterator<Item = &'a str>, config: &Config) -> Vec<String> {
    let mut faults = Vec::new();
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            faults.push(format!(
                "two sockets are handed over as {name:?}: stop one .socket unit"
            ));
        } else if !config.roles.keys().any(|role| role.as_str() == name) {
            faults.push(format!(
                "a socket is handed over as {name:?}, which is no role: configure roles.{name}, or \
                 systemctl disable --now rolebroker@{name}.socket, and restart"
            ));
        }
    }
    for role in config.roles.keys() {
        if !seen.contains(role.as_str()) {
            faults.push(format!(
                "roles.{role}: no socket is handed over for it, but for others: systemctl enable \
                 rolebroker@{role}.socket, and restart both"
            ));
        }
    }
    faults
}

/// What a reviewer should know of a socket that the broker did not bind itself: where it lets more
/// people connect than its role's `mode` and `group` say.
pub fn warning(role: &Role, path: &Path) -> Option<String> {
    let found = fs::symlink_metadata(path).ok()?;
    // Connecting takes the right to write.
    let open = found.mode() & 0o222 & !role.mode;
    let group = role.group.as_deref().and_then(|name| gid_of(name).ok());
    let other_group = group.is_some_and(|gid| gid != found.gid());
    (open != 0 || other_group).then(|| {
        format!(
            "roles.{}: its socket was handed over, so its mode and group count for nothing: let \
             rolebroker@{}.socket say SocketMode= and SocketGroup=",
            role.name, role.name
        )
    })
}
