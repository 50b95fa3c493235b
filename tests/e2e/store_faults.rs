//! A store whose system calls fail, or take long: nobody is told what is not stored, and nobody is held up by others.

use std::io::Write as _;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::harness::{Daemon, EchoRunner, Place, Program, envelope};
use crate::store_failures::{
    NOTE, STORE, TEA, can, fails, file, not_started, not_twice, says, skipped, used, within,
};

/// From now on the broker's system calls of this kind fail; strace, which sees to it.
fn inject(daemon: &Daemon, fault: &str) -> Program {
    let (call, _) = fault.split_once(':').expect("a system call");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-o", "/dev/null", "-p", &daemon.pid().to_string()]);
    strace.args([
        "-e",
        &format!("trace={call}"),
        "-e",
        &format!("inject={fault}"),
    ]);
    let mut strace = Program::start(&mut strace);
    strace.says("attached");
    strace
}

fn has_strace() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        // Of a process that is not its own child.
        let attach = "sleep 0.5 & exec strace -o /dev/null -p $!";
        let has = can(Command::new("sh").args(["-c", attach]));
        if !has {
            skipped("system calls of the store that fail (needs strace, and leave to trace)");
        }
        has
    })
}

/// SQLite is built with one or the other.
const SYNC: &str = "fsync,fdatasync:error=EIO";
const FAULTS: [&str; 3] = [SYNC, "pwrite64:error=ENOSPC", "pwrite64:error=EIO"];

#[test]
fn a_dispatch_that_cannot_be_stored_does_not_happen() {
    if !has_strace() {
        return;
    }
    for fault in FAULTS {
        let mut daemon = Place::new().and(NOTE).start();
        let echo = daemon.echo();
        let mut agent = daemon.connect("bot");
        assert_eq!(agent.called("s", 1, "note", TEA)["content"], TEA);
        let _strace = inject(&daemon, fault);
        agent.call("s", 2, "note", TEA);
        assert_eq!(agent.closed(), Vec::<Value>::new(), "{fault}");
        let why = fails(&mut daemon);
        says(&daemon.place, &why, &["cannot write", "disk"]);
        assert_eq!(echo.served(), 1, "{fault}");
        daemon.restart();
        let echo = daemon.echo();
        let mut agent = daemon.connect("bot");
        assert_eq!(agent.called("s", 1, "note", TEA)["content"], TEA);
        not_twice(&mut agent, ("s", 2, "note", TEA), echo, false);
    }
}

#[test]
fn an_answer_that_cannot_be_stored_is_not_told_and_its_call_does_not_run_again() {
    if !has_strace() {
        return;
    }
    for fault in FAULTS {
        let mut daemon = Place::new().and(NOTE).start();
        let mut runner = daemon.connect("echo");
        let mut agent = daemon.connect("bot");
        agent.call("s", 1, "note", TEA);
        let (request, _) = runner.request();
        let _strace = inject(&daemon, fault);
        runner.result(request, TEA);
        assert_eq!(agent.closed(), Vec::<Value>::new(), "{fault}");
        fails(&mut daemon);
        daemon.restart();
        let echo = daemon.echo();
        not_twice(
            &mut daemon.connect("bot"),
            ("s", 1, "note", TEA),
            echo,
            true,
        );
    }
}

#[test]
fn a_label_that_cannot_be_stored_is_not_acted_on() {
    if !has_strace() {
        return;
    }
    for fault in FAULTS {
        let mut daemon = Place::new().start();
        let mut runner = daemon.join("files");
        let mut agent = daemon.connect("bot");
        agent.call("s", 1, "diary", "{}");
        let (request, _) = runner.request();
        let _strace = inject(&daemon, fault);
        runner.result(request, "dear diary");
        assert_eq!(agent.closed(), Vec::<Value>::new(), "{fault}");
        fails(&mut daemon);
    }
}

#[test]
fn a_question_that_cannot_be_stored_is_not_announced() {
    if !has_strace() {
        return;
    }
    let mut daemon = Place::new().start();
    let boss = daemon.join("boss");
    let mut agent = daemon.connect("bot");
    let _strace = inject(&daemon, SYNC);
    agent.call("ask-1", 1, "order", TEA);
    assert_eq!(agent.closed(), Vec::<Value>::new());
    assert_eq!(boss.closed(), Vec::<Value>::new());
    fails(&mut daemon);
}

#[test]
fn a_grant_that_cannot_be_stored_is_not_confirmed() {
    if !has_strace() {
        return;
    }
    let mut daemon = Place::new().start();
    let mut admin = daemon.join("admin");
    let _strace = inject(&daemon, "pwrite64:error=ENOSPC");
    let deny =
        "id = \"stop\"\nroles = [\"*\"]\nsessions = [\"*\"]\ntools = [\"*\"]\neffect = \"deny\"\n";
    admin.ask(
        "control",
        &json!({"op": "grant", "grant": deny, "reason": "stop it"}),
    );
    assert_eq!(admin.closed(), Vec::<Value>::new());
    fails(&mut daemon);
}

#[test]
fn a_store_that_cannot_be_read_is_not_called_damaged() {
    if !has_strace() {
        return;
    }
    // SQLite itself takes EIO for damage.
    for error in ["ESTALE", "EIO"] {
        let used = used();
        let place = &used.place;
        let mut strace = Command::new("strace");
        strace
            .args(["-f", "-o", "/dev/null", "-P"])
            .arg(file(place));
        for inject in ["pread64:error={}:when=4+", "read:error={}"] {
            let inject = format!("inject={}", inject.replace("{}", error));
            strace.args(["-e", &inject]);
        }
        let why = not_started(&mut within(strace, &place.daemon()), STORE);
        says(
            place,
            &why,
            &[
                "cannot read",
                "disk I/O error",
                "the kernel's log says more",
            ],
        );
        assert!(!why.contains("damaged"), "{error}: {why}");
    }
}

#[test]
fn a_slow_disk_holds_up_the_role_that_floods_it_and_no_other() {
    const MOST: usize = 64 << 20;
    let daemon = Place::new().start();
    let runner = EchoRunner::start(daemon.join("files"));
    let mut bot = daemon.connect("bot");
    bot.called("quick", 1, "read", TEA);
    let slow = Connection::open(file(&daemon.place)).expect("the store");
    slow.execute_batch("BEGIN IMMEDIATE").expect("its lock");
    // What nobody granted is recorded with its arguments, and answered before that is durable.
    let arguments = format!(r#"{{"what":"{}"}}"#, "x".repeat(60_000));
    let flood = daemon.connect("other").stream();
    flood
        .set_write_timeout(Some(Duration::from_secs(1)))
        .expect("a timeout");
    let mut written = 0;
    for call in 1.. {
        let body = json!({
            "session": "loud", "call": call, "tool": "nothing", "arguments": arguments,
        });
        let content = envelope(call, true, "tool_request", &body);
        let length = u32::try_from(content.len()).expect("a length");
        let frame = [&length.to_be_bytes(), content.as_bytes()].concat();
        if (&flood).write_all(&frame).is_err() {
            break;
        }
        written += frame.len();
        assert!(written < MOST, "{written} bytes were taken");
    }
    // A `read` call depends on no record, and its role is not held up.
    bot.called("quick", 2, "read", TEA);
    slow.execute_batch("COMMIT")
        .expect("the lock is given back");
    drop(flood);
    let mut order = daemon.connect("bot");
    order.called("slow", 1, "order", TEA);
    drop((bot, order));
    runner.served();
}
