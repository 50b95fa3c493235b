//! Commands through the daemon: what they leave, what they cost, and what ends them.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::harness::{PATIENCE, as_user, can_be_others};
use crate::runner_stage::{Stage, all_end};

/// `script` runs a shell script that is given as an argument: what no real configuration should have.
fn config(keys: &str) -> String {
    format!(
        r#"
[[command]]
name = "script"
description = "runs a script"
argv = ["/bin/sh", "-c", "{{script}}"]
cwd = "WORK"
write = ["WORK"]
{keys}
[command.arguments.script]
type = "string"
max_len = 2000
"#
    )
}

/// Two processes that ignore TERM, one in a session of its own; both write their numbers.
const STUBBORN: &str = "trap '' TERM; echo $$ >>pids;
    setsid sh -c 'trap \"\" TERM HUP; echo $$ >>pids; sleep 1000' & while :; do sleep 1; done";

#[test]
fn a_command_gives_its_output_at_its_label_and_raises_the_session() {
    let mut stage = Stage::start(&config("class = \"confidential\"\nuntrusted = true"));
    let body = stage.call(
        "script",
        &json!({"script": "echo hello; id -un >/dev/null"}),
    );
    assert_eq!(body["content"], "hello\n", "{body}");
    assert_eq!(
        (&body["class"], &body["untrusted"]),
        (&json!("confidential"), &json!(true))
    );
    let told = stage.fails("script", &json!({"script": "echo no >&2; exit 3"}));
    assert_eq!(told, "runner_failed: exit code 3; its standard error: no");
    let told = stage.fails("script", &json!({"script": "-c"}));
    assert_eq!(told, "runner_failed: `script` may not begin with `-`");
}

#[test]
fn a_cancel_ends_what_ignores_term_and_what_has_forked_away() {
    let mut stage = Stage::start(&config("grace = \"100ms\""));
    let (id, call) = stage.ask("script", &json!({ "script": STUBBORN }));
    let pids = stage.pids(2);
    stage.cancel(call);
    let body = stage.bot.ends(id);
    assert_eq!(
        body["message"], "runner_failed: cancelled, and ended",
        "{body}"
    );
    all_end(&pids);
}

#[test]
fn a_flood_and_an_open_network_and_a_read_of_standard_input_end_by_themselves() {
    let mut stage = Stage::start(&config("output = \"64KiB\""));
    let told = stage.fails("script", &json!({"script": "exec yes"}));
    assert!(told.contains("wrote more than the 65536 bytes"), "{told}");
    let body = stage.call("script", &json!({"script": "cat; echo end"}));
    assert_eq!(body["content"], "end\n", "{body}");
    let open = "exec perl -MSocket -e 'print socket(my $s, AF_INET, SOCK_STREAM, 0) ? 1 : 0'";
    assert_eq!(
        stage.call("script", &json!({"script": open}))["content"],
        "0"
    );
    let daemons = stage.daemon.socket("bot");
    let connect = format!(
        "exec perl -MSocket -e 'print socket(my $s, AF_UNIX, SOCK_STREAM, 0) && connect($s, pack_sockaddr_un(\"{}\")) ? 1 : 0'",
        daemons.display()
    );
    assert_eq!(
        stage.call("script", &json!({"script": connect}))["content"],
        "0",
        "it spoke to the daemon"
    );
}

#[test]
fn sigterm_ends_the_commands_answers_their_calls_and_exits_with_0() {
    let mut stage = Stage::start(&config("grace = \"100ms\"\neffects = \"once\""));
    let (id, _) = stage.ask("script", &json!({ "script": STUBBORN }));
    let pids = stage.pids(2);
    stage.signal(Signal::SIGTERM);
    let body = stage.bot.ends(id);
    assert_eq!(
        body["message"], "runner_failed: cancelled, and ended",
        "{body}"
    );
    assert_eq!(stage.end().code(), Some(0));
    all_end(&pids);
}

#[test]
fn a_runner_that_is_killed_leaves_no_command_behind() {
    let mut stage = Stage::start(&config(""));
    stage.ask("script", &json!({ "script": STUBBORN }));
    let pids = stage.pids(2);
    stage.signal(Signal::SIGKILL);
    all_end(&pids);
}

#[test]
fn a_guard_that_is_killed_leaves_no_command_behind() {
    let mut stage = Stage::start(&config(""));
    let (id, _) = stage.ask("script", &json!({ "script": STUBBORN }));
    let pids = stage.pids(2);
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", stage.pid())).unwrap();
    let guard: i32 = children.trim().parse().expect("one guard");
    kill(Pid::from_raw(guard), Signal::SIGKILL).unwrap();
    let body = stage.bot.ends(id);
    assert!(
        body["message"].as_str().unwrap().contains("guard was lost"),
        "{body}"
    );
    all_end(&pids);
    // And the runner serves on.
    assert_eq!(
        stage.call("script", &json!({"script": "echo on"}))["content"],
        "on\n"
    );
    // Their ends were taken too: nothing of them counts against what the service may run.
    let path = format!("/proc/{0}/task/{0}/children", stage.pid());
    let begun = std::time::Instant::now();
    while let left @ 1.. = fs::read_to_string(&path)
        .unwrap()
        .split_whitespace()
        .count()
    {
        assert!(begun.elapsed() < PATIENCE, "{left} ended and not taken");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn a_daemon_that_goes_away_cancels_the_commands_and_is_found_again() {
    let mut stage = Stage::start(&config("grace = \"100ms\""));
    stage.ask("script", &json!({ "script": STUBBORN }));
    let pids = stage.pids(2);
    stage.daemon.signal(Signal::SIGKILL);
    all_end(&pids);
    stage.daemon.end();
    stage.daemon.restart();
    stage
        .log
        .wait_for("serving again", |line| line["event"] == "serving");
    stage.bot = stage.daemon.join("bot");
    assert_eq!(
        stage.call("script", &json!({"script": "echo on"}))["content"],
        "on\n"
    );
}

#[test]
fn a_fork_bomb_stops_at_its_processes() {
    if !can_be_others() {
        return;
    }
    // The limit does not hold root.
    let mut stage = Stage::start_by(&config("processes = 20\ntimeout = \"20s\""), |command| {
        as_user(65533, &command).expect("another user")
    });
    let bomb = "n=0; while :; do sleep 100 & n=$((n+1)); [ $n -lt 500 ] || exit 9; done 2>&1";
    let told = stage.fails("script", &json!({"script": bomb}));
    assert!(told.contains("exit code 2"), "{told}");
}
