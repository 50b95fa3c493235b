//! A program that is told of each request, such as one that sends a message to a phone. It is told, not asked:
//! neither what it prints nor how it ends is an answer.

use std::ffi::OsString;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use client::proto::ApprovalId;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::sync::Semaphore;

/// So many run at once.
const AT_ONCE: usize = 4;
/// So many requests wait for one to end; of more the hook is not told.
const WAITING: usize = 256;
/// A run that takes longer is killed, with all that it started in its process group.
const WITHIN: Duration = Duration::from_secs(30);

/// The program, and its runs.
pub(crate) struct Hooks {
    program: PathBuf,
    args: Vec<OsString>,
    running: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

impl Hooks {
    pub(crate) fn new(program: PathBuf, args: Vec<OsString>) -> Self {
        Self {
            program,
            args,
            running: Arc::new(Semaphore::new(AT_ONCE)),
            waiting: Arc::new(Semaphore::new(AT_ONCE + WAITING)),
        }
    }

    /// Runs it beside the watch, with `line` on its standard input. What goes wrong is said on standard error.
    pub(crate) fn notify(&self, approval: ApprovalId, line: String) {
        let Ok(place) = Arc::clone(&self.waiting).try_acquire_owned() else {
            say(
                &approval,
                &format!("was not told: {WAITING} others wait for it"),
            );
            return;
        };
        let running = Arc::clone(&self.running);
        let mut command = Command::new(&self.program);
        command.args(&self.args);
        tokio::spawn(async move {
            // It is never closed.
            let _turn = running.acquire().await;
            match run(command, &line).await {
                Ok(Some(status)) if status.success() => {}
                Ok(Some(status)) => say(&approval, &format!("ended with {status}")),
                Ok(None) => say(
                    &approval,
                    &format!("was killed after {} s", WITHIN.as_secs()),
                ),
                Err(error) => say(&approval, &format!("cannot run: {error}")),
            }
            drop(place);
        });
    }
}

fn say(approval: &ApprovalId, what: &str) {
    eprintln!("rolebroker: the program of --exec, for {approval}, {what}; the watch goes on");
}

/// Its end, or `None` if it took too long.
async fn run(mut command: Command, line: &str) -> std::io::Result<Option<ExitStatus>> {
    let errors = std::io::stderr().as_fd().try_clone_to_owned()?;
    let mut child = command
        .stdin(Stdio::piped())
        // Standard output is for what the watch tells.
        .stdout(Stdio::from(errors))
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let mut group = Group::of(child.id());
    let stdin = child.stdin.take();
    let done = async {
        if let Some(mut stdin) = stdin {
            // It need not read it.
            let _ = stdin.write_all(line.as_bytes()).await;
        }
        child.wait().await
    };
    match tokio::time::timeout(WITHIN, done).await {
        Ok(status) => {
            // What it left behind of its own accord may go on.
            group.0 = None;
            status.map(Some)
        }
        Err(_) => Ok(None),
    }
}

/// The hook's process group; killed when dropped.
struct Group(Option<Pid>);

impl Group {
    fn of(id: Option<u32>) -> Self {
        let id = id.and_then(|id| i32::try_from(id).ok());
        Self(id.and_then(Pid::from_raw))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // Nobody is left of it, then.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[tokio::test]
    async fn a_run_that_takes_too_long_is_killed_with_what_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("alive");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status();
        assert!(made.unwrap().success());
        // Both hold the pipe open until they end; nothing reads the request.
        let script = format!("exec 3>'{}'; sleep 600 & sleep 600", fifo.display());
        let (opened, runs) = tokio::sync::oneshot::channel();
        let reader = std::thread::spawn(move || {
            let mut pipe = std::fs::File::open(fifo).unwrap();
            opened.send(()).unwrap();
            let mut all = Vec::new();
            std::io::Read::read_to_end(&mut pipe, &mut all).map(|_| all)
        });
        let ended = tokio::spawn(async move { run(shell(&script), &"x".repeat(1 << 20)).await });
        runs.await.unwrap();
        // From here on time is over at once.
        tokio::time::pause();
        assert!(ended.await.unwrap().unwrap().is_none());
        assert_eq!(reader.join().unwrap().unwrap(), b"");
    }

    #[tokio::test]
    async fn a_run_need_not_read_its_request() {
        let line = "x".repeat(1 << 20);
        let status = run(shell("exit 3"), &line).await.unwrap().unwrap();
        assert_eq!(status.code(), Some(3));
        let gone = Command::new(Path::new("/no/such/program"));
        assert!(run(gone, "").await.is_err());
    }

    #[test]
    fn the_help_tells_the_limits() {
        let told = format!(
            "At most {AT_ONCE} run at once, each for {} s",
            WITHIN.as_secs()
        );
        let mut command = <crate::cli::Cli as clap::CommandFactory>::command();
        let approvals = command.find_subcommand_mut("approvals").unwrap();
        let help = approvals.render_long_help().to_string();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(help.contains(&told), "{help}");
    }
}
