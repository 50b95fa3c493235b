//! Signals: SIGTERM drains, SIGHUP loads anew.

use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::json;

use crate::harness::{Daemon, EchoRunner, Peer, Place, Program, program};

const DENY_ALL: &str = "\n\n[[grant]]\nid = \"stop\"\nroles = [\"*\"]\nsessions = [\"*\"]\n\
    tools = [\"*\"]\neffect = \"deny\"\n";

fn begun(daemon: &Daemon) -> (Peer, u64, Peer, u64) {
    let mut runner = daemon.connect("files");
    let mut agent = daemon.connect("bot");
    let id = agent.call("s", 1, "order", "{}");
    let (request, _) = runner.request();
    (agent, id, runner, request)
}

#[test]
fn sigterm_lets_calls_in_flight_end_and_leaves_nothing_behind() {
    let mut daemon = Place::new().start();
    let (mut agent, id, mut runner, request) = begun(&daemon);
    daemon.signal(Signal::SIGTERM);
    daemon.wait_for("draining");
    runner.result(request, "ordered");
    assert_eq!(agent.ends(id)["content"], "ordered");
    assert_eq!(daemon.end().code(), Some(0));
    assert_eq!(agent.closed(), Vec::<serde_json::Value>::new());
    assert_eq!(runner.closed(), Vec::<serde_json::Value>::new());
    let left: Vec<_> = std::fs::read_dir(daemon.place.runtime())
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name())
        .filter(|name| name.to_string_lossy().ends_with(".sock"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn sigterm_without_calls_ends_at_once_and_a_restart_serves_again() {
    let mut daemon = Place::new().start();
    let agent = daemon.join("bot");
    daemon.signal(Signal::SIGTERM);
    assert_eq!(daemon.end().code(), Some(0));
    assert!(agent.closed().is_empty());
    daemon.restart();
    let _echo = daemon.echo();
    let answer = daemon.connect("bot").called("s", 1, "echo", r#"{"a":1}"#);
    assert_eq!(answer["content"], r#"{"a":1}"#);
    daemon.signal(Signal::SIGTERM);
    assert_eq!(daemon.end().code(), Some(0));
}

#[test]
fn a_call_that_outlasts_the_drain_is_unknown_and_the_broker_ends_well() {
    let mut daemon = Place::new().setting("drain_timeout = \"200ms\"").start();
    let (mut agent, id, _runner, _) = begun(&daemon);
    daemon.signal(Signal::SIGTERM);
    let answer = agent.ends(id);
    let message = answer["message"].as_str().expect("a message");
    assert!(message.starts_with("unknown_outcome: "), "{answer}");
    assert_eq!(daemon.end().code(), Some(0));
}

#[test]
fn sighup_with_a_good_file_changes_the_rules_and_spares_the_call_in_flight() {
    let daemon = Place::new().start();
    let (mut agent, id, mut runner, request) = begun(&daemon);
    let without = daemon
        .place
        .text()
        .replace("\"order\", \"send\"", "\"send\"");
    daemon.place.write(&without);
    daemon.signal(Signal::SIGHUP);
    daemon.wait_for("reloaded");
    runner.result(request, "ordered");
    assert_eq!(agent.ends(id)["content"], "ordered");
    let denied = json!({"status": "denied", "reason": "no_grant"});
    assert_eq!(agent.called("s", 2, "order", "{}"), denied);
    // The stored answer is still its agent's: no deny applies.
    assert_eq!(agent.called("s", 1, "order", "{}")["content"], "ordered");
    daemon.place.write(&(without + DENY_ALL));
    daemon.signal(Signal::SIGHUP);
    daemon.wait_for("reloaded");
    let denied = json!({"status": "denied", "reason": "denied_by_grant"});
    assert_eq!(agent.called("s", 1, "order", "{}"), denied);
}

#[test]
fn sighup_with_a_bad_file_changes_nothing_and_says_why() {
    let daemon = Place::new().start();
    let (mut agent, id, mut runner, request) = begun(&daemon);
    let bad = daemon.place.text().to_owned() + DENY_ALL + "sesions = [\"*\"]\n";
    daemon.place.write(&bad);
    daemon.signal(Signal::SIGHUP);
    daemon.wait_for_line("the fault", |line| {
        line["detail"]
            .as_str()
            .is_some_and(|why| why.contains("sesions"))
    });
    daemon.wait_for("reload_refused");
    runner.result(request, "ordered");
    assert_eq!(agent.ends(id)["content"], "ordered");
    let id = agent.call("s", 2, "order", "{}");
    let (request, _) = runner.request();
    runner.result(request, "ordered again");
    assert_eq!(agent.ends(id)["content"], "ordered again");
}

#[test]
fn a_reload_that_takes_a_role_away_closes_its_peers_and_its_socket() {
    let daemon = Place::new().start();
    let other = daemon.join("other");
    let mut bot = daemon.join("bot");
    let role = "[roles.other]\nkind = \"agent\"\nusers = [\"";
    let at = daemon.place.text().find(role).expect("the role");
    let (before, after) = daemon.place.text().split_at(at);
    let (_, rest) = after.split_once("\n\n").expect("a table behind");
    daemon.place.write(&format!("{before}{rest}"));
    daemon.signal(Signal::SIGHUP);
    daemon.wait_for("reloaded");
    assert!(other.closed().is_empty());
    assert!(!daemon.socket("other").exists());
    let _echo = daemon.echo();
    assert_eq!(bot.called("s", 1, "echo", "{}")["content"], "{}");
}

#[test]
fn a_call_that_waits_for_a_person_does_not_hold_the_drain_up() {
    let mut daemon = Place::new().start();
    let mut agent = daemon.connect("bot");
    let id = agent.call("ask-1", 1, "order", "{}");
    assert_eq!(
        agent.answer(id)["msg"]["body"]["status"],
        "pending_approval"
    );
    daemon.signal(Signal::SIGTERM);
    let answer = agent.ends(id);
    let message = answer["message"].as_str().expect("a message");
    assert!(message.starts_with("shutting_down: "), "{answer}");
    assert_eq!(daemon.end().code(), Some(0));
}

#[test]
fn a_peer_that_does_not_read_does_not_hold_the_end_up_for_longer_than_write_timeout() {
    let mut daemon = Place::new().setting("write_timeout = \"500ms\"").start();
    let mut runner = daemon.connect("files");
    let mut sleeper = daemon.connect("bot");
    for call in 1..=4 {
        sleeper.call("s", call, "read", "{}");
    }
    for _ in 1..=4 {
        let (request, _) = runner.request();
        runner.result(request, &"x".repeat(1 << 20));
        daemon.wait_for("answered");
    }
    daemon.signal(Signal::SIGTERM);
    assert_eq!(daemon.end().code(), Some(0));
}

#[test]
fn a_second_sigterm_ends_it_at_once() {
    let mut daemon = Place::new().setting("drain_timeout = \"1h\"").start();
    let (_agent, _, _runner, _) = begun(&daemon);
    daemon.signal(Signal::SIGTERM);
    daemon.wait_for("draining");
    daemon.signal(Signal::SIGTERM);
    assert_eq!(daemon.end().code(), Some(0));
}

#[test]
fn a_crash_leaves_sockets_that_the_next_start_replaces() {
    let mut daemon = Place::new().start();
    daemon.signal(Signal::SIGKILL);
    daemon.end();
    assert!(daemon.socket("bot").exists());
    daemon.restart();
    let _echo = daemon.echo();
    assert_eq!(
        daemon.connect("bot").called("s", 1, "echo", "{}")["content"],
        "{}"
    );
}

#[test]
fn a_second_daemon_in_the_same_place_does_not_start_and_the_first_goes_on() {
    let daemon = Place::new().start();
    let mut second = Command::new(program("rolebrokerd"));
    let output = second.arg("--config").arg(daemon.place.config()).output();
    let output = output.expect("runs");
    assert!(!output.status.success(), "{output:?}");
    let _echo = daemon.echo();
    assert_eq!(
        daemon.connect("bot").called("s", 1, "echo", "{}")["content"],
        "{}"
    );
}

#[test]
fn a_reload_that_ends_the_asking_lets_the_call_go_on_and_settles_the_question() {
    let daemon = Place::new().start();
    let mut runner = daemon.connect("files");
    let mut boss = daemon.join("boss");
    let mut agent = daemon.connect("bot");
    let id = agent.call("ask-1", 1, "order", "{}");
    boss.pushed("approval_request");
    let text = daemon
        .place
        .text()
        .replace("sessions = [\"ask-*\"]", "sessions = [\"no-*\"]");
    daemon.place.write(&text);
    daemon.signal(Signal::SIGHUP);
    let (request, _) = runner.request();
    runner.result(request, "ordered");
    assert_eq!(agent.ends(id)["content"], "ordered");
    assert_eq!(boss.pushed("approval_settled")["outcome"], "superseded");
}

#[test]
fn a_reload_that_brings_a_role_opens_its_socket() {
    let daemon = Place::new().start();
    let role = format!(
        "\n[roles.late]\nkind = \"agent\"\nusers = [\"{}\"]\nlabel_scope = \"session\"\n",
        nix::unistd::geteuid()
    );
    daemon
        .place
        .write(&(daemon.place.text().to_owned() + &role));
    daemon.signal(Signal::SIGHUP);
    daemon.wait_for("reloaded");
    let _echo = daemon.echo();
    assert_eq!(
        daemon.connect("late").called("s", 1, "echo", "{}")["content"],
        "{}"
    );
}

#[test]
fn a_reader_of_the_log_that_stops_reading_holds_nobody_up() {
    let place = Place::new().role("bot", "quota = { requests_per_second = 1000000 }");
    place.write(place.text());
    let mut command = Command::new(program("rolebrokerd"));
    command.arg("--config").arg(place.config());
    let mut daemon = Program::start(command.args(["--log-format", "json", "--log-level", "debug"]));
    daemon.says("\"ready\"");
    let _echo = EchoRunner::start(Peer::connect(&place.socket("echo")));
    let mut agent = Peer::connect(&place.socket("bot"));
    // Each writes two lines at least: more than fit the pipe and what waits before it.
    for batch in 0..100_u64 {
        let call = |n| agent.call("s", batch * 40 + n, "echo", "{}");
        let ids: Vec<u64> = (1..=40).map(call).collect();
        for id in ids {
            assert_eq!(agent.ends(id)["content"], "{}");
        }
    }
    daemon.says("\"log_lines_lost\"");
}

#[test]
fn the_workspaces_runner_comes_back_after_a_restart() {
    let place = Place::new().setting("runner_wait = \"1h\"");
    let mut daemon = place.and(crate::calls::READ_FILE).start();
    let folder = daemon.place.path().display().to_string();
    std::fs::write(format!("{folder}/note.txt"), "a note").expect("writes");
    let mut runner = Command::new(program("rolebroker-runner"));
    runner.arg("--socket").arg(daemon.socket("files"));
    let _runner = Program::start(runner.args(["--folder", &format!("{folder}:public")]));
    let arguments = json!({"path": format!("{folder}/note.txt")}).to_string();
    for session in ["before", "after"] {
        let answer = daemon
            .connect("bot")
            .called(session, 1, "read_file", &arguments);
        assert_eq!(answer["content"], "a note", "{session}");
        daemon.signal(Signal::SIGTERM);
        assert_eq!(daemon.end().code(), Some(0));
        daemon.restart();
    }
}

#[test]
fn a_lock_that_another_user_takes_on_the_runtime_folder_does_not_stop_a_start() {
    let place = Place::new();
    let folder = place.path().join("run");
    std::fs::create_dir(&folder).expect("the runtime folder");
    let held = std::fs::File::open(&folder).expect("anybody may open it");
    held.lock().expect("and lock it");
    let daemon = place.start();
    let _echo = daemon.echo();
    assert_eq!(
        daemon.connect("bot").called("s", 1, "echo", "{}")["content"],
        "{}"
    );
    drop(held);
}
