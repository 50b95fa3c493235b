//! `rolebroker call` while it waits: what a person on a terminal sees, and what ^C does.

use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::commands::{rolebroker, world};
use crate::harness::{Daemon, Peer, Program, program, python};

const CALL: [&str; 6] = ["call", "--session", "s", "--call", "1", "order"];

/// Runs a command on a terminal of 80 columns, types the first argument as soon as the second was shown, and prints
/// all that was shown; exits as the command does.
const ON_A_TERMINAL: &str = r#"
import fcntl, os, pty, struct, sys, termios
typed, trigger = sys.argv[1].encode().decode("unicode_escape").encode(), sys.argv[2].encode()
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    os.environ["TERM"] = "xterm"
    os.execv(sys.argv[3], sys.argv[3:])
seen = b""
while True:
    try:
        more = os.read(terminal, 65536)
    except OSError:
        break
    if not more:
        break
    seen += more
    if typed and trigger in seen:
        os.write(terminal, typed)
        typed = b""
sys.stdout.write(seen.decode())
sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;

fn on_a_terminal(daemon: &Daemon, args: &[&str], typed: &str, trigger: &str) -> Program {
    let command = rolebroker(daemon, "bot", args);
    let mut python: Command = python(ON_A_TERMINAL, [typed, trigger]);
    python.arg(program("rolebroker")).args(command.get_args());
    Program::start(&mut python)
}

fn tells(runner: &mut Peer, request: u64, note: &str) {
    let body = json!({"done": 1, "total": 2, "note": note});
    runner.say(request, false, "progress", &body);
}

/// The next word of the broker about a request, which is that it ends.
#[track_caller]
fn is_cancelled(runner: &mut Peer, request: u64) {
    let said = runner.answer(request);
    assert_eq!(said["msg"]["kind"], "cancel", "{said}");
}

#[test]
fn on_a_terminal_progress_is_shown_and_erased_before_the_answer() {
    let (daemon, mut runner) = world();
    let mut call = on_a_terminal(&daemon, &CALL, "", "");
    let (request, _) = runner.request();
    tells(&mut runner, request, "half\u{1b}[2J");
    runner.result(request, "ordered");
    let (code, shown, err) = call.end();
    assert_eq!(code, Some(0), "{shown:?} {err}");
    let (before, after) = shown.split_once("1 of 2  half\\u{1b}[2J").expect(&shown);
    assert!(
        before.ends_with("s  "),
        "the time that has passed is missing: {shown:?}"
    );
    assert!(
        after.starts_with("\r\u{1b}[J"),
        "it is not erased: {shown:?}"
    );
    assert!(after.contains("ordered"), "{shown:?}");
}

#[test]
fn whoever_waits_for_a_person_is_told_what_to_type_where() {
    let (daemon, mut runner) = world();
    let args = [
        "call",
        "--session",
        "ask-1",
        "--call",
        "1",
        "order",
        "what=tea",
    ];
    let mut call = on_a_terminal(&daemon, &args, "", "");
    let asked = daemon.wait_for("approval_asked");
    let approval = asked["approval"].as_str().expect("a name");
    daemon.join("boss").approves();
    let (request, _) = runner.request();
    runner.result(request, "ordered");
    let (code, shown, err) = call.end();
    assert_eq!(code, Some(0), "{shown:?} {err}");
    // The terminal's lines are its own; the words are ours.
    let words = shown.replace("\r\n", "");
    let told = format!(
        "waiting for a person: approval {approval}; an approver answers with `rolebroker approve {approval}`, and --as \
         ROLE if the role is not called approver"
    );
    assert!(words.contains(&told), "{shown:?}");
}

#[test]
fn programs_see_no_progress() {
    let (daemon, mut runner) = world();
    let mut call = Program::start(&mut rolebroker(&daemon, "bot", &CALL));
    let (request, _) = runner.request();
    tells(&mut runner, request, "half");
    runner.result(request, "ordered");
    assert_eq!(call.end(), (Some(0), "ordered".to_owned(), String::new()));

    let args = ["call", "--session", "s", "--call", "2", "order", "--json"];
    let mut call = on_a_terminal(&daemon, &args, "", "");
    let (request, _) = runner.request();
    tells(&mut runner, request, "half");
    runner.result(request, "ordered");
    let (code, shown, err) = call.end();
    assert_eq!(code, Some(0), "{shown:?} {err}");
    let said: Value =
        serde_json::from_str(&shown).unwrap_or_else(|error| panic!("{error}: {shown:?}"));
    assert_eq!(said["content"], "ordered");
}

#[test]
fn an_interrupt_on_the_terminal_cancels_the_call_and_waits_for_its_answer() {
    let (daemon, mut runner) = world();
    let mut call = on_a_terminal(&daemon, &CALL, "\\x03", "1 of 2");
    let (request, _) = runner.request();
    tells(&mut runner, request, "half");
    is_cancelled(&mut runner, request);
    runner.fails(request, "stopped in the middle");
    let (code, shown, err) = call.end();
    assert_eq!(code, Some(4), "{shown:?} {err}");
    for part in [
        "cancelling; ^C again leaves at once",
        "it said: stopped in the middle",
    ] {
        assert!(shown.contains(part), "{part} is not in {shown:?}");
    }
}

#[test]
fn an_interrupted_call_that_waits_for_a_person_is_cancelled() {
    let (daemon, mut runner) = world();
    let args = [
        "call",
        "--session",
        "ask-1",
        "--call",
        "1",
        "order",
        "what=tea",
        "--json",
    ];
    let mut call = Program::start(&mut rolebroker(&daemon, "bot", &args));
    daemon.wait_for("approval_asked");
    call.signal(Signal::SIGINT);
    let (code, out, err) = call.end();
    assert_eq!(code, Some(4), "{out}{err}");
    let said: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"));
    assert_eq!(said["code"], "cancelled", "{said}");
    runner.is_silent();
}

#[test]
fn a_second_interrupt_leaves_at_once_and_the_answer_waits_for_a_repeat() {
    let (daemon, mut runner) = world();
    let mut call = Program::start(&mut rolebroker(&daemon, "bot", &CALL));
    let (request, _) = runner.request();
    call.signal(Signal::SIGINT);
    is_cancelled(&mut runner, request);
    call.signal(Signal::SIGINT);
    assert_eq!(call.end().0, Some(130));
    runner.result(request, "ordered after all");
    let mut again = Program::start(&mut rolebroker(&daemon, "bot", &CALL));
    assert_eq!(again.end().1, "ordered after all");
}
