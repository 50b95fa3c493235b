//! The command line of rolebrokerd.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use store::Head;

use crate::exit::Exit;

/// What stands behind the options in `--help` and on the man page. A heading ends in a colon; rows below it are a
/// term, two spaces or more, and its meaning.
const AFTER: &str = "\
Signals:
  SIGHUP            loads the configuration anew, whole or not at all
  SIGTERM, SIGINT   takes no new calls, ends when those in flight have; a second one ends at once

Exit status:
  0   done
  64  the command line is wrong
  70  a fault of the broker's own
  74  the store cannot be read, written or trusted
  77  the system does not permit what the configuration says
  78  the configuration is wrong, or others can write it

Files:
  /etc/rolebroker/rolebroker.toml  the configuration, if no other is named
  /run/rolebroker/ROLE.sock        the socket of a role, below runtime_dir
  /var/lib/rolebroker              the state, as state_dir says

Environment:
  XDG_RUNTIME_DIR  where the embedded default has its sockets
  XDG_STATE_HOME   where the embedded default has its state; ~/.local/state if it is not set
  XDG_DATA_HOME    where the embedded default has its one folder; ~/.local/share if it is not set

Examples:
  rolebrokerd --check-config
  rolebrokerd --config /etc/rolebroker/rolebroker.toml --log-format json";

/// The broker between the roles of an AI agent.
///
/// Without --config it reads /etc/rolebroker/rolebroker.toml. For an ordinary user on a machine
/// without that file it runs on an embedded default.
#[derive(Debug, Clone, Parser)]
#[command(name = "rolebrokerd", version, after_long_help = AFTER)]
pub struct Cli {
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Check the configuration, print every fault, and open nothing
    #[arg(long, conflicts_with = "print_default_config")]
    pub check_config: bool,

    /// Print the embedded default configuration for this user, to start from
    #[arg(long, conflicts_with = "config")]
    pub print_default_config: bool,

    /// A head that was kept elsewhere: start only if the record still has it; `record_head` in the log tells one
    #[arg(long, value_name = "COUNT:HASH")]
    pub require_head: Option<Head>,

    /// The least that is logged
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub log_level: LogLevel,

    /// How log lines on standard error are written; auto: text on a terminal, else json
    #[arg(long, value_name = "FORMAT", default_value = "auto")]
    pub log_format: LogFormat,
}

/// How much is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    /// Only what ends the broker.
    Error,
    /// And what somebody may have to act on.
    Warn,
    /// And the ordinary course.
    Info,
    /// And every step of a call.
    Debug,
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Text on a terminal, else JSON.
    Auto,
    /// One JSON object a line.
    Json,
    /// For people.
    Text,
}

impl Cli {
    /// Reads the command line. Help, the version and mistakes are printed here.
    ///
    /// # Errors
    /// How the process ends, where there is nothing more to do.
    pub fn read(args: impl IntoIterator<Item = OsString>) -> Result<Cli, Exit> {
        Cli::try_parse_from(args).map_err(|error| {
            // Where it cannot be printed there is nobody to tell.
            let _ = error.print();
            if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Done
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &[&str]) -> Result<Cli, Exit> {
        Cli::read(
            std::iter::once("rolebrokerd")
                .chain(args.iter().copied())
                .map(OsString::from),
        )
    }

    #[test]
    fn a_mistake_on_the_command_line_is_a_usage_error() {
        for bad in [
            &["--no-such-flag"][..],
            &["--config"],
            &["--log-level", "loud"],
            &["--check-config", "--print-default-config"],
            &["--require-head", "7"],
            &["stray"],
        ] {
            assert_eq!(read(bad).err(), Some(Exit::Usage), "{bad:?}");
        }
    }

    #[test]
    fn help_and_version_are_not_mistakes() {
        assert_eq!(read(&["--help"]).err(), Some(Exit::Done));
        assert_eq!(read(&["--version"]).err(), Some(Exit::Done));
    }
}
