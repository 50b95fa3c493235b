//! What the kernel holds this process and its commands to: Landlock for files, seccomp for system calls.
//!
//! Nothing else depends on it: file tools stay below their folders, and commands within their limits, without it
//! too. It bounds what a fault in this program, or a hostile command, can reach.

mod landlock;
mod seccomp;

use std::path::PathBuf;

use crate::command::{Command, Reach};
use crate::folders::{Access, Folder};

pub use self::landlock::SYSTEM;

/// What is done where the kernel cannot confine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(clap::ValueEnum)]
pub enum Confine {
    /// Nothing runs.
    Required,
    /// What it has is used, and what it lacks is said.
    #[default]
    BestEffort,
    /// Nothing is confined.
    Off,
}

/// What the kernel lacks, and what that leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing {
    /// Its name, stable.
    pub feature: &'static str,
    /// What is not held back without it.
    pub leaves: &'static str,
}

/// Why a process could not be confined.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// Landlock said no.
    #[error("Landlock: {0}")]
    Landlock(String),
    /// Seccomp said no.
    #[error("seccomp: {0}")]
    Seccomp(String),
}

/// What the kernel lacks of all that is used here; empty on a recent one.
pub fn missing() -> Vec<Missing> {
    let mut missing = landlock::missing();
    if !seccomp::available() {
        missing.push(Missing {
            feature: "seccomp",
            leaves: "system calls: the network, ptrace, mounts, keys",
        });
    }
    missing
}

/// Confines this process to what it needs to serve these folders and commands. Threads that run already are not
/// confined: call it first.
///
/// # Errors
/// The kernel has it and refuses.
pub fn confine_runner(folders: &[Folder], commands: &[Command]) -> Result<(), ConfineError> {
    let mut rules = landlock::Rules::default();
    for folder in folders {
        match folder.access {
            Access::Read => rules.look.push(folder.path.clone()),
            Access::Write => rules.change.push(folder.path.clone()),
        }
    }
    for command in commands {
        rules.run.extend(command.reach.read.iter().cloned());
        rules.run.push(command.program.clone());
        rules
            .run_and_change
            .extend(command.reach.write.iter().cloned());
    }
    let network = commands.iter().any(|command| command.reach.network);
    if !commands.is_empty() {
        rules.system();
        rules.devices();
        // Which processes are a command's, and this program again for their guards.
        rules.look.push(PathBuf::from("/proc"));
        rules.run.extend(std::env::current_exe().ok());
    }
    rules.network = network;
    landlock::restrict(&rules)?;
    seccomp::restrict(if network {
        seccomp::Sockets::LocalAndInternet
    } else {
        seccomp::Sockets::Local
    })
}

/// Confines this process, which becomes a command next.
///
/// # Errors
/// The kernel has it and refuses.
pub fn confine_command(program: PathBuf, reach: &Reach) -> Result<(), ConfineError> {
    let mut rules = landlock::Rules {
        run: reach.read.clone(),
        run_and_change: reach.write.clone(),
        network: reach.network,
        isolated: true,
        ..landlock::Rules::default()
    };
    rules.run.push(program);
    rules.system();
    rules.devices();
    landlock::restrict(&rules)?;
    seccomp::restrict(if reach.network {
        seccomp::Sockets::Internet
    } else {
        seccomp::Sockets::None
    })
}
