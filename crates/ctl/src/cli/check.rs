//! What `check` takes.

use std::path::PathBuf;

use clap::Args;
use client::DataClass;

/// `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The configuration [default: what rolebrokerd reads: /etc/rolebroker/rolebroker.toml, or for an ordinary user on
    /// a machine without one its embedded default]
    pub file: Option<PathBuf>,
    /// Look for paths of data of this class or a higher one: public, internal, confidential, secret
    #[arg(long, value_name = "CLASS", default_value = "confidential")]
    pub above: DataClass,
    /// Look for paths as if a runner might say of any result that it is secret and untrusted
    #[arg(long)]
    pub worst: bool,
    /// Exit with 1 if there is a warning or a path
    #[arg(long)]
    pub strict: bool,
}
