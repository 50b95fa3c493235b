//! Loading the configuration anew: whole, or not at all.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use engine::RequestId;
use policy::Config;
use proto::RoleName;
use tokio::net::UnixListener;

use crate::configuration::{self, Loaded, Origin};
use crate::inbox::{Inbox, Input};
use crate::sockets::{self, SocketFile};

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
pub async fn reload(
    current: Loaded,
    folder: PathBuf,
    request: Option<RequestId>,
    inbox: Rc<Inbox>,
) {
    let outcome = prepare(current.origin, &current.config, &folder).await;
    inbox.push(Input::Reloaded { request, outcome });
}

async fn prepare(origin: Origin, current: &Config, folder: &Path) -> Result<Reloaded, String> {
    let loaded = tokio::task::spawn_blocking(move || configuration::load(&origin))
        .await
        .map_err(|error| error.to_string())?
        .map_err(|fault| fault.to_string())?;
    let fixed = needs_restart(current, &loaded.config);
    if !fixed.is_empty() {
        return Err(fixed.join("\n"));
    }
    let mut sockets = Vec::new();
    for (name, role) in &loaded.config.roles {
        if !current.roles.contains_key(name) {
            // Those bound so far are unlinked again if one fails.
            let (listener, file) = sockets::bind(folder, role)
                .await
                .map_err(|fault| fault.to_string())?;
            sockets.push((name.clone(), listener, file));
        }
    }
    Ok(Reloaded { loaded, sockets })
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
