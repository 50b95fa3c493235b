//! A temporary folder with a configuration in it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::unistd::geteuid;
use tempfile::TempDir;

use super::{Daemon, program};

/// A longer path of a temporary folder leaves no room for a socket's.
const LONGEST_FOLDER: usize = 70;

/// A folder with a configuration.
pub(crate) struct Place {
    folder: TempDir,
    text: String,
}

impl Place {
    /// The world of `world.toml`.
    pub(crate) fn new() -> Self {
        Self::with(include_str!("../world.toml"))
    }

    /// Another world. SELF, RUNTIME and STATE in it are replaced.
    pub(crate) fn with(text: &str) -> Self {
        let mut builder = tempfile::Builder::new();
        builder.prefix("rb");
        let own = std::env::temp_dir();
        let folder = if own.as_os_str().len() <= LONGEST_FOLDER {
            builder.tempdir_in(own)
        } else {
            builder.tempdir_in("/tmp")
        };
        let folder = folder.expect("a temporary folder");
        let path = |name| folder.path().join(name).display().to_string();
        let text = text
            .replace("RUNTIME", &path("run"))
            .replace("STATE", &path("state"))
            .replace("SELF", &geteuid().to_string());
        // So that tests with real uids get to the sockets.
        set_mode(folder.path(), 0o755);
        Self { folder, text }
    }

    /// One line more in `[broker]`.
    pub(crate) fn setting(self, line: &str) -> Self {
        self.below("[broker]", line)
    }

    /// One line more in a role's table.
    pub(crate) fn role(self, role: &str, line: &str) -> Self {
        self.below(&format!("[roles.{role}]"), line)
    }

    fn below(mut self, header: &str, line: &str) -> Self {
        let table = format!("\n{header}\n");
        assert!(self.text.contains(&table), "no {header}");
        self.text = self.text.replace(&table, &format!("{table}{line}\n"));
        self
    }

    /// More at the end.
    pub(crate) fn and(mut self, text: &str) -> Self {
        self.text.push_str(text);
        self
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.path().join("rolebroker.toml")
    }

    pub(crate) fn runtime(&self) -> PathBuf {
        self.path().join("run")
    }

    pub(crate) fn socket(&self, role: &str) -> PathBuf {
        self.runtime().join(format!("{role}.sock"))
    }

    /// Writes the configuration file.
    pub(crate) fn write(&self, text: &str) {
        fs::write(self.config(), text).expect("writes the configuration");
        set_mode(&self.config(), 0o644);
    }

    /// The command that starts the daemon here; it logs everything as JSON.
    pub(crate) fn daemon(&self) -> Command {
        let mut command = Command::new(program("rolebrokerd"));
        command.arg("--config").arg(self.config());
        command.args(["--log-format", "json", "--log-level", "debug"]);
        // What a service manager told the tests is not for the daemon.
        for name in [
            "NOTIFY_SOCKET",
            "WATCHDOG_USEC",
            "WATCHDOG_PID",
            "LISTEN_FDS",
        ] {
            command.env_remove(name);
        }
        command
    }

    /// Starts the daemon here, and waits until it is ready.
    pub(crate) fn start(self) -> Daemon {
        self.write(&self.text);
        Daemon::start(self)
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("chmod");
}
