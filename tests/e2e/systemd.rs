//! What the service manager is told, by a NOTIFY_SOCKET of the test's own: which words, and in which order.

use std::io::{ErrorKind, Write as _};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, waitpid};
use serde_json::json;

use crate::harness::{Daemon, PATIENCE, Place};

const SOCKET: &str = "notify";
/// Often enough that a test need not wait, seldom enough that a busy machine keeps up.
const WATCHDOG: Duration = Duration::from_millis(200);

/// The service manager's side.
struct Manager {
    socket: UnixDatagram,
}

impl Manager {
    fn of(place: &Place) -> Self {
        let socket = UnixDatagram::bind(place.path().join(SOCKET)).expect("binds");
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Self { socket }
    }

    /// The next message: its lines.
    #[track_caller]
    fn next(&self) -> Vec<String> {
        self.within(PATIENCE)
            .unwrap_or_else(|| panic!("nothing more was told"))
    }

    fn within(&self, patience: Duration) -> Option<Vec<String>> {
        let mut buffer = [0; 4096];
        self.socket.set_read_timeout(Some(patience)).expect("set");
        let length = match self.socket.recv(&mut buffer) {
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
            Err(error) => panic!("{error}"),
        };
        let text = String::from_utf8(buffer[..length].to_vec()).expect("UTF-8");
        Some(text.lines().map(str::to_owned).collect())
    }

    /// Everything that was told and not read yet.
    fn rest(&self) -> Vec<Vec<String>> {
        self.socket.set_nonblocking(true).expect("nonblocking");
        let rest = std::iter::from_fn(|| self.within(PATIENCE)).collect();
        self.socket.set_nonblocking(false).expect("blocking");
        rest
    }

    /// The next message that is not only numbers.
    #[track_caller]
    fn next_word(&self) -> Vec<String> {
        loop {
            let lines = self.next();
            if !is_numbers(&lines) {
                return lines;
            }
        }
    }

    /// The next message of numbers with this text.
    #[track_caller]
    fn numbers(&self, text: &str) {
        loop {
            let lines = self.next();
            if is_numbers(&lines) && lines[0].contains(text) {
                return;
            }
        }
    }
}

fn is_numbers(lines: &[String]) -> bool {
    lines.len() == 1 && lines[0].starts_with("STATUS=")
}

/// A daemon that tells this manager; it is not ready yet.
fn told(place: Place, watchdog: Option<(Duration, &str)>) -> (Daemon, Manager) {
    place.write(place.text());
    let manager = Manager::of(&place);
    let mut command = telling(&place);
    if let Some((every, pid)) = watchdog {
        command.env("WATCHDOG_USEC", every.as_micros().to_string());
        command.env("WATCHDOG_PID", pid);
    }
    (Daemon::of(place, &mut command), manager)
}

fn telling(place: &Place) -> Command {
    let mut command = place.daemon();
    command.env("NOTIFY_SOCKET", place.path().join(SOCKET));
    command
}

#[test]
fn ready_is_the_first_word_and_every_socket_answers_by_then() {
    let (daemon, manager) = told(Place::new(), None);
    let first = manager.next();
    assert_eq!(first[0], "READY=1", "{first:?}");
    assert!(first[1].starts_with("STATUS=6 roles, 0 conn"), "{first:?}");
    for role in ["bot", "other", "files", "echo", "boss", "admin"] {
        daemon.connect(role).hello(&[]);
    }
}

#[test]
fn what_cannot_start_is_never_ready() {
    let occupied = Place::new();
    std::fs::create_dir(occupied.runtime()).expect("a folder");
    std::fs::write(occupied.socket("files"), "not a socket").expect("a file");
    let stranger = Place::new().role("bot", "groups = [\"no-such-group\"]");
    for place in [Place::new().and("sesions = 1\n"), stranger, occupied] {
        place.write(place.text());
        let manager = Manager::of(&place);
        let mut command = telling(&place);
        assert_eq!(Daemon::of(place, &mut command).end().code(), Some(78));
        assert_eq!(manager.rest(), Vec::<Vec<String>>::new());
    }
}

#[test]
fn a_manager_that_is_not_there_does_not_keep_it_from_starting() {
    let place = Place::new();
    place.write(place.text());
    // Nobody has bound it.
    let mut command = telling(&place);
    let daemon = Daemon::of(place, &mut command);
    daemon.wait_for("manager_not_told");
    daemon.wait_for("ready");
}

/// The two messages of one reload: the time that the first one tells, and the status of the second.
#[track_caller]
fn reload_told(manager: &Manager) -> (u64, String) {
    let begun = manager.next_word();
    assert_eq!(begun[0], "RELOADING=1", "{begun:?}");
    let (word, time) = begun[1].split_once('=').expect("a word");
    assert_eq!((word, begun.len()), ("MONOTONIC_USEC", 2), "{begun:?}");
    let ended = manager.next_word();
    assert_eq!(ended[0], "READY=1", "{ended:?}");
    let status = ended[1].strip_prefix("STATUS=").expect("a status");
    (time.parse().expect("microseconds"), status.to_owned())
}

#[test]
fn a_reload_is_told_from_its_beginning_to_its_end_and_whether_it_was_taken() {
    let (daemon, manager) = told(Place::new(), None);
    assert_eq!(manager.next_word()[0], "READY=1");

    daemon.signal(Signal::SIGHUP);
    let (first, status) = reload_told(&manager);
    assert!(status.ends_with("; the last reload was taken"), "{status}");

    let bad = daemon.place.text().to_owned() + "sesions = 1\nREADY = 1\n";
    daemon.place.write(&bad);
    daemon.signal(Signal::SIGHUP);
    let (second, status) = reload_told(&manager);
    assert!(
        status.contains("refused, the old configuration stays"),
        "{status}"
    );
    assert!(status.contains("sesions"), "{status}");
    assert!(second > first, "{second} after {first}");

    // However it is asked for.
    daemon.place.write(daemon.place.text());
    let mut admin = daemon.join("admin");
    let id = admin.ask("control", &json!({"op": "reload"}));
    let (third, status) = reload_told(&manager);
    admin.ends(id);
    assert!(status.ends_with("; the last reload was taken"), "{status}");
    assert!(third > second, "{third} after {second}");
}

#[test]
fn that_it_stops_is_told_once_while_calls_still_run_and_nothing_comes_after_it_but_numbers() {
    for by_operator in [false, true] {
        let (mut daemon, manager) = told(Place::new(), None);
        assert_eq!(manager.next_word()[0], "READY=1");
        let mut runner = daemon.connect("files");
        let mut agent = daemon.connect("bot");
        let id = agent.call("s", 1, "order", "{}");
        let (request, _) = runner.request();
        if by_operator {
            let mut admin = daemon.join("admin");
            let id = admin.ask("control", &json!({"op": "drain"}));
            admin.ends(id);
        } else {
            daemon.signal(Signal::SIGTERM);
        }
        let word = manager.next_word();
        assert_eq!(word[0], "STOPPING=1", "{word:?}");
        assert!(word[1].starts_with("EXTEND_TIMEOUT_USEC="), "{word:?}");
        assert!(word[2].starts_with("STATUS=draining: "), "{word:?}");
        // A reload comes too late to be told.
        daemon.signal(Signal::SIGHUP);
        daemon.wait_for("reloaded");
        runner.result(request, "ordered");
        assert_eq!(agent.ends(id)["content"], "ordered");
        assert_eq!(daemon.end().code(), Some(0));
        let rest = manager.rest();
        assert!(rest.iter().all(|lines| is_numbers(lines)), "{rest:?}");
    }
}

#[test]
fn the_status_tells_what_is_going_on() {
    let (daemon, manager) = told(Place::new(), None);
    daemon.wait_for("ready");
    let _runner = daemon.connect("files");
    let mut agent = daemon.connect("bot");
    agent.call("s", 1, "order", "{}");
    manager.numbers("6 roles, 2 connections, 1 sessions, 1 calls in flight");
}

#[test]
fn an_idle_daemon_feeds_the_watchdog() {
    let (_daemon, manager) = told(Place::new(), Some((WATCHDOG, "")));
    assert_eq!(manager.next_word()[0], "READY=1");
    for _ in 0..3 {
        assert_eq!(manager.next_word(), ["WATCHDOG=1"]);
    }
}

#[test]
fn the_watchdog_of_another_process_is_not_fed() {
    let (mut daemon, manager) = told(Place::new(), Some((Duration::from_micros(1), "1")));
    daemon.wait_for("ready");
    let _echo = daemon.echo();
    for call in 1..=20 {
        daemon.connect("bot").called("s", call, "echo", "{}");
    }
    daemon.signal(Signal::SIGTERM);
    daemon.end();
    let rest = manager.rest();
    assert!(!rest.is_empty() && !rest.concat().contains(&"WATCHDOG=1".to_owned()));
}

/// Holds one thread of the daemon still, the reactor's, while the others go on.
#[test]
fn a_reactor_that_stands_still_feeds_no_watchdog() {
    let (daemon, manager) = told(Place::new(), Some((WATCHDOG, "")));
    assert_eq!(manager.next_word()[0], "READY=1");
    assert_eq!(manager.next_word(), ["WATCHDOG=1"]);
    let reactor = daemon.pid();
    if let Err(error) = ptrace::seize(reactor, ptrace::Options::empty()) {
        // Past the capture of what passing tests print.
        let _ = writeln!(
            std::io::stderr(),
            "skipped: a stopped reactor (ptrace: {error})"
        );
        return;
    }
    ptrace::interrupt(reactor).expect("interrupts");
    waitpid(reactor, Some(WaitPidFlag::__WALL)).expect("it stops");
    let others = states(&format!("/proc/{reactor}/task"), reactor.as_raw());
    assert!(others.iter().all(|state| state != "t"), "{others:?}");
    assert!(!others.is_empty(), "no other thread runs");
    manager.rest();
    assert_eq!(manager.within(WATCHDOG * 5), None);
    ptrace::detach(reactor, None).expect("goes on");
    assert_eq!(manager.next_word(), ["WATCHDOG=1"]);
}

/// What the threads of a process do, but for one.
fn states(folder: &str, but: i32) -> Vec<String> {
    let threads = std::fs::read_dir(folder).expect("its threads");
    let names = threads.map(|thread| thread.expect("a thread").path());
    let others = names.filter(|path| path.file_name() != Path::new(&but.to_string()).file_name());
    others
        .filter_map(|path| std::fs::read_to_string(path.join("stat")).ok())
        .filter_map(|stat| {
            let (_, behind) = stat.rsplit_once(") ")?;
            Some(behind.split(' ').next()?.to_owned())
        })
        .collect()
}
