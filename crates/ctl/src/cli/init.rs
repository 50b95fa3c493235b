//! `init`, as it is typed.

use std::path::PathBuf;

use clap::Args;

/// `init`.
#[derive(Debug, Default, Args)]
pub struct InitArgs {
    /// The folder that the file tools may work in [default: /srv/rolebroker; for an ordinary user
    /// ~/.local/share/rolebroker/files]
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// The user of the agent, as root [default: rolebroker-agent]
    #[arg(long, value_name = "USER")]
    pub agent_user: Option<String>,
    /// The user of the runner, as root [default: rolebroker-runner]
    #[arg(long, value_name = "USER")]
    pub runner_user: Option<String>,
    /// The user who is asked, as root [default: who typed sudo]
    #[arg(long, value_name = "USER")]
    pub approver_user: Option<String>,
    /// The user who steers the broker, as root [default: root]
    #[arg(long, value_name = "USER")]
    pub operator_user: Option<String>,
    /// Write the configuration even though its users do not separate the roles
    #[arg(long)]
    pub shared: bool,
    /// The file to write; runner.toml, what the runner serves, goes beside it [default: /etc/rolebroker/rolebroker.toml; for an ordinary user
    /// ~/.config/rolebroker/rolebroker.toml]
    #[arg(long, value_name = "FILE", conflicts_with = "print")]
    pub output: Option<PathBuf>,
    /// Where the broker keeps its state [default: /var/lib/rolebroker; for an ordinary user
    /// ~/.local/state/rolebroker]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Replace the files if they are there
    #[arg(long)]
    pub force: bool,
    /// Print the configuration, and make nothing
    #[arg(long, conflicts_with = "force")]
    pub print: bool,
}
