//! Who is let in.

use std::io::Read;
use std::os::unix::net::UnixStream;

use crate::broker::{Place, SEPARATED, STRANGER, connect};

/// The peer was closed at once, without a word.
#[track_caller]
fn assert_shut_out(mut peer: UnixStream) {
    let mut said = Vec::new();
    let read = peer.read_to_end(&mut said).expect("an end of file");
    assert_eq!(read, 0, "{said:?}");
}

#[test]
fn a_peer_whose_uid_is_not_named_is_closed_at_once() {
    let place = Place::with(SEPARATED);
    let broker = place.start();
    assert_shut_out(connect(&place.socket("admin")));
    let line = broker.wait_for("peer_refused");
    assert_eq!(line["role"], "admin");
    assert_eq!(line["reason"], "not_listed");
    assert_eq!(line["count"], 1);
}

#[test]
fn a_peer_whose_uid_is_named_is_let_in() {
    let place = Place::with(SEPARATED);
    let broker = place.start();
    let _peer = connect(&place.socket("bot"));
    assert_eq!(broker.wait_for("accepted")["role"], "bot");
}

#[test]
fn a_flood_of_refused_peers_is_counted_in_few_lines() {
    let place = Place::with(SEPARATED);
    let broker = place.start();
    for _ in 0..100 {
        assert_shut_out(connect(&place.socket("admin")));
    }
    let mut counted = 0;
    let mut lines = 0;
    while counted < 100 {
        let line = broker.wait_for("peer_refused");
        counted += line["count"].as_u64().expect("a count");
        lines += 1;
    }
    assert_eq!(counted, 100);
    assert!(lines < 50, "{lines} lines for 100 peers");
}

#[test]
fn a_group_that_would_put_a_peer_on_both_sides_shuts_it_out_of_both() {
    let roles = format!(
        "[roles.bot]\nkind = \"agent\"\ngroups = [\"{}\"]\nlabel_scope = \"session\"\n\
         [roles.admin]\nkind = \"operator\"\nusers = [\"SELF\"]\n",
        nix::unistd::getegid()
    );
    let place = Place::with(&roles);
    let broker = place.start();
    for role in ["bot", "admin"] {
        assert_shut_out(connect(&place.socket(role)));
        let line = broker.wait_for("peer_refused");
        assert_eq!(line["role"], role);
        assert_eq!(line["reason"], "both_sides");
    }
}

#[test]
fn empty_lists_admit_nobody_and_are_warned_of() {
    let place = Place::with(&SEPARATED.replace("\"SELF\"", ""));
    let output = place.run(&["--check-config"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("warning: roles.bot"), "{said}");
    let _broker = place.start();
    assert_shut_out(connect(&place.socket("bot")));
}

#[test]
fn a_peer_of_another_user_is_closed_at_once() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root can become another user");
        return;
    }
    let place = Place::with(SEPARATED);
    place.set_mode(place.path(), 0o755);
    let broker = place.start();
    let script = "import socket,sys\n\
        s=socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\nsys.exit(len(s.recv(1)))";
    let uid = STRANGER.to_string();
    let status = std::process::Command::new("setpriv")
        .args(["--reuid", &uid, "--regid", &uid, "--clear-groups"])
        .args(["python3", "-c", script])
        .arg(place.socket("bot"))
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .status();
    match status {
        Ok(status) if status.success() => {}
        other => {
            eprintln!("skipped: setpriv and python3 do not run here: {other:?}");
            return;
        }
    }
    let line = broker.wait_for("peer_refused");
    assert_eq!(line["uid"], STRANGER);
}
