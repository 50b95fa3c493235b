//! What outlasts a broker: each promise is kept over a SIGTERM and over a SIGKILL.

use std::io::Read as _;
use std::time::{Duration, SystemTime};

use nix::sys::signal::Signal::{self, SIGKILL, SIGTERM};
use serde_json::{Value, json};

use crate::commands::printed;
use crate::harness::{Daemon, Peer, Place};

const TEA: &str = r#"{"what":"tea"}"#;
/// Whether white space, escapes or other letters were touched on the way.
const CONTENT: &str = " ordered:\t\"tea\"\n\\ \u{7f}ü\u{2028}\u{1f375} ";

fn world(more: &str) -> Place {
    Place::with(&format!("{}{more}", include_str!("world.toml")))
        .setting("drain_timeout = \"50ms\"")
}

/// Another broker in the place of this one, which is ended this way.
#[track_caller]
fn again(daemon: &mut Daemon, how: Signal) {
    daemon.signal(how);
    let code = daemon.end().code();
    assert_eq!(code, (how == SIGTERM).then_some(0), "{how}");
    daemon.restart();
}

/// A call that the runner gets and answers.
#[track_caller]
fn runs(agent: &mut Peer, runner: &mut Peer, (session, call, tool): (&str, u64, &str)) {
    let id = agent.call(session, call, tool, TEA);
    let (request, body) = runner.request();
    assert_eq!((&body["tool"], &body["call"]), (&json!(tool), &json!(call)));
    runner.result(request, "as you say");
    assert_eq!(agent.ends(id)["content"], "as you say");
}

/// What comes next, as bytes.
#[track_caller]
fn frame(peer: &Peer) -> Vec<u8> {
    let mut stream = peer.stream();
    let mut length = [0; 4];
    stream.read_exact(&mut length).expect("a length");
    let mut frame = vec![0; usize::try_from(u32::from_be_bytes(length)).expect("a length")];
    stream.read_exact(&mut frame).expect("a frame");
    frame
}

#[track_caller]
fn done(daemon: &Daemon, op: &Value) {
    let mut admin = daemon.join("admin");
    let id = admin.ask("control", op);
    assert_eq!(admin.ends(id), json!({"op": "done"}));
}

/// An answer to what an approver is asked next.
#[track_caller]
fn answers(boss: &mut Peer, answer: &str, scope: &str) -> Value {
    let asked = boss.pushed("approval_request");
    let body = json!({"approval": asked["approval"], "digest": asked["digest"], "answer": answer,
        "scope": scope, "comment": ""});
    let id = boss.ask("approval_reply", &body);
    boss.ends(id)
}

#[track_caller]
fn is_unknown(answer: &Value) {
    let message = answer["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("unknown_outcome: "), "{answer}");
}

#[test]
fn the_label_of_a_session_and_of_a_role_is_no_lower() {
    for how in [SIGTERM, SIGKILL] {
        let team = "\n[roles.team]\nkind = \"agent\"\nusers = [\"SELF\"]\nlabel_scope = \"role\"\n";
        let mut daemon = world(team).start();
        let mut runner = daemon.join("files");
        for role in ["bot", "team"] {
            runs(&mut daemon.connect(role), &mut runner, ("s", 1, "diary"));
        }
        again(&mut daemon, how);
        let mut runner = daemon.join("files");
        let (mut bot, mut team) = (daemon.connect("bot"), daemon.connect("team"));
        let denied = json!({"status": "denied", "reason": "taint_too_high"});
        assert_eq!(bot.called("s", 2, "send", "{}"), denied);
        assert_eq!(team.called("s", 2, "send", "{}"), denied);
        assert_eq!(team.called("t", 1, "send", "{}"), denied);
        runs(&mut bot, &mut runner, ("t", 1, "send"));
    }
}

#[test]
fn a_stored_answer_is_told_again_byte_for_byte_and_nothing_runs_again() {
    for how in [SIGTERM, SIGKILL] {
        let mut daemon = Place::new().start();
        let mut runner = daemon.join("files");
        let tools = ["order", "put"];
        let told = tools.map(|tool| {
            let mut agent = daemon.connect("bot");
            agent.call(tool, 1, tool, TEA);
            let (request, _) = runner.request();
            runner.result(request, CONTENT);
            frame(&agent)
        });
        again(&mut daemon, how);
        let mut runner = daemon.join("files");
        for _ in 0..2 {
            for (tool, told) in tools.iter().zip(&told) {
                let mut agent = daemon.connect("bot");
                agent.call(tool, 1, tool, TEA);
                assert_eq!(frame(&agent), *told, "{tool}");
            }
        }
        runner.is_silent();
    }
}

#[test]
fn other_arguments_under_the_same_identity_do_not_get_the_stored_answer() {
    for how in [SIGTERM, SIGKILL] {
        let mut daemon = Place::new().start();
        let mut runner = daemon.join("files");
        runs(&mut daemon.connect("bot"), &mut runner, ("s", 1, "order"));
        again(&mut daemon, how);
        let mut runner = daemon.join("files");
        let mut agent = daemon.connect("bot");
        for (tool, arguments) in [("order", "{\"what\":\"milk\"}"), ("put", TEA)] {
            let answer = agent.called("s", 1, tool, arguments);
            assert_eq!(answer["code"], "bad_message", "{answer}");
            assert!(!answer.to_string().contains("as you say"), "{answer}");
        }
        runner.is_silent();
        assert_eq!(agent.called("s", 1, "order", TEA)["content"], "as you say");
    }
}

#[test]
fn a_call_that_only_reads_runs_again() {
    for how in [SIGTERM, SIGKILL] {
        let mut daemon = Place::new().start();
        for _ in 0..2 {
            let mut runner = daemon.join("files");
            runs(&mut daemon.connect("bot"), &mut runner, ("s", 1, "read"));
            again(&mut daemon, how);
        }
    }
}

#[test]
fn a_pending_approval_is_announced_again_with_what_is_left_of_its_time() {
    for how in [SIGTERM, SIGKILL] {
        let mut daemon = world("").start();
        let mut boss = daemon.join("boss");
        daemon.connect("bot").call("ask-1", 1, "order", TEA);
        let before = boss.pushed("approval_request");
        again(&mut daemon, how);
        let mut runner = daemon.join("files");
        let mut boss = daemon.join("boss");
        let list = printed(&daemon, "boss", &["approvals"], 0);
        assert_eq!(list["pending"][0], before, "{list}");
        let mut agent = daemon.connect("bot");
        let id = agent.call("ask-1", 1, "order", TEA);
        let pending = agent.answer(id)["msg"]["body"].clone();
        assert_eq!(pending["status"], "pending_approval");
        assert_eq!(pending["approval"], before["approval"]);
        // Pushed as it was before.
        assert_eq!(boss.approves()["outcome"], "approved");
        let (request, _) = runner.request();
        runner.result(request, "ordered");
        assert_eq!(agent.ends(id)["content"], "ordered");
    }
}

#[test]
fn an_approval_whose_time_ran_out_meanwhile_is_expired() {
    for how in [SIGTERM, SIGKILL] {
        let mut daemon = world("").setting("approval_ttl = \"1s\"").start();
        let mut boss = daemon.join("boss");
        daemon.connect("bot").call("ask-1", 1, "order", TEA);
        let asked = boss.pushed("approval_request");
        daemon.signal(how);
        daemon.end();
        let expires = Duration::from_millis(asked["expires"].as_u64().expect("a time"));
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        // There is nobody who could tell that it is over.
        std::thread::sleep(expires.saturating_sub(now.expect("a time")));
        daemon.restart();
        let denied = json!({"status": "denied", "reason": "approval_expired"});
        let mut agent = daemon.connect("bot");
        assert_eq!(agent.called("ask-1", 1, "order", TEA), denied);
        let list = printed(&daemon, "boss", &["approvals", "--settled"], 0);
        assert_eq!(list["pending"], json!([]));
        assert_eq!(list["settled"][0]["approval"], asked["approval"], "{list}");
        assert_eq!(list["settled"][0]["outcome"], "expired", "{list}");
    }
}

#[test]
fn an_approval_that_was_given_and_not_spent_covers_its_call() {
    for how in [SIGTERM, SIGKILL] {
        let mut daemon = world("").setting("runner_wait = \"1h\"").start();
        let mut boss = daemon.join("boss");
        daemon.connect("bot").call("ask-1", 1, "order", TEA);
        assert_eq!(boss.approves()["outcome"], "approved");
        again(&mut daemon, how);
        let mut runner = daemon.join("files");
        runs(
            &mut daemon.connect("bot"),
            &mut runner,
            ("ask-1", 1, "order"),
        );
    }
}

#[test]
fn a_standing_approval_and_its_remaining_uses_survive() {
    let grant = "\n[[grant]]\nid = \"standing\"\nroles = [\"*\"]\nsessions = [\"std\"]\n\
        tools = [\"order\"]\neffect = \"ask\"\nuntrusted = \"ask\"\nmax_class = \"secret\"\n\
        standing_ttl = \"1h\"\nstanding_uses = 3\n";
    for how in [SIGTERM, SIGKILL] {
        let mut daemon = world(grant).start();
        let mut runner = daemon.join("files");
        let mut boss = daemon.join("boss");
        let mut agent = daemon.connect("bot");
        let id = agent.call("std", 1, "order", TEA);
        assert_eq!(
            answers(&mut boss, "approve", "session")["outcome"],
            "approved"
        );
        let (request, _) = runner.request();
        runner.result(request, "ordered");
        agent.ends(id);
        runs(&mut agent, &mut runner, ("std", 2, "order"));
        let standing = |daemon: &Daemon| {
            printed(daemon, "admin", &["session", "bot", "std"], 0)["standing"].clone()
        };
        let before = standing(&daemon);
        again(&mut daemon, how);
        assert_eq!(standing(&daemon), before);
        let left = before[0]["uses_left"].as_u64().expect("uses");
        assert!((1..3).contains(&left), "{before}");
        let mut runner = daemon.join("files");
        let mut boss = daemon.join("boss");
        let mut agent = daemon.connect("bot");
        for call in 3..3 + left {
            runs(&mut agent, &mut runner, ("std", call, "order"));
        }
        agent.call("std", 9, "order", TEA);
        assert_eq!(boss.pushed("approval_request")["call"], 9);
    }
}

#[test]
fn a_refusal_answers_the_same_question() {
    for how in [SIGTERM, SIGKILL] {
        let mut daemon = world("").start();
        let mut boss = daemon.join("boss");
        let mut agent = daemon.connect("bot");
        let id = agent.call("ask-1", 1, "order", TEA);
        assert_eq!(boss.answers("refuse")["outcome"], "refused");
        agent.ends(id);
        again(&mut daemon, how);
        let mut agent = daemon.connect("bot");
        let denied = json!({"status": "denied", "reason": "approval_refused"});
        for call in [1, 2] {
            assert_eq!(agent.called("ask-1", call, "order", TEA), denied);
        }
        let list = printed(&daemon, "boss", &["approvals"], 0);
        assert_eq!(list["pending"], json!([]));
    }
}

/// An allow of `ungranted` that is added at run time.
fn added(id: &str, session: &str) -> Value {
    let grant = format!(
        "id = \"{id}\"\nroles = [\"bot\"]\nsessions = [\"{session}\"]\ntools = [\"ungranted\"]\n\
         effect = \"allow\"\nexpires = \"2100-01-01T00:00:00Z\"\nmax_uses = 2\n"
    );
    json!({"op": "grant", "grant": grant, "reason": "the move"})
}

#[test]
fn a_grant_of_run_time_its_spent_uses_and_a_revoke_survive() {
    for how in [SIGTERM, SIGKILL] {
        let mut daemon = Place::new().start();
        done(&daemon, &added("stays", "s"));
        done(&daemon, &added("goes", "t"));
        let mut runner = daemon.join("files");
        runs(
            &mut daemon.connect("bot"),
            &mut runner,
            ("s", 1, "ungranted"),
        );
        let revoke = json!({"op": "revoke", "grant": "goes", "reason": "moved"});
        done(&daemon, &revoke);
        let before = printed(&daemon, "admin", &["grants"], 0);
        again(&mut daemon, how);
        assert_eq!(printed(&daemon, "admin", &["grants"], 0), before);
        let mut runner = daemon.join("files");
        let mut agent = daemon.connect("bot");
        let no_grant = json!({"status": "denied", "reason": "no_grant"});
        assert_eq!(agent.called("t", 1, "ungranted", TEA), no_grant);
        runs(&mut agent, &mut runner, ("s", 2, "ungranted"));
        assert_eq!(agent.called("s", 3, "ungranted", TEA), no_grant);
    }
}

#[test]
fn spent_uses_of_a_grant_of_the_file_survive() {
    let grant = "\n[[grant]]\nid = \"twice\"\nroles = [\"*\"]\nsessions = [\"*\"]\n\
        tools = [\"ungranted\"]\neffect = \"allow\"\nmax_uses = 2\n";
    for how in [SIGTERM, SIGKILL] {
        let mut daemon = world(grant).start();
        for call in [1, 2] {
            let mut runner = daemon.join("files");
            runs(
                &mut daemon.connect("bot"),
                &mut runner,
                ("s", call, "ungranted"),
            );
            again(&mut daemon, how);
        }
        let no_grant = json!({"status": "denied", "reason": "no_grant"});
        assert_eq!(
            daemon.connect("bot").called("s", 3, "ungranted", TEA),
            no_grant
        );
    }
}

#[test]
fn an_accepted_definition_survives_and_another_text_is_held() {
    let offers = "offers = [{ tools = [\"mail.*\"], class = \"internal\", untrusted = true, \
        effects = \"once\", egress = true, pin = \"accept\" }]";
    let offer = |daemon: &Daemon, text: &str| {
        let mut runner = daemon.join("files");
        let tool = json!({"name": "mail.send", "description": text, "input_schema": "{}",
            "class": "public", "untrusted": false, "effects": "read", "egress": false,
            "content": "text"});
        let id = runner.ask("offer", &json!({"tools": [tool]}));
        (runner.ends(id), runner)
    };
    for how in [SIGTERM, SIGKILL] {
        let mut daemon = Place::new().role("files", offers).start();
        let (offered, _runner) = offer(&daemon, "Sends a mail.");
        assert_eq!(offered["accepted"], json!([]), "{offered}");
        let args = [
            "accept-tool",
            "files",
            "mail.send",
            "--reason",
            "read",
            "--yes",
        ];
        let held = printed(&daemon, "admin", &["tools"], 0);
        let mut held = held["tools"].as_array().expect("tools").iter();
        let held = held.rfind(|tool| tool["tool"] == "mail.send");
        let definition = held
            .and_then(|tool| tool["definition"].as_str())
            .expect("a digest");
        printed(
            &daemon,
            "admin",
            &[&args[..], &["--definition", definition]].concat(),
            0,
        );
        again(&mut daemon, how);
        let (offered, _runner) = offer(&daemon, "Sends a mail.");
        assert_eq!(offered["accepted"], json!(["mail.send"]), "{offered}");
        let (offered, _runner) = offer(&daemon, "Sends a mail, and a copy to me.");
        assert_eq!(offered["held"][0]["name"], "mail.send", "{offered}");
    }
}

#[test]
fn a_label_that_an_operator_lowered_stays_lowered() {
    for how in [SIGTERM, SIGKILL] {
        let mut daemon = Place::new().start();
        let mut runner = daemon.join("files");
        for session in ["s", "t"] {
            runs(
                &mut daemon.connect("bot"),
                &mut runner,
                (session, 1, "diary"),
            );
        }
        let lower = json!({"op": "declassify", "role": "bot", "session": "s", "class": "public",
            "reason": "it was empty"});
        let trust =
            json!({"op": "endorse", "role": "bot", "session": "s", "reason": "it was empty"});
        done(&daemon, &lower);
        done(&daemon, &trust);
        again(&mut daemon, how);
        let mut runner = daemon.join("files");
        let mut agent = daemon.connect("bot");
        runs(&mut agent, &mut runner, ("s", 2, "send"));
        let denied = json!({"status": "denied", "reason": "taint_too_high"});
        assert_eq!(agent.called("t", 2, "send", TEA), denied);
    }
}

#[test]
fn a_once_call_that_was_with_the_runner_is_unknown_for_ever() {
    for how in [SIGTERM, SIGKILL] {
        let mut daemon = world("").start();
        let mut runner = daemon.join("files");
        daemon.connect("bot").call("s", 1, "order", TEA);
        runner.request();
        for _ in 0..2 {
            again(&mut daemon, how);
            let mut runner = daemon.join("files");
            let mut agent = daemon.connect("bot");
            for _ in 0..2 {
                is_unknown(&agent.called("s", 1, "order", TEA));
            }
            runner.is_silent();
        }
    }
}

#[test]
fn an_idempotent_call_that_was_with_the_runner_runs_again_on_a_repeat() {
    let mut daemon = world("").start();
    let mut runner = daemon.join("files");
    let mut agent = daemon.connect("bot");
    agent.call("s", 1, "put", TEA);
    runner.request();
    again(&mut daemon, SIGKILL);
    let mut runner = daemon.join("files");
    let mut agent = daemon.connect("bot");
    runs(&mut agent, &mut runner, ("s", 2, "put"));
    runner.is_silent();
    runs(&mut agent, &mut runner, ("s", 1, "put"));
}

#[test]
fn fifty_repeats_at_once_give_one_run_and_fifty_equal_answers() {
    for how in [SIGTERM, SIGKILL] {
        let mut daemon = Place::new()
            .role("bot", "quota = { connections = 64 }")
            .start();
        let fifty = |daemon: &Daemon| -> Vec<Peer> {
            let mut agents: Vec<Peer> = (0..50).map(|_| daemon.connect("bot")).collect();
            for agent in &mut agents {
                agent.call("s", 1, "order", TEA);
            }
            agents
        };
        let mut runner = daemon.join("files");
        let agents = fifty(&daemon);
        let (request, _) = runner.request();
        runner.result(request, CONTENT);
        let told = frame(agents.first().expect("one"));
        assert!(agents.iter().skip(1).all(|agent| frame(agent) == told));
        runner.is_silent();
        again(&mut daemon, how);
        let mut runner = daemon.join("files");
        assert!(fifty(&daemon).iter().all(|agent| frame(agent) == told));
        runner.is_silent();
    }
}

#[test]
fn the_same_session_and_call_of_two_roles_never_meet() {
    for how in [SIGTERM, SIGKILL] {
        let mut daemon = Place::new().start();
        let mut runner = daemon.join("files");
        for role in ["bot", "other"] {
            let mut agent = daemon.connect(role);
            let id = agent.call("s", 1, "order", TEA);
            let (request, _) = runner.request();
            runner.result(request, role);
            assert_eq!(agent.ends(id)["content"], role);
        }
        runs(&mut daemon.connect("bot"), &mut runner, ("s", 2, "diary"));
        again(&mut daemon, how);
        let mut runner = daemon.join("files");
        for role in ["bot", "other"] {
            let answer = daemon.connect(role).called("s", 1, "order", TEA);
            assert_eq!(answer["content"], role);
        }
        runner.is_silent();
        runs(&mut daemon.connect("other"), &mut runner, ("s", 2, "send"));
    }
}
