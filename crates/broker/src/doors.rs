//! The open sockets, by role: each with the task that accepts on it.

use std::collections::BTreeMap;
use std::rc::Rc;

use policy::Config;
use proto::RoleName;
use tokio::net::UnixListener;
use tokio::task::AbortHandle;

use crate::lobby::Lobby;
use crate::sockets::SocketFile;

/// The open sockets. Dropping one stops accepting on it and unlinks it.
#[derive(Debug, Default)]
pub struct Doors {
    open: BTreeMap<RoleName, Door>,
}

#[derive(Debug)]
struct Door {
    _file: SocketFile,
    accepting: AbortHandle,
}

impl Drop for Door {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Doors {
    /// Begins to accept on a role's socket.
    pub fn open(
        &mut self,
        lobby: &Rc<Lobby>,
        role: RoleName,
        listener: UnixListener,
        file: SocketFile,
    ) {
        tracing::info!(
            event = "listening",
            role = role.as_str(),
            address = %file.path.display()
        );
        let accepting = tokio::task::spawn_local(Rc::clone(lobby).accept(role.clone(), listener))
            .abort_handle();
        let door = Door {
            _file: file,
            accepting,
        };
        self.open.insert(role, door);
    }

    /// Closes the sockets of roles that are gone.
    pub fn keep_only(&mut self, config: &Config) {
        self.open.retain(|role, _| config.roles.contains_key(role));
    }

    /// Closes all.
    pub fn close(&mut self) {
        self.open.clear();
    }
}
