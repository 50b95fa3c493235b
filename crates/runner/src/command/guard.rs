//! `command-guard`: this program once more, between the runner and one command.
//!
//! What a command starts, however often it forks and whatever sessions it makes, has the guard as its ancestor: the
//! guard is their subreaper. So it can end all of them: when the command has ended, when its time is over, when the
//! runner says so, and when the runner is gone, which it sees by the end of the socket that is its standard input.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::WaitStatus;
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep_until};

use super::confined::{self, Hold};
use super::processes::{end_all, reap};
use super::{Limits, Reach};
use crate::confine::Confine;

/// The first argument of this mode.
pub const MODE: &str = "command-guard";
/// Bytes of a plan.
pub(super) const MAX_PLAN: usize = 8 << 20;
/// What the runner says: end it, with TERM first.
pub(super) const END: u8 = b't';
/// What the runner says: end it at once.
pub(super) const KILL: u8 = b'k';

/// All that a guard is told.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) program: PathBuf,
    pub(super) argv: Vec<String>,
    pub(super) stdin: Option<String>,
    pub(super) cwd: PathBuf,
    pub(super) env: BTreeMap<String, String>,
    pub(super) limits: Limits,
    pub(super) reach: Reach,
    pub(super) confine: Confine,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum End {
    /// By itself, with this code.
    Code(i32),
    /// By this signal, which the guard did not send.
    Signal(i32),
    /// Its time was over.
    TimedOut,
    /// The runner wanted it.
    Told,
    /// It could not be started at all; the number is the system's.
    NotStarted(i32),
}

/// What the guard says at its end.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Report {
    pub(super) end: End,
    /// Processes that would not end.
    pub(super) left: usize,
}

/// Guards one command.
pub fn guard() -> ExitCode {
    // Away from the terminal of who started the runner, and from signals to its group.
    let _ = nix::unistd::setsid();
    match guarded() {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("rolebroker-runner: a command's guard: {problem}");
            ExitCode::from(70)
        }
    }
}

fn guarded() -> std::io::Result<()> {
    nix::sys::prctl::set_child_subreaper(true)?;
    let mut control = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let plan = read_plan(&mut control)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let said = control.try_clone()?;
    said.set_nonblocking(true)?;
    let end = runtime.block_on(async {
        let said = tokio::net::UnixStream::from_std(said)?;
        watch(&plan, said).await
    })?;
    let left = end_all(&BTreeSet::new());
    reap(|_, _| {});
    let report = serde_json::to_vec(&Report { end, left })?;
    control.set_nonblocking(false)?;
    control.write_all(&report)
}

fn read_plan(control: &mut UnixStream) -> std::io::Result<Plan> {
    let mut length = [0; 4];
    control.read_exact(&mut length)?;
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    if length > MAX_PLAN {
        return Err(std::io::ErrorKind::InvalidData.into());
    }
    let mut text = vec![0; length];
    control.read_exact(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

fn start(plan: &Plan) -> std::io::Result<Pid> {
    let hold = Hold {
        limits: plan.limits,
        reach: plan.reach.clone(),
        confine: plan.confine,
    };
    let stdin = if plan.stdin.is_some() {
        Stdio::piped()
    } else {
        Stdio::null()
    };
    let mut child = std::process::Command::new("/proc/self/exe")
        .arg(confined::MODE)
        .arg(serde_json::to_string(&hold)?)
        .arg(&plan.program)
        .args(&plan.argv)
        .env_clear()
        .envs(&plan.env)
        .current_dir(&plan.cwd)
        .stdin(stdin)
        .process_group(0)
        .spawn()?;
    if let (Some(mut pipe), Some(text)) = (child.stdin.take(), plan.stdin.clone()) {
        // It may not read it, and then the pipe breaks, or nobody waits for this thread.
        std::thread::spawn(move || pipe.write_all(text.as_bytes()));
    }
    Ok(Pid::from_raw(child.id().cast_signed()))
}

/// From the start of the command to its end.
async fn watch(plan: &Plan, mut said: tokio::net::UnixStream) -> std::io::Result<End> {
    let mut children = signal(SignalKind::child())?;
    // A service's stop goes to every process of it; the command gets its own, and the guard sees to the rest.
    let _kept = [
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
        signal(SignalKind::hangup())?,
    ];
    let command = match start(plan) {
        Ok(command) => command,
        Err(error) => return Ok(End::NotStarted(error.raw_os_error().unwrap_or(0))),
    };
    let mut until = Instant::now() + plan.limits.timeout;
    let mut why: Option<End> = None;
    let mut byte = [0];
    loop {
        let mut status = None;
        reap(|pid, ended| {
            if pid == command {
                status = Some(ended);
            }
        });
        if let Some(status) = status {
            let own = match status {
                WaitStatus::Exited(_, code) => End::Code(code),
                WaitStatus::Signaled(_, signal, _) => End::Signal(signal as i32),
                // Not asked for; it did not end.
                WaitStatus::Stopped(..)
                | WaitStatus::PtraceEvent(..)
                | WaitStatus::PtraceSyscall(_)
                | WaitStatus::Continued(_)
                | WaitStatus::StillAlive => continue,
            };
            return Ok(why.unwrap_or(own));
        }
        tokio::select! {
            _ = children.recv() => {}
            () = sleep_until(until) => match why {
                // It had its grace.
                Some(why) => return Ok(why),
                None => {
                    why = Some(End::TimedOut);
                    until = terminate(command, plan.limits.grace);
                }
            },
            read = said.read(&mut byte) => match read {
                Ok(1) if byte == [END] => if why.is_none() {
                    why = Some(End::Told);
                    until = terminate(command, plan.limits.grace);
                },
                // KILL, or the runner has gone.
                Ok(_) | Err(_) => return Ok(why.unwrap_or(End::Told)),
            },
        }
    }
}

fn terminate(command: Pid, grace: Duration) -> Instant {
    // Gone already is as good.
    let _ = killpg(command, Signal::SIGTERM);
    Instant::now() + grace
}
