//! The runner as a service: what it says at its start, what it is confined to, and what systemd hears.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::harness::{finished, program, python};
use crate::runner_stage::Stage;

const FOLDER: &str = "[[folder]]\npath = \"WORK\"\nclass = \"public\"\nuntrusted = false\n";

#[test]
fn systemd_hears_ready_then_what_it_does_and_then_stopping() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket
        .set_read_timeout(Some(crate::harness::PATIENCE))
        .unwrap();
    let heard = || {
        let mut buffer = [0; 512];
        let read = socket.recv(&mut buffer).expect("a state");
        String::from_utf8(buffer[..read].to_vec()).unwrap()
    };
    let mut stage = Stage::start_by(FOLDER, |mut command| {
        command.env("NOTIFY_SOCKET", &path);
        command
    });
    assert_eq!(heard(), "READY=1\nSTATUS=serving files\n");
    stage.signal(Signal::SIGTERM);
    assert_eq!(heard(), "STOPPING=1\nSTATUS=stopping\n");
    assert_eq!(stage.end().code(), Some(0));
}

#[test]
fn its_log_has_the_fields_of_the_daemons() {
    let mut stage = Stage::start(FOLDER);
    stage.fails(
        "read_file",
        &json!({"path": stage.work().join("none-such")}),
    );
    let line = stage.log.wait_for("call", |line| line["event"] == "call");
    assert_eq!(
        (
            &line["level"],
            &line["session"],
            &line["call"],
            &line["tool"]
        ),
        (&json!("debug"), &json!("s"), &json!(1), &json!("read_file"))
    );
    assert!(
        line["ts"].is_string() && line["elapsed_us"].is_u64(),
        "{line}"
    );
    assert!(
        !stage.log.text().contains("none-such"),
        "an argument is in the log"
    );
}

#[test]
fn it_is_confined_itself() {
    let stage = Stage::start(FOLDER);
    let status = fs::read_to_string(format!("/proc/{}/status", stage.pid())).unwrap();
    for field in ["NoNewPrivs:\t1", "Seccomp:\t2"] {
        assert!(status.contains(field), "no {field} in\n{status}");
    }
    if stage.log.text().contains("landlock") {
        eprintln!("skipped: Landlock (this kernel lacks it)");
    }
}

/// Forbids Landlock's system calls, as a kernel without it, and becomes the command in its arguments.
const WITHOUT_LANDLOCK: &str = r#"
import ctypes, os, struct, sys
rules = [(0x20, 0, 0, 0), (0x15, 0, 1, 444), (0x06, 0, 0, 0x00050000 | 38), (0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(rules), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, program) == 0, os.strerror(ctypes.get_errno())
os.execv(sys.argv[1], sys.argv[1:])
"#;

fn without_landlock(command: &Command) -> Command {
    let mut other = python(
        WITHOUT_LANDLOCK,
        std::iter::once(command.get_program()).chain(command.get_args()),
    );
    other.env("ROLEBROKER_LOG", "debug");
    other
}

#[test]
fn a_kernel_without_landlock_is_said_at_start_and_done_without() {
    let mut stage = Stage::start_by(FOLDER, |command| without_landlock(&command));
    fs::write(stage.work().join("a"), "served").unwrap();
    let read = stage.call("read_file", &json!({"path": stage.work().join("a")}));
    assert_eq!(read["content"], "served");
    let text = stage.log.text();
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let missing: Vec<Value> = lines
        .filter(|line| line["event"] == "confinement_missing")
        .collect();
    assert!(
        missing
            .iter()
            .any(|line| line["feature"] == "landlock" && line["leaves"].is_string()),
        "{missing:?}"
    );
}

#[test]
fn a_kernel_without_landlock_is_refused_where_confinement_is_required() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(program("rolebroker-runner"));
    command.arg("--folder").arg(folder.path());
    command.args([
        "--confine",
        "required",
        "--once",
        "--socket",
        "/nowhere.sock",
    ]);
    let output = finished(&mut without_landlock(&command), 78);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("\"event\":\"not_started\"") && text.contains("required"),
        "{text}"
    );
    assert!(text.contains("\"feature\":\"landlock\""), "{text}");
}

#[test]
fn a_configuration_with_faults_is_refused_with_each_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("runner.toml");
    fs::write(&file, "sockets = 1\n[[folder]]\npath = \"docs\"\n").unwrap();
    for check in [true, false] {
        let mut command = Command::new(program("rolebroker-runner"));
        command.arg("--config").arg(&file);
        if check {
            command.arg("--check-config");
        }
        let output = finished(&mut command, 78);
        let text = String::from_utf8_lossy(&output.stderr);
        for fault in [
            "runner.toml:1: ",
            "runner.toml:3: folder 1: `path` must be an absolute path",
        ] {
            assert!(text.contains(fault), "{check}: no {fault} in {text}");
        }
    }
    fs::write(&file, "[[folder]]\npath = \"/none/such\"\n").unwrap();
    finished(
        Command::new(program("rolebroker-runner"))
            .arg("--check-config")
            .arg("--config")
            .arg(&file),
        0,
    );
    finished(
        Command::new(program("rolebroker-runner"))
            .arg("--config")
            .arg(&file),
        78,
    );
    finished(&mut Command::new(program("rolebroker-runner")), 64);
}
