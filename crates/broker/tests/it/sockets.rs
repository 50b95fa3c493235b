//! The sockets and folders of a broker, and its end.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

use nix::sys::signal::Signal;

use crate::broker::{Place, SHARED, connect, receive, request, stderr};

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        .permissions()
        .mode()
        & 0o7777
}

#[test]
fn every_socket_has_exactly_its_mode() {
    let place = Place::with(SHARED);
    let _broker = place.start();
    assert_eq!(mode(&place.socket("bot")), 0o666);
    assert_eq!(mode(&place.socket("files")), 0o600);
    assert_eq!(mode(&place.runtime()), 0o755);
    assert_eq!(mode(&place.path().join("state")), 0o700);
}

#[test]
fn a_socket_has_its_group() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root can give a socket to any group");
        return;
    }
    use std::os::unix::fs::MetadataExt;
    let place = Place::with(&SHARED.replace("mode = 0o600", "mode = 0o660\ngroup = \"54321\""));
    let _broker = place.start();
    let found = fs::symlink_metadata(place.socket("files")).expect("the socket");
    assert_eq!((found.gid(), found.mode() & 0o777), (54_321, 0o660));
}

#[test]
fn sigterm_ends_with_0_and_removes_the_sockets() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let place = Place::with(SHARED);
        let mut broker = place.start();
        let mut peer = connect(&place.socket("bot"));
        broker.wait_for("accepted");
        broker.signal(signal);
        assert_eq!(broker.end().code(), Some(0));
        for role in ["bot", "files", "admin"] {
            assert!(!place.socket(role).exists(), "{role}.sock is left");
        }
        let mut rest = Vec::new();
        assert_eq!(peer.read_to_end(&mut rest).expect("an end of file"), 0);
    }
}

#[test]
fn a_second_sigterm_does_not_wait_for_what_the_first_one_waits_for() {
    let tool = "[[tool]]\nname = \"look\"\nrunner = \"files\"\nclass = \"public\"\n\
        untrusted = false\neffects = \"read\"\negress = false\n\
        description = \"Looks.\"\ninput_schema = '{\"type\":\"object\"}'\n\
        [[grant]]\nid = \"look\"\nroles = [\"bot\"]\nsessions = [\"*\"]\ntools = [\"look\"]\n\
        effect = \"allow\"\nwhy = \"a test\"\n";
    let place = Place::with(&format!("drain_timeout = \"1h\"\n{SHARED}{tool}"));
    let mut broker = place.start();
    let mut runner = connect(&place.socket("files"));
    let mut agent = connect(&place.socket("bot"));
    agent.write_all(&request(1, "look", "{}")).expect("writes");
    receive(&mut runner).expect("the runner gets the call, and never answers it");
    broker.signal(Signal::SIGTERM);
    broker.wait_for("draining");
    broker.signal(Signal::SIGTERM);
    assert_eq!(broker.end().code(), Some(0));
    assert!(!place.socket("bot").exists());
}

#[test]
fn stale_sockets_are_replaced() {
    let place = Place::with(SHARED);
    place.start().crash();
    assert!(place.socket("bot").exists(), "a crash leaves its sockets");
    let broker = place.start();
    let _peer = connect(&place.socket("bot"));
    broker.wait_for("accepted");
}

#[test]
fn a_second_broker_on_the_same_folders_refuses_and_harms_nothing() {
    let place = Place::with(SHARED);
    let broker = place.start();
    let second = place.run(&[]);
    assert_eq!(second.status.code(), Some(78), "{}", stderr(&second));
    assert!(stderr(&second).contains("another broker runs"));
    let _peer = connect(&place.socket("bot"));
    broker.wait_for("accepted");
}

#[test]
fn a_socket_that_somebody_answers_is_left_alone() {
    let place = Place::with(SHARED);
    fs::create_dir(place.runtime()).expect("makes the folder");
    let _somebody = UnixListener::bind(place.socket("files")).expect("binds");
    let output = place.run(&[]);
    assert_eq!(output.status.code(), Some(78), "{}", stderr(&output));
    assert!(stderr(&output).contains("files.sock is answered"));
    assert!(place.socket("files").exists());
    assert!(
        !place.socket("bot").exists(),
        "what was bound before is gone again"
    );
}

#[test]
fn what_is_not_a_socket_is_left_alone() {
    let place = Place::with(SHARED);
    fs::create_dir(place.runtime()).expect("makes the folder");
    fs::write(place.socket("bot"), "mine").expect("writes");
    let output = place.run(&[]);
    assert_eq!(output.status.code(), Some(78), "{}", stderr(&output));
    assert_eq!(fs::read(place.socket("bot")).expect("reads"), b"mine");
}

#[test]
fn folders_that_others_can_write_are_not_used() {
    for folder in ["run", "state"] {
        let place = Place::with(SHARED);
        let path = place.path().join(folder);
        fs::create_dir(&path).expect("makes the folder");
        place.set_mode(&path, 0o777);
        let output = place.run(&[]);
        assert_eq!(output.status.code(), Some(78), "{}", stderr(&output));
        assert!(stderr(&output).contains("can be written by others"));
    }
}

#[test]
fn a_state_folder_that_others_can_read_is_not_used() {
    let place = Place::with(SHARED);
    let path = place.path().join("state");
    fs::create_dir(&path).expect("makes the folder");
    place.set_mode(&path, 0o755);
    let output = place.run(&[]);
    assert_eq!(output.status.code(), Some(78), "{}", stderr(&output));
    assert!(stderr(&output).contains("chmod 0700"));
}

#[test]
fn a_folder_that_cannot_be_made_exits_77() {
    if nix::unistd::geteuid().is_root() {
        eprintln!("skipped: root can make any folder");
        return;
    }
    let place = Place::with(SHARED);
    place.set_mode(place.path(), 0o555);
    let output = place.run(&[]);
    place.set_mode(place.path(), 0o755);
    assert_eq!(output.status.code(), Some(77), "{}", stderr(&output));
}
