//! The whole with five users, as it is installed: the broker, an agent, a runner, an approver and an
//! operator, each the workspace's own program and a uid of its own.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::harness::{Daemon, Place, Program, as_user, can_be_others, finished, program, python};

const BROKER: u32 = 64_031;
const AGENT: u32 = 64_032;
const RUNNER: u32 = 64_033;
const APPROVER: u32 = 64_034;
const OPERATOR: u32 = 64_035;
const STRANGER: u32 = 64_036;

const ROLES: [(&str, u32); 4] = [
    ("agent", AGENT),
    ("runner", RUNNER),
    ("approver", APPROVER),
    ("operator", OPERATOR),
];

const FIVE: &str = r#"
approvers = ["approver"]

[broker]
runtime_dir = "RUNTIME"
state_dir = "STATE"

[roles.agent]
kind = "agent"
users = ["64032"]
label_scope = "session"

[roles.runner]
kind = "runner"
users = ["64033"]

[roles.approver]
kind = "approver"
users = ["64034"]
max_class = "secret"

[roles.operator]
kind = "operator"
users = ["64035"]

[[tool]]
name = "write_file"
runner = "runner"
class = "internal"
untrusted = false
effects = "idempotent"
egress = false

[[grant]]
id = "notes"
roles = ["agent"]
sessions = ["*"]
tools = ["write_file"]
effect = "ask"
max_class = "secret"
why = "somebody looks at every note"
"#;

/// The daemon as its own user; `None`, with one line that says so, where nobody can become another.
fn five() -> Option<Daemon> {
    if !can_be_others() {
        return None;
    }
    let place = Place::with(FIVE);
    place.write(place.text());
    for folder in [place.runtime(), place.path().join("state")] {
        fs::create_dir(&folder).expect("a folder");
        chown(&folder, Some(BROKER), Some(BROKER)).expect("the broker's");
    }
    let private = fs::Permissions::from_mode(0o700);
    fs::set_permissions(place.path().join("state"), private).expect("its own");
    let mut command = as_user(BROKER, &place.daemon())?;
    let daemon = Daemon::of(place, &mut command);
    daemon.wait_for("ready");
    Some(daemon)
}

/// `rolebroker` as a user.
fn rolebroker(daemon: &Daemon, uid: u32, args: &[&str]) -> Command {
    let mut command = Command::new(program("rolebroker"));
    command.arg("--runtime-dir").arg(daemon.place.runtime());
    as_user(uid, command.args(args)).expect("root")
}

/// What it prints with `--json`.
#[track_caller]
fn printed(daemon: &Daemon, uid: u32, args: &[&str]) -> Value {
    let output = finished(rolebroker(daemon, uid, args).arg("--json"), 0);
    let text = String::from_utf8(output.stdout).expect("text");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn runner(daemon: &Daemon, folder: &Path) -> Program {
    let mut command = Command::new(program("rolebroker-runner"));
    command.arg("--socket").arg(daemon.socket("runner"));
    command.arg("--folder").arg(folder);
    Program::start(&mut as_user(RUNNER, &command).expect("root"))
}

#[test]
fn a_call_lives_its_whole_life_among_five_users() {
    let Some(daemon) = five() else {
        return;
    };
    let folder = daemon.place.path().join("notes");
    fs::create_dir(&folder).expect("a folder");
    chown(&folder, Some(RUNNER), Some(RUNNER)).expect("the runner's");
    let _runner = runner(&daemon, &folder);

    let file = folder.join("a.txt");
    let path = format!("path={}", file.display());
    let call = [
        "call",
        "--session",
        "s",
        "--call",
        "1",
        "write_file",
        &path,
        "content=hi",
    ];
    let mut agent = Program::start(&mut rolebroker(&daemon, AGENT, &call));
    let asked = daemon.wait_for("approval_asked");
    let approval = asked["approval"].as_str().expect("a name").to_owned();
    assert!(!file.exists(), "it was written before anybody was asked");

    let shown = finished(&mut rolebroker(&daemon, APPROVER, &["approvals"]), 0);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(
        shown.contains(&approval) && shown.contains("write_file"),
        "{shown}"
    );
    let all = printed(&daemon, APPROVER, &["approvals"]);
    let digest = all["pending"][0]["digest"].as_str().expect("a digest");
    let approve = ["approve", &approval, "--digest", digest];
    finished(&mut rolebroker(&daemon, APPROVER, &approve), 0);
    let (code, out, err) = agent.end();
    assert_eq!(code, Some(0), "{out}{err}");
    assert_eq!(fs::read_to_string(&file).expect("written"), "hi");
    assert_eq!(fs::metadata(&file).expect("there").uid(), RUNNER);

    // Its repeat gets the stored answer, and nobody is asked again.
    finished(&mut rolebroker(&daemon, AGENT, &call), 0);
    let left = printed(&daemon, APPROVER, &["approvals"]);
    assert_eq!(left["pending"], serde_json::json!([]), "{left}");
    let session = finished(
        &mut rolebroker(&daemon, OPERATOR, &["session", "agent", "s"]),
        0,
    );
    let session = String::from_utf8_lossy(&session.stdout).into_owned();
    assert!(session.contains("internal"), "{session}");
    // What the broker made is its own.
    for role in ROLES {
        let socket = fs::metadata(daemon.socket(role.0)).expect("a socket");
        assert_eq!(socket.uid(), BROKER, "{}", role.0);
    }
}

/// Connects to each socket and prints, on a line for each, how many bytes came before the end.
const PROBE: &str = r#"
import socket, sys
for path in sys.argv[1:]:
    peer = socket.socket(socket.AF_UNIX)
    peer.settimeout(50)
    try:
        peer.connect(path)
        print(len(peer.recv(1)))
    except ConnectionError:
        print(0)
"#;

#[test]
fn every_wrong_user_is_turned_away_from_every_socket_and_the_log_says_who_and_where() {
    let Some(daemon) = five() else {
        return;
    };
    for uid in [AGENT, RUNNER, APPROVER, OPERATOR, BROKER, STRANGER, 0] {
        let wrong = ROLES.iter().filter(|(_, own)| *own != uid);
        let wrong: Vec<&str> = wrong.map(|(role, _)| *role).collect();
        let sockets = wrong.iter().map(|role| daemon.socket(role));
        let mut probe = python(PROBE, sockets);
        if uid != 0 {
            probe = as_user(uid, &probe).expect("root");
        }
        let output = finished(&mut probe, 0);
        let said = String::from_utf8(output.stdout).expect("text");
        assert_eq!(
            said.lines().collect::<Vec<_>>(),
            vec!["0"; wrong.len()],
            "{uid}"
        );
        // At most one line a second for each role: so that each is seen, all are awaited.
        let mut missing: BTreeSet<&str> = wrong.into_iter().collect();
        while !missing.is_empty() {
            let line = daemon.wait_for("peer_refused");
            assert_eq!(
                (&line["uid"], &line["reason"]),
                (&uid.into(), &"not_listed".into())
            );
            let role = line["role"].as_str().expect("a role");
            assert!(missing.remove(role), "{role} was logged twice for {uid}");
        }
    }
}

#[test]
fn the_command_says_to_a_wrong_user_that_it_is_not_admitted() {
    let Some(daemon) = five() else {
        return;
    };
    for (uid, args) in [
        (STRANGER, &["call", "write_file", "path=/a", "content="][..]),
        (AGENT, &["approvals"]),
        (AGENT, &["status"]),
        (APPROVER, &["status"]),
        (BROKER, &["status"]),
    ] {
        finished(&mut rolebroker(&daemon, uid, args), 77);
    }
    finished(&mut rolebroker(&daemon, OPERATOR, &["status"]), 0);
}
