//! Where the configuration is, and reading it whole: text, rules and users, or every fault at once.
//! Nothing is made or opened here but the file itself.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use policy::Config;

use crate::default_config;
use crate::exit::Fault;
use crate::safety;
use crate::users::Admission;

/// Where the configuration is if nothing else is said.
pub const SYSTEM_FILE: &str = "/etc/rolebroker/rolebroker.toml";
/// The largest configuration file.
pub const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// Where the configuration comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A file.
    File(PathBuf),
    /// The embedded default, for an ordinary user.
    Embedded,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Origin::File(path) => path.display().fmt(f),
            Origin::Embedded => f.write_str("embedded default"),
        }
    }
}

/// A configuration that was taken.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// Where it comes from.
    pub origin: Origin,
    /// What it says.
    pub config: Arc<Config>,
    /// Who may connect.
    pub admission: Arc<Admission>,
    /// What a reviewer should know.
    pub warnings: Vec<String>,
}

impl Loaded {
    /// `ok: N roles, M tools, K grants`.
    pub fn summary(&self) -> String {
        format!(
            "ok: {} roles, {} tools, {} grants",
            self.config.roles.len(),
            self.config.ruleset.declared().count(),
            self.config.ruleset.grants().len()
        )
    }
}

/// Finds the configuration: the file that was named, else the system's, else, for an ordinary user,
/// the embedded default.
///
/// # Errors
/// There is none for root, or whether there is one cannot be seen.
pub fn find(named: Option<&Path>) -> Result<Origin, Fault> {
    if let Some(path) = named {
        return Ok(Origin::File(path.to_owned()));
    }
    match std::fs::symlink_metadata(SYSTEM_FILE) {
        Ok(_) => Ok(Origin::File(PathBuf::from(SYSTEM_FILE))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            if nix::unistd::geteuid().is_root() {
                Err(Fault::Configuration(format!(
                    "{SYSTEM_FILE} does not exist: write it, or name another file with --config \
                     (run as an ordinary user, rolebrokerd needs none: \
                     --print-default-config there prints one to start from)"
                )))
            } else {
                Ok(Origin::Embedded)
            }
        }
        Err(error) => Err(Fault::Configuration(format!("{SYSTEM_FILE}: {error}"))),
    }
}

/// Reads a configuration whole. May wait for the disk and for the system's lists of users.
///
/// # Errors
/// Every fault of it, one a line.
pub fn load(origin: &Origin) -> Result<Loaded, Fault> {
    let (name, text) = match origin {
        Origin::File(path) => (path.display().to_string(), read(path)?),
        Origin::Embedded => (
            "embedded default".to_owned(),
            default_config::text().map_err(Fault::Configuration)?,
        ),
    };
    let config =
        Config::parse(&name, &text).map_err(|error| Fault::Configuration(error.to_string()))?;
    let (admission, warnings) = Admission::resolve(&config).map_err(|faults| {
        let lines: Vec<String> = faults.iter().map(|f| format!("{name}: {f}")).collect();
        Fault::Configuration(lines.join("\n"))
    })?;
    Ok(Loaded {
        origin: origin.clone(),
        config: Arc::new(config),
        admission: Arc::new(admission),
        warnings,
    })
}

fn read(path: &Path) -> Result<String, Fault> {
    let fault = |text: String| Fault::Configuration(format!("configuration: {text}"));
    let file = safety::open_file(path, nix::unistd::geteuid().as_raw())
        .map_err(|error| fault(error.to_string()))?;
    let mut bytes = Vec::new();
    file.take(MAX_CONFIG_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| fault(format!("{}: {error}", path.display())))?;
    if bytes.len() as u64 > MAX_CONFIG_BYTES {
        return Err(fault(format!(
            "{} is over {MAX_CONFIG_BYTES} bytes",
            path.display()
        )));
    }
    String::from_utf8(bytes).map_err(|_| fault(format!("{} is not UTF-8", path.display())))
}
