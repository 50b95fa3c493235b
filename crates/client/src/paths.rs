//! Where the sockets are, if nobody says otherwise.

use std::path::{Path, PathBuf};

const SYSTEM: &str = "/run/rolebroker";

/// The folder of the sockets: `$ROLEBROKER_RUNTIME_DIR`; else `/run/rolebroker` if it exists; else
/// `$XDG_RUNTIME_DIR/rolebroker`.
pub fn runtime_dir() -> PathBuf {
    let var = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(stated) = var("ROLEBROKER_RUNTIME_DIR") {
        return PathBuf::from(stated);
    }
    match var("XDG_RUNTIME_DIR") {
        Some(own) if !Path::new(SYSTEM).exists() => Path::new(&own).join("rolebroker"),
        Some(_) | None => PathBuf::from(SYSTEM),
    }
}

/// The socket of a role below [`runtime_dir`]: `<runtime dir>/<role>.sock`.
///
/// ```
/// assert!(client::socket("agent").ends_with("agent.sock"));
/// ```
pub fn socket(role: &str) -> PathBuf {
    runtime_dir().join(format!("{role}.sock"))
}
