//! The runner's side of a command: the guard is started, told what to do, and listened to.

use std::collections::BTreeSet;
use std::future::Future;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use client::{Answer, Failure};
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStderr, ChildStdout};
use tokio::time::{Instant, interval, sleep_until};

use super::guard::{self, END, End, KILL, Plan, Report};
use super::processes::{SWEEP_LIMIT, end_all};
use super::{Command, Filled};
use crate::confine::Confine;

/// Commands that run at a time; the broker sends at most the role's `concurrency`.
pub const MAX_COMMANDS: usize = 64;
/// Bytes at the end of its standard error that a failure tells.
pub const ERROR_TAIL: usize = 2048;
/// How often a long command is said to run still.
const PROGRESS_EVERY: Duration = Duration::from_secs(10);
/// Bytes of a guard's report.
const MAX_REPORT: usize = 4096;
/// How long a guard has, over all that it is told to wait for.
const GUARD_SLACK: Duration = Duration::from_secs(5);

/// What every command of this process shares.
#[derive(Clone)]
pub struct Runs {
    program: PathBuf,
    confine: Confine,
    /// Guards that live: what is below them is theirs to end.
    guards: Arc<Mutex<BTreeSet<Pid>>>,
}

/// What went wrong besides what the guard tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    Cancelled,
    Flood,
    /// The guard does not answer.
    Late,
}

/// What came of one run.
struct Ran {
    out: Vec<u8>,
    errors: Tail,
    report: Option<Report>,
    cut: Option<Cut>,
}

impl Runs {
    /// Makes this process the one that what is left of a command without its guard falls to. `program` is
    /// rolebroker-runner itself, for the guards.
    ///
    /// # Errors
    /// The kernel does not let it.
    pub fn new(program: impl Into<PathBuf>, confine: Confine) -> std::io::Result<Self> {
        nix::sys::prctl::set_child_subreaper(true)?;
        Ok(Self {
            program: program.into(),
            confine,
            guards: Arc::default(),
        })
    }

    /// Runs a command to its end. Once `cancelled` resolves it is ended; `tell` is called now and then while it
    /// runs, with the seconds so far.
    ///
    /// # Errors
    /// [`Failure`] with the exit code and the end of its standard error, or why it was ended.
    pub async fn run<F: Future<Output = ()>>(
        &self,
        command: &Command,
        filled: Filled,
        cancelled: impl Future<Output = ()>,
        tell: impl Fn(u64) -> F,
    ) -> Result<Answer, Failure> {
        let (child, guard, control) = self.start()?;
        let ran = self
            .follow(command, filled, child, control, cancelled, tell)
            .await;
        if ran.as_ref().map_or(true, |ran| ran.report.is_none()) {
            self.clear(guard).await;
        } else {
            drop(guard);
        }
        let ran = ran
            .map_err(|_| Failure("the command's guard could not be told what to do".to_owned()))?;
        if let Some(Report { left, .. }) = ran.report
            && left > 0
        {
            tracing::warn!(event = "command_left", tool = %command.name, count = left);
        }
        judged(command, ran)
    }

    fn start(&self) -> Result<(Child, Guard, UnixStream), Failure> {
        let failed = |_| Failure("a command's guard cannot be started".to_owned());
        // Held until the new one is known: it is nobody's leftover.
        let mut guards = locked(&self.guards);
        if guards.len() >= MAX_COMMANDS {
            return Err(Failure(format!(
                "this runner runs {MAX_COMMANDS} commands already"
            )));
        }
        let (own, theirs) = std::os::unix::net::UnixStream::pair().map_err(failed)?;
        own.set_nonblocking(true).map_err(failed)?;
        let own = UnixStream::from_std(own).map_err(failed)?;
        let child = tokio::process::Command::new(&self.program)
            .arg(guard::MODE)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let pid = Pid::from_raw(child.id().unwrap_or(0).cast_signed());
        guards.insert(pid);
        let guard = Guard {
            pid,
            all: Arc::clone(&self.guards),
        };
        Ok((child, guard, own))
    }

    /// A guard is gone without a word: somebody killed it. What it guarded is this process's now.
    async fn clear(&self, guard: Guard) {
        let guards = Arc::clone(&self.guards);
        // It may still be there, and deaf.
        let _ = nix::sys::signal::kill(guard.pid, Signal::SIGKILL);
        drop(guard);
        let cleared = tokio::task::spawn_blocking(move || end_all(&locked(&guards)));
        let left = cleared.await.unwrap_or(0);
        tracing::warn!(event = "guard_lost", count = left);
    }

    async fn follow<F: Future<Output = ()>>(
        &self,
        command: &Command,
        filled: Filled,
        mut child: Child,
        mut control: UnixStream,
        cancelled: impl Future<Output = ()>,
        tell: impl Fn(u64) -> F,
    ) -> std::io::Result<Ran> {
        let plan = Plan {
            program: command.program.clone(),
            argv: filled.argv,
            stdin: filled.stdin,
            cwd: command.cwd.clone(),
            env: command.env.clone(),
            limits: command.limits,
            reach: command.reach.clone(),
            confine: self.confine,
        };
        let plan = serde_json::to_vec(&plan)?;
        let length = u32::try_from(plan.len()).unwrap_or(u32::MAX);
        control.write_all(&length.to_be_bytes()).await?;
        control.write_all(&plan).await?;
        let begun = Instant::now();
        let most = usize::try_from(command.limits.output).unwrap_or(usize::MAX);
        let mut streams = Streams::new(&mut child, most);
        let limits = &command.limits;
        // For the guard's answer, once it is to end the command.
        let answer = limits.grace + SWEEP_LIMIT + GUARD_SLACK;
        let mut deadline = begun + limits.timeout + answer;
        let mut progress = interval(PROGRESS_EVERY);
        let mut cancelled = std::pin::pin!(cancelled);
        let (mut said, mut report) = (Vec::new(), None);
        let mut cut = None;
        let mut heard = false;
        while !heard || !streams.ended() {
            tokio::select! {
                read = control.read_buf(&mut said), if !heard => {
                    if !matches!(read, Ok(1..)) || said.len() > MAX_REPORT {
                        heard = true;
                        report = serde_json::from_slice(&said).ok();
                        if report.is_none() {
                            // What it guarded may hold the outputs open; they are of no use now.
                            break;
                        }
                    }
                }
                flood = streams.read(), if !streams.ended() => if flood && cut.is_none() {
                    cut = Some(Cut::Flood);
                    deadline = deadline.min(Instant::now() + answer);
                    // A guard that is gone already is as good.
                    let _ = control.write_all(&[KILL]).await;
                },
                () = &mut cancelled, if cut.is_none() => {
                    cut = Some(Cut::Cancelled);
                    deadline = deadline.min(Instant::now() + answer);
                    let _ = control.write_all(&[END]).await;
                }
                () = sleep_until(deadline) => {
                    cut = Some(Cut::Late);
                    break;
                }
                _ = progress.tick() => tell(begun.elapsed().as_secs()).await,
            }
        }
        let Streams { out, errors, .. } = streams;
        drop(control);
        if report.is_some() {
            // Its end; it has nothing more to do.
            let _ = tokio::time::timeout(GUARD_SLACK, child.wait()).await;
        }
        Ok(Ran {
            out,
            errors,
            report,
            cut,
        })
    }
}

/// A guard, counted and spared as long as this lives.
struct Guard {
    pid: Pid,
    all: Arc<Mutex<BTreeSet<Pid>>>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        locked(&self.all).remove(&self.pid);
    }
}

fn locked(guards: &Mutex<BTreeSet<Pid>>) -> MutexGuard<'_, BTreeSet<Pid>> {
    // A set is whole at any time.
    guards.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the command writes.
struct Streams {
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    most: usize,
    out: Vec<u8>,
    errors: Tail,
    out_piece: Vec<u8>,
    error_piece: Vec<u8>,
}

impl Streams {
    fn new(child: &mut Child, most: usize) -> Self {
        Self {
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            most,
            out: Vec::new(),
            errors: Tail::default(),
            out_piece: Vec::with_capacity(PIECE),
            error_piece: Vec::with_capacity(PIECE),
        }
    }

    fn ended(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none()
    }

    /// Reads a piece of either. Whether that is more than may be written.
    async fn read(&mut self) -> bool {
        tokio::select! {
            more = piece(&mut self.stdout, &mut self.out_piece), if self.stdout.is_some() => {
                if !more {
                    self.stdout = None;
                }
                // Once it is too much, the rest is read and dropped until the guard has ended it.
                if self.out.len() <= self.most {
                    self.out.append(&mut self.out_piece);
                }
                self.out_piece.clear();
            }
            more = piece(&mut self.stderr, &mut self.error_piece), if self.stderr.is_some() => {
                if !more {
                    self.stderr = None;
                }
                self.errors.add(&self.error_piece);
                self.error_piece.clear();
            }
        }
        self.out.len() > self.most || self.errors.whole > self.most
    }
}

/// Bytes that are read at a time.
const PIECE: usize = 64 << 10;

/// Reads a piece; whether there may be more.
async fn piece(stream: &mut Option<impl AsyncRead + Unpin>, into: &mut Vec<u8>) -> bool {
    match stream {
        Some(stream) => matches!(stream.read_buf(into).await, Ok(1..)),
        None => false,
    }
}

/// The end of a text, and how long all of it is.
#[derive(Default)]
struct Tail {
    end: Vec<u8>,
    whole: usize,
}

impl Tail {
    fn add(&mut self, piece: &[u8]) {
        self.whole = self.whole.saturating_add(piece.len());
        self.end.extend_from_slice(piece);
        let over = self.end.len().saturating_sub(ERROR_TAIL);
        self.end.drain(..over);
    }

    fn told(&self) -> String {
        let text = String::from_utf8_lossy(&self.end);
        let text = text.trim_end();
        match (text.is_empty(), self.whole > self.end.len()) {
            (true, _) => "; it said nothing on standard error".to_owned(),
            (false, true) => format!("; the end of its standard error: \u{2026}{text}"),
            (false, false) => format!("; its standard error: {text}"),
        }
    }
}

fn judged(command: &Command, ran: Ran) -> Result<Answer, Failure> {
    let errors = ran.errors.told();
    let end = match (ran.cut, ran.report) {
        (Some(Cut::Flood), _) => {
            let most = command.limits.output;
            return Err(Failure(format!(
                "wrote more than the {most} bytes that it may, and was ended"
            )));
        }
        (Some(Cut::Late), _) | (None, None) => {
            return Err("its guard was lost, and all that was left of it ended".into());
        }
        (Some(Cut::Cancelled), None) => return Err("cancelled, and ended".into()),
        (_, Some(report)) => report.end,
    };
    Err(Failure(match end {
        End::Code(code) if command.ok_codes.contains(&code) => {
            return Ok(Answer {
                content: String::from_utf8_lossy(&ran.out).into_owned(),
                label: command.label,
            });
        }
        End::Code(code) => format!("exit code {code}{errors}"),
        End::Signal(signal) if signal == Signal::SIGXCPU as i32 => {
            let most = command.limits.cpu_seconds;
            format!("used more than the {most} seconds of processor time that it may{errors}")
        }
        End::Signal(signal) => {
            let name = Signal::try_from(signal).map_or("a signal", Signal::as_str);
            format!("was ended by {name}{errors}")
        }
        End::TimedOut => {
            let most = command.limits.timeout.as_secs_f32();
            format!("took longer than the {most} s that it may, and was ended{errors}")
        }
        End::Told => "cancelled, and ended".to_owned(),
        End::NotStarted(number) => {
            let error = std::io::Error::from_raw_os_error(number);
            format!("cannot be started: {error}")
        }
    }))
}
