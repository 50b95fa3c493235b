//! `confined-exec`: this program once more, on its way to become a command. It takes limits and confinement upon
//! itself, which needs no code between fork and exec, and then is the command.

use std::os::fd::RawFd;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::ExitCode;

use nix::sys::resource::{Resource, setrlimit};

use super::processes::tasks_of_user;
use super::{Limits, Reach};
use crate::confine::{Confine, confine_command};

/// The first argument of this mode.
pub const MODE: &str = "confined-exec";
/// Its limits or its confinement could not be had: the command did not run.
const EXIT_HELD: u8 = 125;
/// The program could not be started.
const EXIT_EXEC: u8 = 126;

/// What it takes upon itself.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Hold {
    pub(super) limits: Limits,
    pub(super) reach: Reach,
    pub(super) confine: Confine,
}

/// Becomes the command; returns only if it cannot. `arguments` are those behind [`MODE`]: a `Hold` as JSON, the
/// program, and the program's own.
pub fn become_command(mut arguments: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    let hold = arguments.next().and_then(|text| text.into_string().ok());
    let hold = hold.and_then(|text| serde_json::from_str::<Hold>(&text).ok());
    let (Some(hold), Some(program)) = (hold, arguments.next().map(PathBuf::from)) else {
        eprintln!(
            "rolebroker-runner starts itself in this way, for commands; it is of no use by hand"
        );
        return ExitCode::from(64);
    };
    close_others();
    if let Err(problem) = held(&hold, &program) {
        eprintln!("rolebroker-runner: the command was not started: {problem}");
        return ExitCode::from(EXIT_HELD);
    }
    let error = std::process::Command::new(&program).args(arguments).exec();
    eprintln!(
        "rolebroker-runner: {} cannot be started: {error}",
        program.display()
    );
    ExitCode::from(EXIT_EXEC)
}

/// Closes what whoever started the runner left open to it: no confinement holds what is open already.
fn close_others() {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else {
        return;
    };
    let numbers: Vec<RawFd> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|number| *number > 2)
        .collect();
    for number in numbers {
        // The handle of that folder itself is closed by now.
        let _ = nix::unistd::close(number);
    }
}

fn held(hold: &Hold, program: &std::path::Path) -> Result<(), String> {
    let limits = &hold.limits;
    let tasks = tasks_of_user().saturating_add(limits.processes);
    // At the first of two the kernel sends XCPU, which tells the reason, and at the second KILL.
    let cpu = (limits.cpu_seconds, limits.cpu_seconds.saturating_add(1));
    let one = |most: u64| (most, most);
    for (resource, (soft, hard)) in [
        (Resource::RLIMIT_CORE, one(0)),
        (Resource::RLIMIT_CPU, cpu),
        (Resource::RLIMIT_NOFILE, one(limits.open_files)),
        (Resource::RLIMIT_FSIZE, one(limits.file_size)),
        (Resource::RLIMIT_NPROC, one(tasks)),
        (Resource::RLIMIT_AS, one(limits.memory)),
    ] {
        // One that is lower already stays.
        let (_, most) = nix::sys::resource::getrlimit(resource)
            .map_err(|error| format!("its limits cannot be read: {error}"))?;
        setrlimit(resource, soft.min(most), hard.min(most))
            .map_err(|error| format!("{resource:?} cannot be set: {error}"))?;
    }
    match hold.confine {
        Confine::Required | Confine::BestEffort => {
            confine_command(program.to_owned(), &hold.reach).map_err(|error| error.to_string())
        }
        Confine::Off => Ok(()),
    }
}
