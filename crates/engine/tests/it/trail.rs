//! Whoever changes something is named by a record, and every decision has one.

use std::collections::BTreeSet;

use engine::{ConnId, Event, Record, RequestId};
use proto::{
    Answer, CallId, Control, ControlReply, DataClass, DenyReason, Label, Message, Offer, Scope,
    ToolResponse,
};
use serde_json::{Value, json};

use crate::steps::{TO_X, config, read, spec};
use crate::world::{CONFIG, World, session};

/// Every op that there is.
const OPS: &str = include_str!("../../../../docs/schemas/control.json");
const WHY: &str = "looked into it";

/// Which record an op leaves, and nothing where it only looks. A new op has to be looked at here.
fn promised(op: &Control) -> Option<&'static str> {
    match op {
        Control::Status {}
        | Control::Sessions { .. }
        | Control::Session { .. }
        | Control::Grants {}
        | Control::Tools {}
        | Control::Explain { .. }
        | Control::ExplainRequest { .. }
        | Control::Suggest { .. }
        | Control::Tail {} => None,
        Control::Reload {} => Some("configured"),
        Control::Drain {} => Some("draining"),
        Control::JoinSession { .. } => Some("joined"),
        Control::CloseSession { .. } => Some("closed"),
        Control::Declassify { .. } | Control::Endorse { .. } => Some("lowered"),
        Control::Grant { .. } => Some("granted"),
        Control::Revoke { .. } => Some("revoked"),
        Control::Preapprove { .. } => Some("standing"),
        Control::AcceptTool { .. } => Some("pinned"),
    }
}

/// Each op once, such that it is done, in the world of [`lived_in`].
fn ops(held: &proto::Digest) -> Vec<Control> {
    let bot = || "bot".try_into().unwrap();
    let why = || WHY.to_owned();
    let call = CallId(1);
    vec![
        Control::Status {},
        Control::Sessions { role: bot() },
        Control::Session {
            role: bot(),
            session: session("s"),
        },
        Control::Grants {},
        Control::Tools {},
        Control::Explain {
            role: bot(),
            session: session("s"),
            call,
        },
        Control::ExplainRequest {
            role: bot(),
            session: session("s"),
            tool: "read".try_into().unwrap(),
            arguments: "{}".to_owned(),
        },
        Control::Suggest {
            role: bot(),
            session: session("s"),
            call: CallId(2),
        },
        Control::Declassify {
            role: bot(),
            session: "s".to_owned(),
            class: DataClass::Public,
            reason: why(),
        },
        Control::Endorse {
            role: bot(),
            session: "s".to_owned(),
            reason: why(),
        },
        Control::Grant {
            grant: "id = \"stop\"\nroles = [\"bot\"]\nsessions = [\"x\"]\ntools = [\"read\"]\neffect = \"deny\"\n"
                .to_owned(),
            reason: why(),
        },
        Control::Revoke {
            grant: "stop".try_into().unwrap(),
            reason: why(),
        },
        Control::Preapprove {
            role: bot(),
            session: session("ask-1"),
            tool: "send".try_into().unwrap(),
            grants: vec!["ask-send".try_into().unwrap()],
            arguments: TO_X.to_owned(),
            label: Label::BOTTOM,
            uses: 1,
            ttl: 60_000,
            reason: why(),
        },
        Control::AcceptTool {
            runner: "mail".try_into().unwrap(),
            tool: "mail.list".try_into().unwrap(),
            definition: held.clone(),
            reason: why(),
        },
        Control::JoinSession {
            role: bot(),
            from: session("s"),
            into: session("t"),
            close: false,
        },
        Control::CloseSession {
            role: bot(),
            session: session("s"),
        },
        Control::Reload {},
        Control::Tail {},
        Control::Drain {},
    ]
}

/// Sessions, a call that was let through and one that was not, a label, and a tool that is held.
fn lived_in() -> (World, ConnId, proto::Digest) {
    let mut w = World::with(&CONFIG.replace(
        "untrusted = false\neffects = \"read\"",
        "untrusted = true\neffects = \"read\"",
    ));
    let (bot, files) = (w.plain("bot", 1), w.plain("files", 2));
    let (mail, admin) = (w.connect("mail", 2), w.connect("admin", 0));
    read(&mut w, bot, files, "s", 1, DataClass::Secret);
    w.call(bot, "s", 2, "send", "{}");
    w.call(bot, "ask-1", 1, "read", "{}");
    let tools = vec![spec("mail.list")];
    w.say(mail, Message::Offer(Offer { tools }));
    w.say(admin, Message::Control(Control::Tools {}));
    let heard = w.heard(admin);
    let Message::ControlReply(ControlReply::Tools { tools }) = &heard[0].msg else {
        panic!("{heard:?}")
    };
    let held = tools.iter().find(|t| t.tool.as_str() == "mail.list");
    let held = held.expect("held").definition.clone();
    (w, admin, held)
}

fn name(op: &Control) -> String {
    let op = serde_json::to_value(op).unwrap();
    op["op"].as_str().unwrap().to_owned()
}

/// Records since there were so many.
fn since(w: &World, count: usize) -> Vec<Value> {
    let records = w.records[count..].iter();
    records.map(|r| serde_json::to_value(r).unwrap()).collect()
}

/// Answers a reload as the shell does.
fn reloaded(w: &mut World, request: RequestId, text: &str) {
    let config = config(text);
    let request = Some(request);
    w.give(Event::Configured { config, request });
}

#[test]
fn every_operators_action_has_its_record_and_who_did_it() {
    let (mut w, admin, held) = lived_in();
    let mut driven = BTreeSet::new();
    for op in ops(&held) {
        let before = w.records.len();
        let id = w.say(admin, Message::Control(op.clone()));
        if matches!(op, Control::Reload {}) {
            reloaded(&mut w, RequestId { conn: admin, id }, CONFIG);
        }
        let told = w.heard(admin);
        let errors = told.iter().filter(|e| matches!(e.msg, Message::Error(_)));
        assert_eq!(errors.count(), 0, "{op:?}: {told:?}");
        let made = since(&w, before);
        let by = json!({"role": "admin", "uid": 0});
        let mine: Vec<_> = made.iter().filter(|r| r["by"] == by).collect();
        match promised(&op) {
            None => assert!(made.is_empty(), "{op:?}: {made:?}"),
            Some(record) => {
                assert_eq!(mine.len(), 1, "{op:?}: {made:?}");
                assert_eq!(mine[0]["record"], record);
                let op = serde_json::to_value(&op).unwrap();
                assert_eq!(mine[0].get("reason"), op.get("reason"), "{op}");
            }
        }
        driven.insert(name(&op));
    }
    let schema: Value = serde_json::from_str(OPS).unwrap();
    let named = |value: &Value| {
        value["properties"]["op"]["const"]
            .as_str()
            .map(str::to_owned)
    };
    let all: BTreeSet<String> = find(&schema, &named);
    assert_eq!(driven, all, "each op of the protocol was driven");
}

fn find(value: &Value, named: &impl Fn(&Value) -> Option<String>) -> BTreeSet<String> {
    let below: Vec<&Value> = match value {
        Value::Array(of) => of.iter().collect(),
        Value::Object(of) => of.values().collect(),
        _ => Vec::new(),
    };
    let below = below.into_iter().flat_map(|value| find(value, named));
    named(value).into_iter().chain(below).collect()
}

/// A refused reload, a second drain, the close of a closed session: nothing changes, so there is nothing to record.
#[test]
fn what_changes_nothing_leaves_no_record() {
    let (mut w, admin, _) = lived_in();
    let close = Control::CloseSession {
        role: "bot".try_into().unwrap(),
        session: session("t"),
    };
    let lower = Control::Declassify {
        role: "bot".try_into().unwrap(),
        session: "s".to_owned(),
        class: DataClass::Public,
        reason: String::new(),
    };
    let before = w.records.len();
    w.say(admin, Message::Control(close));
    w.say(admin, Message::Control(lower));
    let id = w.say(admin, Message::Control(Control::Reload {}));
    w.give(Event::ConfigRefused {
        request: Some(RequestId { conn: admin, id }),
        why: "line 1".to_owned(),
    });
    assert_eq!(since(&w, before), [json!(null); 0]);
    w.say(admin, Message::Control(Control::Drain {}));
    let drained = w.records.len();
    w.say(admin, Message::Control(Control::Drain {}));
    assert_eq!(since(&w, drained), [json!(null); 0]);
}

#[test]
fn a_reload_is_its_operators_also_once_their_connection_is_gone() {
    let (mut w, admin, _) = lived_in();
    let id = w.say(admin, Message::Control(Control::Reload {}));
    w.give(Event::Closed { conn: admin });
    reloaded(&mut w, RequestId { conn: admin, id }, CONFIG);
    let Some(Record::Configured { by: Some(by), .. }) = w.records.last() else {
        panic!("{:?}", w.records.last())
    };
    assert_eq!((by.role.as_str(), by.uid), ("admin", 0));
    w.give(Event::Configured {
        config: config(CONFIG),
        request: None,
    });
    assert!(matches!(
        w.records.last(),
        Some(Record::Configured { by: None, .. })
    ));
}

#[test]
fn an_approvers_answer_and_what_it_opens_name_who_gave_it() {
    for (answer, scope, records) in [
        (Answer::Refuse, Scope::Once, &["voted"][..]),
        (Answer::Approve, Scope::Once, &["voted"]),
        (Answer::Approve, Scope::Session, &["voted", "standing"]),
    ] {
        let mut w = World::new();
        let (bot, ann) = (w.plain("bot", 1), w.connect("ann", 3));
        w.plain("files", 2);
        w.call(bot, "ask-1", 1, "send", TO_X);
        let [request] = &w.asked(ann)[..] else {
            panic!("not asked")
        };
        let before = w.records.len();
        w.vote(ann, request, answer, scope);
        let made = since(&w, before);
        let by = json!({"role": "ann", "uid": 3});
        let mine = made.iter().filter(|r| r["by"] == by);
        let mine: Vec<_> = mine.map(|r| r["record"].as_str().unwrap()).collect();
        assert_eq!(mine, records, "{made:?}");
    }
}

#[test]
fn an_agents_join_names_who_joined() {
    let mut w = World::new();
    let (bot, files) = (w.connect("bot", 1), w.plain("files", 2));
    read(&mut w, bot, files, "s", 1, DataClass::Public);
    crate::steps::close(&mut w, bot, "s", "t");
    let all = since(&w, 0);
    let joined = all.iter().find(|r| r["record"] == "joined").unwrap();
    assert_eq!(joined["by"], json!({"role": "bot", "uid": 1}));
}

/// The decision records about a call.
fn decisions(w: &World, session: &str, call: u64) -> Vec<String> {
    let about = |record: &Value| {
        let key = &record["call"];
        let request = &record["request"];
        (key["session"]["session"] == session && key["call"] == call)
            || (request["session"] == session && request["call"] == call)
    };
    let decided = |record: Value| match record["record"].as_str() {
        Some("denied") => Some(format!("denied {}", record["reason"].as_str().unwrap())),
        Some(word @ ("asked" | "dispatched")) => Some(word.to_owned()),
        _ => None,
    };
    let all = since(w, 0).into_iter().filter(about);
    all.filter_map(decided).collect()
}

#[test]
fn every_decision_has_its_record() {
    let mut w = World::new();
    let (bot, files, ann) = (w.plain("bot", 1), w.plain("files", 2), w.connect("ann", 3));
    let asked = |w: &mut World| w.asked(ann).pop().expect("asked");
    w.call(bot, "s", 1, "no-such-tool", "{}");
    assert_eq!(decisions(&w, "s", 1), ["denied no_grant"]);
    read(&mut w, bot, files, "s", 2, DataClass::Secret);
    assert_eq!(decisions(&w, "s", 2), ["dispatched"]);
    w.call(bot, "s", 3, "send", "{}");
    assert_eq!(decisions(&w, "s", 3), ["denied taint_too_high"]);
    w.call(bot, "s", 4, "read", r#"{"path":"/a.pem"}"#);
    assert_eq!(decisions(&w, "s", 4), ["denied denied_by_grant"]);
    // Asked, and said yes to, no to, and nothing to.
    w.call(bot, "ask-1", 1, "send", TO_X);
    let request = asked(&mut w);
    w.vote(ann, &request, Answer::Approve, Scope::Once);
    assert_eq!(decisions(&w, "ask-1", 1), ["asked", "dispatched"]);
    w.call(bot, "ask-2", 2, "send", TO_X);
    let request = asked(&mut w);
    w.vote(ann, &request, Answer::Refuse, Scope::Once);
    assert_eq!(
        decisions(&w, "ask-2", 2),
        ["asked", "denied approval_refused"]
    );
    w.call(bot, "ask-2", 3, "send", TO_X);
    assert_eq!(decisions(&w, "ask-2", 3), ["denied approval_refused"]);
    w.call(bot, "ask-3", 4, "send", TO_X);
    asked(&mut w);
    w.pass(600_000);
    assert_eq!(
        decisions(&w, "ask-3", 4),
        ["asked", "denied approval_expired"]
    );
}

#[test]
fn a_question_that_nobody_can_be_asked_is_recorded_as_denied() {
    let mut w = World::with(&CONFIG.replace(
        "max_class = \"secret\"\n\n[roles.ben]",
        "max_class = \"public\"\n\n[roles.ben]",
    ));
    let (bot, files) = (w.plain("bot", 1), w.plain("files", 2));
    read(&mut w, bot, files, "ask-1", 1, DataClass::Secret);
    let id = w.call(bot, "ask-1", 2, "send", TO_X);
    let reason = DenyReason::ApprovalExpired;
    assert_eq!(w.answer(bot, id), ToolResponse::Denied { reason });
    assert_eq!(decisions(&w, "ask-1", 2), ["denied approval_expired"]);
}

#[test]
fn a_deny_that_stops_a_stored_answer_is_recorded() {
    let (mut w, admin, _) = lived_in();
    let bot = w.plain("bot", 1);
    let stop = Control::Grant {
        grant: "id = \"stop\"\nroles = [\"*\"]\nsessions = [\"*\"]\ntools = [\"*\"]\neffect = \"deny\"\n".to_owned(),
        reason: WHY.to_owned(),
    };
    w.say(admin, Message::Control(stop));
    w.call(bot, "s", 1, "read", "{}");
    assert_eq!(
        decisions(&w, "s", 1),
        ["dispatched", "denied denied_by_grant"]
    );
}
