//! The command line, and the configuration file that it may name.

use std::path::{Path, PathBuf};

use clap::{CommandFactory as _, Parser, error::ErrorKind};
use proto::RoleName;

use crate::Folder;
use crate::command::Command;
use crate::config::{Config, MAX_TEXT};
use crate::confine::Confine;

/// The role where nobody names one: that of the configuration that the daemon brings along.
const USUAL_ROLE: &str = "runner";

/// What stands below the options.
const AFTER: &str = "\
Signals:
  SIGTERM, SIGINT  ends what runs, answers its calls, and goes

Exit status:
  0   done
  64  the command line is wrong
  70  a fault of the runner's own
  78  the configuration is wrong, or the kernel cannot confine as it demands

Files:
  /etc/rolebroker/ROLE.toml  the configuration where it runs as rolebroker-runner@ROLE.service
  /run/rolebroker/ROLE.sock  the role's socket

Environment:
  ROLEBROKER_RUNTIME_DIR  the folder of the sockets, if no socket is named
  ROLEBROKER_LOG          the least that is logged: error, warn, info, debug

Examples:
  rolebroker-runner --folder ~/notes:internal
  rolebroker-runner --config /etc/rolebroker/runner.toml --check-config
  rolebroker-runner --config /etc/rolebroker/runner.toml --print-tools";

/// Serves file tools below folders, and the commands that a configuration declares.
///
/// Paths in arguments are absolute. Links and `..` never lead out of a folder. Each answer tells the class of the
/// folder that it comes from; of several that contain a path, the longest counts.
#[derive(Debug, Parser)]
#[command(name = "rolebroker-runner", version, after_long_help = AFTER)]
pub struct Args {
    /// The configuration: folders, commands, and how they are confined
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The role's socket [default: ROLE.sock in the broker's runtime folder]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// The runner role in the broker's configuration [default: the configuration's, or runner]
    #[arg(long, value_name = "ROLE")]
    role: Option<RoleName>,
    /// A folder that may be written, the class of its files (public, internal, confidential, secret; internal if
    /// unstated), and whether strangers may write them
    #[arg(long = "folder", value_name = "DIR[:class[:untrusted]]")]
    folders: Vec<Folder>,
    /// What to do where the kernel cannot confine [default: the configuration's, or best-effort]
    #[arg(long, value_name = "HOW")]
    confine: Option<Confine>,
    /// Check the configuration, and open nothing
    #[arg(long)]
    pub check_config: bool,
    /// Print what is served as blocks of tools for the broker's configuration
    #[arg(long, conflicts_with = "check_config")]
    pub print_tools: bool,
    /// End when the broker goes away, instead of connecting again
    #[arg(long)]
    pub once: bool,
}

/// Reads the command line.
///
/// # Errors
/// It is wrong, or asks for help.
pub fn read() -> Result<Args, clap::Error> {
    let args = Args::try_parse()?;
    if args.config.is_none() && args.folders.is_empty() {
        let what = "nothing to serve; name a folder with --folder DIR, or a configuration with --config FILE";
        return Err(Args::command().error(ErrorKind::MissingRequiredArgument, what));
    }
    Ok(args)
}

/// What the command line and the configuration say together.
pub struct Settings {
    /// The role.
    pub role: RoleName,
    /// Its socket.
    pub socket: PathBuf,
    /// What to do where the kernel cannot confine.
    pub confine: Confine,
    /// The folders that are served.
    pub folders: Vec<Folder>,
    /// The commands that are served.
    pub commands: Vec<Command>,
}

impl Settings {
    /// Reads the configuration; the command line comes before it, and adds folders.
    ///
    /// # Errors
    /// Every fault, in words with its line.
    pub fn read(args: &Args) -> Result<Self, Vec<String>> {
        let config = match &args.config {
            Some(file) => load(file)?,
            None => Config::default(),
        };
        let usual = || RoleName::new(USUAL_ROLE).map_err(|rule| vec![rule.to_string()]);
        let role = match args.role.clone().or(config.role) {
            Some(role) => role,
            None => usual()?,
        };
        let socket = args.socket.clone().or(config.socket);
        let mut folders = config.folders;
        folders.extend(args.folders.iter().cloned());
        Ok(Self {
            socket: socket.unwrap_or_else(|| client::socket(role.as_str())),
            confine: args.confine.unwrap_or(config.confine),
            role,
            folders,
            commands: config.commands,
        })
    }

    /// What the commands name and is not there: a fault for each.
    pub fn absent(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for command in &self.commands {
            let mut check = |path: &Path, there: bool, what: &str| {
                if !there {
                    let name = &command.name;
                    faults.push(format!("command `{name}`: {} {what}", path.display()));
                }
            };
            let program = &command.program;
            check(program, program.is_file(), "is no file that can be run");
            check(
                &command.cwd,
                command.cwd.is_dir(),
                "is no folder to start in",
            );
            for path in command.reach.read.iter().chain(&command.reach.write) {
                check(
                    path,
                    path.exists(),
                    "does not exist, and may be read or written",
                );
            }
        }
        faults
    }
}

fn load(file: &Path) -> Result<Config, Vec<String>> {
    use std::io::Read as _;
    let name = file.display().to_string();
    let mut text = String::new();
    let most = u64::try_from(MAX_TEXT)
        .unwrap_or(u64::MAX)
        .saturating_add(1);
    std::fs::File::open(file)
        .and_then(|file| file.take(most).read_to_string(&mut text))
        .map_err(|error| vec![format!("{name}: cannot be read: {error}")])?;
    Config::parse(&name, &text).map_err(|error| error.faults)
}
