//! Which processes descend from this one, and how to end them all.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// How long ending them all may take. What the kernel itself holds (a file server that is gone) lasts longer.
pub(super) const SWEEP_LIMIT: Duration = Duration::from_secs(3);
/// Times that it looks for more before it kills what it has stopped.
const MAX_LOOKS: usize = 64;
/// Between two rounds.
const PAUSE: Duration = Duration::from_millis(2);

/// A process, as the kernel tells it.
struct Process {
    pid: Pid,
    parent: Pid,
    /// Whether any of its threads runs. One that has ended stays until its parent has taken its end.
    runs: bool,
}

/// Every running process below `root`, `spared` ones and what is below those aside.
fn descendants(root: Pid, spared: &BTreeSet<Pid>) -> BTreeSet<Pid> {
    let mut children: BTreeMap<Pid, Vec<Pid>> = BTreeMap::new();
    for process in processes().iter().filter(|process| process.runs) {
        children
            .entry(process.parent)
            .or_default()
            .push(process.pid);
    }
    let mut found = BTreeSet::new();
    let mut waiting = vec![root];
    while let Some(next) = waiting.pop() {
        for child in children.get(&next).into_iter().flatten() {
            if !spared.contains(child) && found.insert(*child) {
                waiting.push(*child);
            }
        }
    }
    found
}

fn processes() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let process = |pid: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // Behind the name, which may have anything in it.
        let (_, rest) = stat.rsplit_once(") ")?;
        let mut rest = rest.split(' ');
        let state = rest.next()?;
        let parent = rest.next()?.parse().ok()?;
        // The state is that of the first thread, which may have ended before the others.
        let threads: u64 = rest.nth(15)?.parse().ok()?;
        Some(Process {
            pid: Pid::from_raw(pid),
            parent: Pid::from_raw(parent),
            runs: !matches!(state, "Z" | "X") || threads > 1,
        })
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(process)
        .collect()
}

/// Ends every process below this one, which must be their subreaper, and takes their ends. Gives how many still
/// run when the time is over: none, in general.
pub(super) fn end_all(spared: &BTreeSet<Pid>) -> usize {
    let deadline = Instant::now() + SWEEP_LIMIT;
    let own = Pid::this();
    loop {
        let found = stopped(own, spared);
        for pid in &found {
            // Gone already is as good.
            let _ = kill(*pid, Signal::SIGKILL);
        }
        // Those of the last round, and what somebody else's end has left to this process.
        let ended = processes();
        for process in ended.iter().filter(|p| p.parent == own && !p.runs) {
            if !spared.contains(&process.pid) {
                let _ = waitpid(process.pid, Some(WaitPidFlag::WNOHANG));
            }
        }
        if found.is_empty() {
            return 0;
        }
        if Instant::now() >= deadline {
            return descendants(own, spared).len();
        }
        std::thread::sleep(PAUSE);
    }
}

/// Stops them first, until there are no new ones: what is stopped cannot make more.
fn stopped(own: Pid, spared: &BTreeSet<Pid>) -> BTreeSet<Pid> {
    let mut known = BTreeSet::new();
    for _ in 0..MAX_LOOKS {
        let found = descendants(own, spared);
        let new: Vec<Pid> = found.difference(&known).copied().collect();
        if new.is_empty() {
            break;
        }
        for pid in new {
            let _ = kill(pid, Signal::SIGSTOP);
            known.insert(pid);
        }
    }
    known
}

/// Takes the ends of all children that have ended.
pub(super) fn reap(mut ended: impl FnMut(Pid, WaitStatus)) {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => return,
            Ok(status) => {
                if let Some(pid) = status.pid() {
                    ended(pid, status);
                }
            }
            Err(Errno::EINTR) => {}
            // There are none.
            Err(_) => return,
        }
    }
}

/// Processes and threads of this process's user.
pub(super) fn tasks_of_user() -> u64 {
    let own = nix::unistd::getuid().as_raw();
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return 0;
    };
    let tasks = |pid: i32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        (field("Uid:")? == u64::from(own)).then(|| field("Threads:"))?
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(tasks)
        .sum()
}
