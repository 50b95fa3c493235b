//! Loading the configuration anew: whole, or not at all.

use std::path::Path;
use std::rc::Rc;

use engine::RequestId;
use policy::Config;
use proto::RoleName;
use tokio::net::UnixListener;

use crate::configuration::{self, Loaded, Origin};
use crate::handed_over;
use crate::inbox::{Inbox, Input};
use crate::sockets::{self, SocketFile, Supply};

/// Reloads that may wait for the one under way.
pub const MAX_RELOADS: usize = 64;

/// A configuration that can be taken: its new sockets are bound already.
#[derive(Debug)]
pub struct Reloaded {
    /// What it says.
    pub loaded: Loaded,
    /// The sockets of its new roles.
    pub sockets: Vec<(RoleName, UnixListener, SocketFile)>,
}

/// Loads beside the reactor, which goes on meanwhile, and puts the outcome into the inbox.
pub async fn reload(current: Loaded, supply: Supply, request: Option<RequestId>, inbox: Rc<Inbox>) {
    let outcome = prepare(current.origin, &current.config, &supply).await;
    inbox.push(Input::Reloaded { request, outcome });
}

async fn prepare(origin: Origin, current: &Config, supply: &Supply) -> Result<Reloaded, String> {
    let loaded = tokio::task::spawn_blocking(move || configuration::load(&origin))
        .await
        .map_err(|error| error.to_string())?
        .map_err(|fault| fault.to_string())?;
    let mut fixed = needs_restart(current, &loaded.config);
    let folder = match supply {
        Supply::Bound(folder) => Some(folder),
        Supply::HandedOver => {
            let names = current.roles.keys().map(RoleName::as_str);
            fixed.extend(handed_over::misfits(names, &loaded.config));
            None
        }
    };
    if !fixed.is_empty() {
        return Err(fixed.join("\n"));
    }
    let sockets = match folder {
        Some(folder) => bind_new(current, &loaded.config, folder).await?,
        None => Vec::new(),
    };
    Ok(Reloaded { loaded, sockets })
}

/// Binds the sockets of roles that are new. Those bound so far are unlinked again if one fails.
async fn bind_new(
    current: &Config,
    new: &Config,
    folder: &Path,
) -> Result<Vec<(RoleName, UnixListener, SocketFile)>, String> {
    let mut sockets = Vec::new();
    for (name, role) in &new.roles {
        if !current.roles.contains_key(name) {
            let (listener, file) = sockets::bind(folder, role)
                .await
                .map_err(|fault| fault.to_string())?;
            sockets.push((name.clone(), listener, file));
        }
    }
    Ok(sockets)
}

/// What a running broker cannot change: nothing is moved or chmod-ed under its peers.
fn needs_restart(old: &Config, new: &Config) -> Vec<String> {
    let mut fixed = Vec::new();
    if old.settings.runtime_dir != new.settings.runtime_dir {
        fixed.push("broker.runtime_dir cannot change in a reload: restart".to_owned());
    }
    if old.settings.state_dir != new.settings.state_dir {
        fixed.push("broker.state_dir cannot change in a reload: restart".to_owned());
    }
    for (name, role) in &new.roles {
        let Some(before) = old.roles.get(name) else {
            continue;
        };
        if before.mode != role.mode || before.group != role.group {
            fixed.push(format!(
                "roles.{name}: mode and group of its socket cannot change in a reload: restart"
            ));
        }
    }
    fixed
}
