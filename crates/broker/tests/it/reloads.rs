//! Loading the configuration anew, on SIGHUP.

use std::fs;
use std::io::Read;

use nix::sys::signal::Signal;

use crate::broker::{Place, SEPARATED, SHARED, connect};

#[test]
fn a_bad_file_changes_nothing_and_is_said() {
    let place = Place::with(SEPARATED);
    let broker = place.start();
    for bad in ["= = =", &SEPARATED.replace("SELF", "no-such-user")] {
        place.write(bad);
        broker.signal(Signal::SIGHUP);
        let line = broker.wait_for("reload_fault");
        assert!(line["detail"].is_string(), "{line}");
    }
    fs::remove_file(place.config()).expect("removes");
    broker.signal(Signal::SIGHUP);
    broker.wait_for("reload_fault");

    let _peer = connect(&place.socket("bot"));
    broker.wait_for("accepted");
}

#[test]
fn a_file_that_became_unsafe_is_not_loaded() {
    let place = Place::with(SEPARATED);
    let broker = place.start();
    place.set_mode(&place.config(), 0o666);
    broker.signal(Signal::SIGHUP);
    broker.wait_for("reload_fault");
}

#[test]
fn sockets_come_and_go_with_their_roles() {
    let place = Place::with(SEPARATED);
    let broker = place.start();
    place.write(
        &SEPARATED
            .replace("roles.bot", "roles.other")
            .replace("54321", "54322"),
    );
    broker.signal(Signal::SIGHUP);
    broker.wait_for("configuration_taken");
    assert!(!place.socket("bot").exists());
    let _peer = connect(&place.socket("other"));
    assert_eq!(broker.wait_for("accepted")["role"], "other");
}

#[test]
fn a_peer_that_fits_no_more_is_closed_and_the_others_stay() {
    let place = Place::with(SHARED);
    let broker = place.start();
    let mut bot = connect(&place.socket("bot"));
    broker.wait_for("accepted");
    let mut admin = connect(&place.socket("admin"));
    broker.wait_for("accepted");
    place.write(&SHARED.replacen("\"SELF\"", "\"54321\"", 1));
    broker.signal(Signal::SIGHUP);
    assert_eq!(broker.wait_for("configuration_taken")["closed"], 1);
    assert_eq!(bot.read_to_end(&mut Vec::new()).expect("an end of file"), 0);
    admin.set_nonblocking(true).expect("nonblocking");
    let still_open = admin.read(&mut [0]).expect_err("nothing to read");
    assert_eq!(still_open.kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn what_only_a_restart_can_change_is_refused() {
    let place = Place::with(SHARED);
    let broker = place.start();
    place.write(&SHARED.replace("mode = 0o600", "mode = 0o660"));
    broker.signal(Signal::SIGHUP);
    let line = broker.wait_for("reload_fault");
    assert!(
        line["detail"]
            .as_str()
            .is_some_and(|why| why.contains("roles.files")),
        "{line}"
    );
}

#[test]
fn a_new_socket_that_cannot_be_bound_keeps_everything_as_it_was() {
    let place = Place::with(SEPARATED);
    let broker = place.start();
    fs::write(place.socket("other"), "mine").expect("writes");
    place.write(&format!(
        "{SEPARATED}[roles.another]\nkind = \"runner\"\nusers = [\"54399\"]\n\
         [roles.other]\nkind = \"runner\"\nusers = [\"54398\"]\n"
    ));
    broker.signal(Signal::SIGHUP);
    broker.wait_for("reload_fault");
    assert!(!place.socket("another").exists());
    assert_eq!(fs::read(place.socket("other")).expect("reads"), b"mine");
    assert!(place.socket("bot").exists());
}
