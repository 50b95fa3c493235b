//! One socket for each role, `<runtime_dir>/<role>.sock`: bound with exactly its mode, given its
//! group, and only then listening (DESIGN 5). Nothing is chmod-ed.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::unistd::{Gid, chown};
use policy::Role;
use tokio::net::{UnixListener, UnixSocket};

use crate::exit::Fault;
use crate::folders::UmaskFor;
use crate::users::gid_of;

/// Connections that may wait to be accepted on one socket.
pub const LISTEN_BACKLOG: u32 = 256;
/// The longest path of a Unix socket, in bytes (`sun_path` without its end).
pub const MAX_SOCKET_PATH: usize = 107;

/// Where sockets come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Supply {
    /// The broker binds them in this folder, those of new roles too.
    Bound(PathBuf),
    /// The service manager has handed over all there are, and keeps them.
    HandedOver,
}

/// A socket's place in the file system. One that the broker bound is unlinked when this is dropped,
/// if it is still there; one that was handed over is the service manager's, and stays.
#[derive(Debug)]
pub struct SocketFile {
    /// Where it is.
    pub path: PathBuf,
    /// Device and inode of what the broker bound.
    bound: Option<(u64, u64)>,
}

impl SocketFile {
    /// The place of a socket that was handed over.
    pub fn handed_over(path: PathBuf) -> Self {
        Self { path, bound: None }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let Some(bound) = self.bound else {
            return;
        };
        let ours =
            fs::symlink_metadata(&self.path).is_ok_and(|found| (found.dev(), found.ino()) == bound);
        if ours && let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(
                event = "socket_left",
                address = %self.path.display(),
                detail = %error
            );
        }
    }
}

/// Where a role's socket is.
pub fn address(folder: &Path, role: &Role) -> PathBuf {
    folder.join(format!("{}.sock", role.name))
}

/// Binds a role's socket and listens on it. A socket that nobody answers on is replaced.
///
/// # Errors
/// Somebody answers there, something else stands there, or the system refuses.
pub async fn bind(folder: &Path, role: &Role) -> Result<(UnixListener, SocketFile), Fault> {
    let path = address(folder, role);
    if path.as_os_str().as_bytes().len() > MAX_SOCKET_PATH {
        return Err(Fault::Configuration(format!(
            "{} is over {MAX_SOCKET_PATH} bytes: configure a shorter runtime_dir",
            path.display()
        )));
    }
    let group =
        match &role.group {
            None => None,
            Some(name) => Some(gid_of(name).map_err(|why| {
                Fault::Configuration(format!("roles.{}: group: {why}", role.name))
            })?),
        };
    clear_stale(&path).await?;
    let refused = |doing: &str, error: io::Error| Fault::of_path(doing, &path, &error);
    let socket = UnixSocket::new_stream().map_err(|error| refused("cannot make", error))?;
    {
        let _umask = UmaskFor::mode(role.mode);
        socket
            .bind(&path)
            .map_err(|error| refused("cannot bind", error))?;
    }
    let found = fs::symlink_metadata(&path).map_err(|error| refused("cannot look at", error))?;
    let file = SocketFile {
        path: path.clone(),
        bound: Some((found.dev(), found.ino())),
    };
    // Until it listens, connecting is refused: nobody gets in before the group is right.
    if let Some(gid) = group {
        chown(&path, None, Some(Gid::from_raw(gid)))
            .map_err(|error| refused("cannot give the group of", error.into()))?;
    }
    let listener = socket
        .listen(LISTEN_BACKLOG)
        .map_err(|error| refused("cannot listen on", error))?;
    Ok((listener, file))
}

/// Removes a socket that nobody answers on. What is not a socket, or is answered, stays.
async fn clear_stale(path: &Path) -> Result<(), Fault> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Fault::of_path("cannot look at", path, &error)),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(Fault::Configuration(format!(
                "{} is not a socket: remove it",
                path.display()
            )));
        }
        Ok(_) => {}
    }
    let probe = UnixSocket::new_stream()
        .map_err(|error| Fault::of_path("cannot probe", path, &error))?
        .connect(path)
        .await;
    match probe {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(|error| Fault::of_path("cannot remove", path, &error))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // A full backlog is somebody who is busy, and so is an answer.
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
            Err(Fault::of_path("cannot probe", path, &error))
        }
        Ok(_) | Err(_) => Err(Fault::Configuration(format!(
            "{} is answered: another broker runs there; stop it, or configure another runtime_dir",
            path.display()
        ))),
    }
}
