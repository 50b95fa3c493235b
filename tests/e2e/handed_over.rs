//! Sockets that are handed over by name: by the real systemd-socket-activate where it can make them, and
//! by a script that makes every wrong kind.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::harness::{Daemon, PATIENCE, Place, Program, python};

const ROLES: [&str; 6] = ["bot", "other", "files", "echo", "boss", "admin"];

/// Makes what each argument NAME=KIND:PATH says from fd 3 on, and becomes the command after `--`.
const HAND_OVER: &str = r#"
import os, socket, sys
os.umask(0)
at = sys.argv.index("--")
made, names = [], []
for argument in sys.argv[1:at]:
    name, rest = argument.split("=", 1)
    kind, path = rest.split(":", 1)
    if kind == "stream" or kind == "bound":
        it = socket.socket(socket.AF_UNIX)
        it.bind(path)
        if kind == "stream":
            it.listen()
    elif kind == "abstract":
        it = socket.socket(socket.AF_UNIX)
        it.bind("\0" + path)
        it.listen()
    elif kind == "datagram":
        it = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        it.bind(path)
    elif kind == "packets":
        it = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        it.bind(path)
        it.listen()
    elif kind == "tcp":
        it = socket.socket()
        it.bind(("127.0.0.1", 0))
        it.listen()
    elif kind == "connected":
        it, other = socket.socketpair()
        made.append(other)
    elif kind == "unbound":
        it = socket.socket(socket.AF_UNIX)
    elif kind == "file":
        it = open(path, "w")
    names.append((name, it))
base = 100
for place, (name, it) in enumerate(names):
    os.dup2(it.fileno(), base + place)
for place, (name, it) in enumerate(names):
    os.dup2(base + place, 3 + place)
os.environ["LISTEN_PID"] = str(os.getpid())
os.environ["LISTEN_FDS"] = str(len(names))
os.environ["LISTEN_FDNAMES"] = ":".join(name for name, it in names)
os.execv(sys.argv[at + 1], sys.argv[at + 1:])
"#;

/// Whether the machine has it; one line says so where it has not.
fn can_activate() -> bool {
    let can = Command::new("systemd-socket-activate")
        .arg("--version")
        .output()
        .is_ok();
    if !can {
        // Past the capture of what passing tests print.
        let _ = writeln!(std::io::stderr(), "skipped: needs systemd-socket-activate");
    }
    can
}

/// The daemon under systemd-socket-activate, which listens and starts it for the first connection.
fn activating(place: &Place, names: &[&str]) -> Command {
    place.write(place.text());
    std::fs::create_dir_all(place.runtime()).expect("a folder");
    let mut command = Command::new("systemd-socket-activate");
    // Its own lines are not JSON.
    command.env("SYSTEMD_LOG_LEVEL", "warning");
    for role in ROLES {
        command.arg("--listen").arg(place.socket(role));
    }
    command.arg(format!("--fdname={}", names.join(":")));
    let daemon = place.daemon();
    command.arg(daemon.get_program()).args(daemon.get_args());
    command
}

/// Connects once, as soon as somebody listens there.
#[track_caller]
fn knock(path: &Path) {
    let deadline = Instant::now() + PATIENCE;
    while UnixStream::connect(path).is_err() {
        assert!(
            Instant::now() < deadline,
            "nobody listens on {}",
            path.display()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[track_caller]
fn activated(place: Place) -> Daemon {
    let mut command = activating(&place, &ROLES);
    let daemon = Daemon::of(place, &mut command);
    // The last one that it makes.
    knock(&daemon.socket("admin"));
    daemon.wait_for("ready");
    daemon
}

#[test]
fn sockets_that_systemd_hands_over_serve_their_roles_and_stay_at_the_end() {
    if !can_activate() {
        return;
    }
    let mut daemon = activated(Place::new());
    let _echo = daemon.echo();
    assert_eq!(
        daemon.connect("bot").called("s", 1, "echo", "{}")["content"],
        "{}"
    );
    for role in ROLES {
        assert_eq!(daemon.join_as(role)["role"], role);
    }
    daemon.signal(Signal::SIGTERM);
    assert_eq!(daemon.end().code(), Some(0));
    for role in ROLES {
        assert!(daemon.socket(role).exists(), "{role}.sock is gone");
    }
}

#[test]
fn a_reload_keeps_handed_over_sockets_and_is_refused_where_the_roles_would_need_others() {
    if !can_activate() {
        return;
    }
    let daemon = activated(Place::new());
    let text = daemon.place.text().to_owned();
    let role = "\n[roles.late]\nkind = \"operator\"\nusers = [\"0\"]\n";
    daemon.place.write(&format!("{text}{role}"));
    daemon.signal(Signal::SIGHUP);
    let fault = daemon.wait_for("reload_fault");
    let why = fault["detail"].as_str().expect("why");
    assert!(
        why.contains("roles.late") && why.contains("rolebroker@late.socket"),
        "{why}"
    );
    daemon.wait_for("reload_refused");

    let at = text.find("[roles.other]").expect("the role");
    let (before, after) = text.split_at(at);
    let (_, rest) = after.split_once("\n\n").expect("a table behind");
    daemon.place.write(&format!("{before}{rest}"));
    daemon.signal(Signal::SIGHUP);
    let fault = daemon.wait_for("reload_fault");
    let why = fault["detail"].as_str().expect("why");
    assert!(why.contains("rolebroker@other.socket"), "{why}");
    daemon.wait_for("reload_refused");

    let mut agent = daemon.join("bot");
    daemon
        .place
        .write(&text.replace("\"lines\", \"echo\"", "\"lines\""));
    daemon.signal(Signal::SIGHUP);
    daemon.wait_for("reloaded");
    assert_eq!(agent.called("s", 1, "echo", "{}")["reason"], "no_grant");
    assert_eq!(daemon.join_as("other")["role"], "other");
}

#[test]
fn names_that_are_not_exactly_the_roles_end_it_before_it_is_ready() {
    if !can_activate() {
        return;
    }
    for (names, wanted) in [
        (
            ["bot", "other", "files", "echo", "boss", "chief"],
            ["\"chief\"", "roles.admin"],
        ),
        (
            ["bot", "bot", "files", "echo", "boss", "admin"],
            ["two sockets", "roles.other"],
        ),
        (
            ["bot", "other", "files", "echo", "boss", "Admin"],
            ["\"Admin\"", "roles.admin"],
        ),
    ] {
        let place = Place::new();
        let mut command = activating(&place, &names);
        let mut daemon = Daemon::of(place, &mut command);
        knock(&daemon.socket("admin"));
        assert_eq!(daemon.end().code(), Some(78), "{names:?}");
        let log = daemon.log();
        for part in wanted {
            let quoted = part.replace('"', "\\\"");
            let told = log
                .lines()
                .any(|l| l.contains("not_started") && l.contains(&*quoted));
            assert!(told, "no {part} for {names:?}: {log}");
        }
        assert!(!log.contains("\"ready\""), "{log}");
    }
}

/// The command that hands over a good socket for each role but the first, and this for it.
fn handing(place: &Place, first: &str) -> Command {
    place.write(place.text());
    std::fs::create_dir_all(place.runtime()).expect("a folder");
    let good = |role: &&str| format!("{role}=stream:{}", place.socket(role).display());
    let mut command = python(HAND_OVER, [first]);
    command.args(ROLES[1..].iter().map(good));
    let daemon = place.daemon();
    command
        .arg("--")
        .arg(daemon.get_program())
        .args(daemon.get_args());
    command
}

#[test]
fn a_socket_of_another_kind_ends_it_and_the_log_names_it() {
    for (kind, wanted) in [
        ("datagram", "no Unix stream socket"),
        ("packets", "no Unix stream socket"),
        ("tcp", "no Unix stream socket"),
        ("file", "no Unix stream socket"),
        ("bound", "does not listen"),
        ("unbound", "does not listen"),
        ("connected", "does not listen"),
        ("abstract", "not bound to a path"),
    ] {
        let place = Place::new();
        let path = place.socket("bot").display().to_string();
        let mut command = handing(&place, &format!("bot={kind}:{path}"));
        let mut daemon = Daemon::of(place, &mut command);
        assert_eq!(daemon.end().code(), Some(78), "{kind}");
        let log = daemon.log();
        let told = |line: &str| line.contains("not_started") && line.contains("\\\"bot\\\"");
        assert!(
            log.lines().any(|l| told(l) && l.contains(wanted)),
            "{kind}: {log}"
        );
    }
    let place = Place::new();
    let path = place.socket("bot").display().to_string();
    let mut command = handing(&place, &format!("bot=stream:{path}"));
    let mut daemon = Program::start(&mut command);
    daemon.says("\"ready\"");
}

#[test]
fn sockets_that_are_meant_for_another_process_are_left_alone() {
    let place = Place::new();
    place.write(place.text());
    let mut command = place.daemon();
    command
        .env("LISTEN_FDS", "1")
        .env("LISTEN_PID", "1")
        .env("LISTEN_FDNAMES", "chief");
    let daemon = Daemon::of(place, &mut command);
    daemon.wait_for("ready");
    assert_eq!(daemon.join_as("admin")["role"], "admin");
}

#[test]
fn a_handed_over_socket_that_is_more_open_than_its_role_says_is_warned_of() {
    let place = Place::new().role("bot", "mode = 0o600");
    let path = place.socket("bot").display().to_string();
    let mut command = handing(&place, &format!("bot=stream:{path}"));
    let daemon = Daemon::of(place, &mut command);
    daemon.wait_for_line("the warning", |line| {
        let text = line["detail"].as_str().unwrap_or_default();
        line["event"] == "warning"
            && text.contains("roles.bot")
            && text.contains("rolebroker@bot.socket")
    });
}
