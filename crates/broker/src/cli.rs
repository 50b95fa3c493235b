//! The command line of rolebrokerd.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use crate::exit::Exit;

/// The broker between the roles of an AI agent.
///
/// Without --config it reads /etc/rolebroker/rolebroker.toml. For an ordinary user on a machine
/// without that file it runs on an embedded default.
///
/// Exit codes: 0 done, 64 usage, 70 internal, 77 permission, 78 configuration.
#[derive(Debug, Clone, Parser)]
#[command(name = "rolebrokerd", version)]
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
