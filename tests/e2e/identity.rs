//! Who is who, with real users: each part as a uid of its own, as in service.

use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{
    Daemon, Peer, Place, Program, as_user, can_be_others, finished, program, python,
};

/// Users without names; 0, who runs the tests, is the runner.
const BOT: u32 = 64_001;
const OTHER_BOT: u32 = 64_002;
const BOSS: u32 = 64_003;
const ADMIN: u32 = 64_004;
const STRANGER: u32 = 64_005;
const DEPUTY: u32 = 64_006;

const SEPARATED: &str = r#"
approvers = ["boss"]

[broker]
runtime_dir = "RUNTIME"
state_dir = "STATE"

[roles.bot]
kind = "agent"
users = ["64001", "64002"]
label_scope = "session"

[roles.files]
kind = "runner"
users = ["SELF"]

[roles.boss]
kind = "approver"
users = ["64003"]
max_class = "secret"

[roles.admin]
kind = "operator"
users = ["64004"]

[[tool]]
name = "read"
runner = "files"
class = "public"
untrusted = false
effects = "read"
egress = false

[[grant]]
id = "use"
roles = ["*"]
sessions = ["*"]
tools = ["read"]
effect = "allow"
"#;

/// Says hello to each socket and prints, on a line for each, as what it was welcomed, or "closed".
const PROBE: &str = r#"
import json, socket, struct, sys
for path in sys.argv[1:]:
    try:
        peer = socket.socket(socket.AF_UNIX)
        peer.connect(path)
        body = {"software": "probe", "features": []}
        hello = json.dumps({"v": 1, "id": 1, "final": True, "msg": {"kind": "hello", "body": body}}).encode()
        peer.sendall(struct.pack(">I", len(hello)) + hello)
        stream = peer.makefile("rb")
        length = struct.unpack(">I", stream.read(4) or b"\0\0\0\0")[0]
        said = json.loads(stream.read(length) or "null")
        print(said["msg"]["body"]["role"] if said else "closed")
    except ConnectionError:
        print("closed")
    except PermissionError:
        print("not permitted")
"#;

/// What a user is welcomed as at these roles' sockets; `None` where nobody can become another user.
fn probed(daemon: &Daemon, uid: u32, roles: &[&str]) -> Option<Vec<String>> {
    let sockets = roles.iter().map(|role| daemon.socket(role));
    let output = finished(&mut as_user(uid, &python(PROBE, sockets))?, 0);
    let text = String::from_utf8(output.stdout).expect("text");
    Some(text.lines().map(str::to_owned).collect())
}

/// One call as a user, by the script that knows the seed's kinds only.
fn call(daemon: &Daemon, uid: u32, session: &str, number: &str) -> Option<Program> {
    let agent = include_str!("plain_agent.py");
    let mut command = python(agent, [daemon.socket("bot")]);
    command.args([session, number, "read", "{}"]);
    Some(Program::start(&mut as_user(uid, &command)?))
}

fn answer(runner: &mut Peer, mut agent: Program, content: &str) -> Value {
    let (request, _) = runner.request();
    runner.result(request, content);
    said(&mut agent)
}

fn said(agent: &mut Program) -> Value {
    let (code, out, err) = agent.end();
    assert_eq!(code, Some(0), "{err}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

#[test]
fn each_socket_lets_its_own_users_in_and_turns_everyone_else_away() {
    let daemon = Place::with(SEPARATED).start();
    let roles = ["bot", "files", "boss", "admin"];
    for (uid, own) in [
        (BOT, "bot"),
        (OTHER_BOT, "bot"),
        (BOSS, "boss"),
        (ADMIN, "admin"),
        (STRANGER, ""),
    ] {
        let Some(seen) = probed(&daemon, uid, &roles) else {
            return;
        };
        let wanted = roles.map(|role| if role == own { own } else { "closed" });
        assert_eq!(seen, wanted, "uid {uid}");
    }
    // Root is nobody special: it is named for one role only.
    for role in ["bot", "boss", "admin"] {
        assert!(
            daemon.connect(role).closed().is_empty(),
            "root was let in as {role}"
        );
    }
    daemon.join("files");
}

#[test]
fn a_peer_that_is_turned_away_is_logged_with_its_uid() {
    let daemon = Place::with(SEPARATED).start();
    if probed(&daemon, STRANGER, &["admin"]).is_none() {
        return;
    }
    let line = daemon.wait_for("peer_refused");
    assert_eq!(line["role"], "admin");
    assert_eq!(line["reason"], "not_listed");
    assert_eq!(line["uid"], STRANGER);
}

#[test]
fn the_uid_of_unmapped_users_is_let_in_nowhere() {
    const OVERFLOW: u32 = 65_534;
    let daemon = Place::with(SEPARATED).start();
    let Some(seen) = probed(&daemon, OVERFLOW, &["bot", "files", "boss", "admin"]) else {
        return;
    };
    assert_eq!(seen, ["closed"; 4]);
    assert_eq!(daemon.wait_for("peer_refused")["reason"], "unmapped_uid");
    let place = Place::with(&SEPARATED.replace("64003", "65534"));
    place.write(place.text());
    assert_not_configured(&place);
}

#[test]
fn a_group_lets_its_users_in() {
    let place = Place::with(SEPARATED).role("boss", "groups = [\"64005\"]");
    let daemon = place.start();
    if let Some(seen) = probed(&daemon, STRANGER, &["bot", "boss"]) {
        assert_eq!(seen, ["closed", "boss"]);
    }
}

#[test]
fn a_sockets_mode_and_group_keep_others_from_connecting() {
    if !can_be_others() {
        return;
    }
    let place = Place::with(SEPARATED).role("bot", "mode = 0o660\ngroup = \"64001\"");
    let daemon = place.start();
    for (uid, wanted) in [(BOT, "bot"), (OTHER_BOT, "not permitted")] {
        let Some(seen) = probed(&daemon, uid, &["bot"]) else {
            return;
        };
        assert_eq!(seen, [wanted], "uid {uid}");
    }
}

#[test]
fn a_session_belongs_to_the_uid_that_first_used_it() {
    let daemon = Place::with(SEPARATED).start();
    if !can_be_others() {
        return;
    }
    let mut runner = daemon.join("files");
    let start = |uid, session, number| call(&daemon, uid, session, number).expect("root");
    let told = answer(&mut runner, start(BOT, "s", "1"), "for the first");
    assert_eq!(told["content"], "for the first");
    for number in ["1", "2"] {
        let refused = said(&mut start(OTHER_BOT, "s", number));
        assert_eq!(refused["code"], json!("bad_message"), "{refused}");
    }
    let told = answer(&mut runner, start(OTHER_BOT, "t", "1"), "for the other");
    assert_eq!(told["content"], "for the other");
    let told = said(&mut start(BOT, "s", "1"));
    assert_eq!(told["content"], "for the first");
    runner.is_silent();
}

#[test]
fn a_quorum_counts_people_and_not_their_roles() {
    if !can_be_others() {
        return;
    }
    let two = SEPARATED.replace("effect = \"allow\"", "effect = \"ask\"\nquorum = 2");
    let two = two.replace(
        "approvers = [\"boss\"]",
        "approvers = [\"boss\", \"deputy\"]",
    );
    let deputy = "\n[roles.deputy]\nkind = \"approver\"\nusers = [\"64003\", \"64006\"]\n\
        max_class = \"secret\"\n";
    let daemon = Place::with(&two).and(deputy).start();
    let mut runner = daemon.join("files");
    let mut agent = call(&daemon, BOT, "s", "1").expect("root");
    let asked = daemon.wait_for("approval_asked");
    let approval = asked["approval"].as_str().expect("a name");
    let approve = |uid, role| {
        let example = include_str!("../../docs/examples/rolebroker.py");
        let mut command = python(example, ["approve"]);
        command.arg(daemon.socket(role)).arg(approval);
        let output = as_user(uid, &command).expect("root").output();
        String::from_utf8(output.expect("runs").stdout).expect("text")
    };
    assert!(approve(BOSS, "boss").contains("\"counted\""));
    assert!(!approve(BOSS, "deputy").contains("\"approved\""));
    runner.is_silent();
    assert!(approve(DEPUTY, "deputy").contains("\"approved\""));
    let (request, _) = runner.request();
    runner.result(request, "seen by two");
    assert_eq!(said(&mut agent)["content"], "seen by two");
}

#[test]
fn a_user_on_both_sides_is_a_configuration_error() {
    let place = Place::with(&SEPARATED.replace("64004", "64001"));
    place.write(place.text());
    assert_not_configured(&place);
}

/// The daemon does not start on this configuration.
#[track_caller]
fn assert_not_configured(place: &Place) {
    let mut command = Command::new(program("rolebrokerd"));
    finished(command.arg("--config").arg(place.config()), 78);
    assert!(!place.socket("bot").exists());
}
