//! `check`: what rolebrokerd would make of a configuration, and what a reviewer would say of it. Reads the file and
//! the system's users, and speaks to no daemon.

use std::io::Read as _;
use std::path::{Path as FilePath, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use client::proto::Timestamp;
use nix::unistd::{User, geteuid};
use policy::embedded::Embedded;
use policy::{Bring, Config, Fault, Paths, paths};

use crate::cli::{CheckArgs, Place};
use crate::exit::{self, Exit, NotDone};
use crate::{out, render};

mod users;

/// Where rolebrokerd looks if no file is named.
pub const SYSTEM_FILE: &str = "/etc/rolebroker/rolebroker.toml";
/// The largest configuration file that rolebrokerd reads.
pub const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// A configuration that loads, and what there is to say of it.
#[derive(Debug)]
pub struct Checked {
    /// The file's name, or `embedded default`.
    pub name: String,
    /// What it says.
    pub config: Config,
    /// What a reviewer should know, a line each.
    pub warnings: Vec<String>,
    /// The ways by which data could leak unasked.
    pub paths: Paths,
}

/// Checks, and prints what there is to say.
///
/// # Errors
/// The file cannot be read. Faults in it are printed, and are no error here.
pub fn run(place: &Place, args: &CheckArgs) -> anyhow::Result<Exit> {
    let (name, text) = read(args.file.as_deref())?;
    match check(&name, &text, args, now()) {
        Ok(checked) => {
            let said = !checked.warnings.is_empty() || !checked.paths.found.is_empty();
            if place.json {
                out::json(&render::check::json(&checked).to_string());
            } else {
                out::text(&render::check::all(&checked, args.above));
            }
            Ok(if args.strict && said {
                exit::NOT_DONE
            } else {
                exit::DONE
            })
        }
        Err(faults) => {
            if place.json {
                out::json(&render::check::faults_json(&name, &faults).to_string());
            } else {
                out::text(&render::check::faults(&faults));
            }
            Ok(exit::CONFIGURATION)
        }
    }
}

/// Checks a text, as of `now`. The users are those of this machine.
///
/// # Errors
/// Every fault of the text.
pub fn check(
    name: &str,
    text: &str,
    args: &CheckArgs,
    now: Timestamp,
) -> Result<Checked, Vec<Fault>> {
    let config = Config::parse(name, text).map_err(|error| error.faults)?;
    let mut warnings = users::warnings(&config);
    warnings.extend(config.remarks(now));
    let bring = if args.worst {
        Bring::Anything
    } else {
        Bring::Floors
    };
    let paths = paths(&config, args.above, now, bring);
    Ok(Checked {
        name: name.to_owned(),
        config,
        warnings,
        paths,
    })
}

/// The named file's name and text, or those that rolebrokerd would take for this user.
///
/// # Errors
/// It cannot be read, or rolebrokerd would read no such file.
pub(crate) fn read(named: Option<&FilePath>) -> anyhow::Result<(String, String)> {
    let system = FilePath::new(SYSTEM_FILE);
    let path = match named {
        Some(path) => path,
        None if system.symlink_metadata().is_ok() => system,
        None if geteuid().is_root() => {
            let what =
                format!("{SYSTEM_FILE} does not exist: name a file, as in `rolebroker check FILE`");
            return Err(NotDone(what).into());
        }
        None => return Ok(("embedded default".to_owned(), embedded()?)),
    };
    let name = path.display().to_string();
    let unreadable = |error: std::io::Error| NotDone(format!("{name} cannot be read: {error}"));
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    let mut file = file.take(MAX_CONFIG_BYTES + 1);
    file.read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_CONFIG_BYTES {
        return Err(NotDone(format!(
            "{name} is over {MAX_CONFIG_BYTES} bytes, and rolebrokerd reads no such file"
        ))
        .into());
    }
    let text = String::from_utf8(bytes).map_err(|_| NotDone(format!("{name} is not UTF-8")))?;
    Ok((name, text))
}

/// What rolebrokerd runs on for this user, where no file exists. Its folders do not change what is said of it.
fn embedded() -> anyhow::Result<String> {
    let uid = geteuid();
    let user = User::from_uid(uid).ok().flatten();
    let user = user.map_or_else(|| uid.to_string(), |user| user.name);
    let home = std::env::var_os("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from);
    let below = |rest: &str| home.join(rest).display().to_string();
    let text = Embedded {
        user: &user,
        folder: &below(".local/share/rolebroker/files"),
        runtime_dir: "/run/rolebroker",
        state_dir: &below(".local/state/rolebroker"),
    };
    Ok(text.text()?)
}

/// The time.
pub(crate) fn now() -> Timestamp {
    let passed = SystemTime::now().duration_since(UNIX_EPOCH);
    let millis = passed.map_or(0, |passed| passed.as_millis());
    Timestamp::default().plus(u64::try_from(millis).unwrap_or(u64::MAX))
}
