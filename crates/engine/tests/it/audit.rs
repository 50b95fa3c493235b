//! Promises that an audit found broken: each test fails until its finding is fixed.

use std::sync::Arc;

use engine::{Effect, Effects, Engine, Event, Record};
use policy::Config;
use proto::{
    Answer, CallId, Cancel, Control, DataClass, DenyReason, Envelope, FailureCode, JoinSession,
    Message, Offer, Outcome, Scope, Timestamp, ToolResponse, ToolSpec,
};

use crate::world::{CONFIG, World, session};

const TO_X: &str = r#"{"to":"x"}"#;

fn config(text: &str) -> Arc<Config> {
    Arc::new(Config::parse("world.toml", text).unwrap_or_else(|e| panic!("{e}")))
}

fn reload(w: &mut World, text: &str) {
    let config = config(text);
    w.give(Event::Configured {
        config,
        request: None,
    });
}

/// Another engine from the same records, under another configuration.
fn restore(w: &World, text: &str) -> Result<(Engine, Effects), String> {
    let mut effects = Effects::new();
    let now = Timestamp::from_millis(w.now).unwrap();
    let engine = Engine::restore(config(text), now, w.records.clone(), &mut effects)?;
    Ok((engine, effects))
}

fn once_put() -> String {
    CONFIG.replace(r#"effects = "idempotent""#, r#"effects = "once""#)
}

fn close(w: &mut World, bot: engine::ConnId, from: &str, into: &str) {
    let join = JoinSession {
        from: session(from),
        into: session(into),
        close: true,
    };
    w.say(bot, Message::JoinSession(join));
    let heard = w.heard(bot);
    assert!(
        heard.iter().any(|e| matches!(e.msg, Message::Joined(_))),
        "{from} into {into}: {heard:?}"
    );
}

fn read(
    w: &mut World,
    bot: engine::ConnId,
    files: engine::ConnId,
    s: &str,
    call: u64,
    c: DataClass,
) {
    w.call(bot, s, call, "read", "{}");
    let [(wire, _)] = w.requests(files)[..] else {
        panic!("no request")
    };
    w.result(files, wire, "x", c);
    w.heard(bot);
}

fn spec(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.try_into().unwrap(),
        description: "d".to_owned(),
        input_schema: r#"{"type":"object"}"#.to_owned(),
        class: DataClass::Public,
        untrusted: false,
        effects: proto::Effects::Read,
        egress: false,
        content: proto::Content::Text,
    }
}

#[test]
fn a_call_that_became_once_is_not_sent_a_second_time_when_its_runner_is_lost() {
    let mut w = World::new();
    let bot = w.plain("bot", 1);
    let first = w.plain("files", 2);
    w.call(bot, "s", 1, "put", "{}");
    assert_eq!(w.requests(first).len(), 1);
    reload(&mut w, &once_put());
    let second = w.plain("files", 2);
    w.give(Event::Closed { conn: first });
    assert_eq!(w.requests(second), [], "`put` is `once` by now");
}

#[test]
fn a_call_that_became_once_is_not_run_again_by_a_repeat_after_a_restart() {
    let mut w = World::new();
    let (bot, files) = (w.plain("bot", 1), w.plain("files", 2));
    w.call(bot, "s", 1, "put", "{}");
    assert_eq!(w.requests(files).len(), 1);
    w.restart(w.records.len());
    reload(&mut w, &once_put());
    let (bot, files) = (w.plain("bot", 1), w.plain("files", 2));
    w.call(bot, "s", 1, "put", "{}");
    assert_eq!(w.requests(files), [], "`put` is `once` by now");
}

#[test]
fn a_deny_of_run_time_that_does_not_fit_a_new_configuration_is_not_dropped_by_a_restart() {
    let mut w = World::new();
    let admin = w.connect("admin", 0);
    let grant = "id = \"stop\"\nroles = [\"*\"]\nsessions = [\"*\"]\ntools = [\"log\"]\neffect = \"deny\"\n";
    let grant = Control::Grant {
        grant: grant.to_owned(),
        reason: "stop".to_owned(),
    };
    w.say(admin, Message::Control(grant));
    assert!(
        w.records
            .iter()
            .any(|r| matches!(r, Record::Granted { .. }))
    );
    // The new configuration has a grant of that name, for something else.
    let text = CONFIG.replace(r#"id = "mail""#, r#"id = "stop""#);
    let restored = restore(&w, &text);
    let Ok((mut engine, _)) = restored else {
        return;
    };
    let mut effects = Effects::new();
    let now = Timestamp::from_millis(w.now).unwrap();
    let mut give = |event| engine.handle(now, event, &mut effects);
    for (conn, role, uid) in [(1, "bot", 1), (2, "files", 2)] {
        let role = role.try_into().unwrap();
        let peer = engine::Peer { role, uid };
        give(Event::Connected {
            conn: engine::ConnId(conn),
            peer,
        });
    }
    let request = Message::ToolRequest(proto::ToolRequest {
        session: session("s"),
        call: CallId(1),
        tool: "log".to_owned(),
        arguments: "{}".to_owned(),
    });
    let frame = proto::decode_shared(proto::encode(&Envelope::last(1, request)).into());
    give(Event::Received {
        conn: engine::ConnId(1),
        frame,
        nonce: 1,
    });
    let sent = |e: &Effect| matches!(e, Effect::Send { conn, .. } if *conn == engine::ConnId(2));
    assert!(
        !effects.iter().any(sent),
        "an operator denied `log`, and nobody revoked that"
    );
}

#[test]
fn a_list_of_tools_waits_for_the_record_of_the_definitions_that_it_shows() {
    let mut w = World::with(&CONFIG.replace(r#"pin = "accept""#, r#"pin = "first_use""#));
    let (bot, mail) = (w.connect("bot", 1), w.connect("mail", 2));
    let tools = vec![spec("mail.list")];
    w.say(mail, Message::Offer(Offer { tools }));
    let pinned = w.records.len() as u64;
    assert!(matches!(w.records.last(), Some(Record::Pinned { .. })));
    let list = Message::ListTools(proto::ListTools {
        session: session("s"),
    });
    let frame = proto::decode_shared(proto::encode(&Envelope::last(77, list)).into());
    let mut effects = Effects::new();
    let now = Timestamp::from_millis(w.now).unwrap();
    let event = Event::Received {
        conn: bot,
        frame,
        nonce: 5,
    };
    w.engine.handle(now, event, &mut effects);
    let after: Vec<_> = effects
        .iter()
        .filter_map(|e| match e {
            Effect::Send { id: 77, after, .. } => Some(after.map_or(0, |r| r.0)),
            _ => None,
        })
        .collect();
    assert!(!after.is_empty());
    assert!(after.iter().all(|a| *a >= pinned), "{after:?} of {pinned}");
}

#[test]
fn a_restart_judges_a_reused_name_by_the_same_session_as_before() {
    let mut w = World::new();
    let (bot, files) = (w.connect("bot", 1), w.plain("files", 2));
    for s in ["a", "b", "c", "d"] {
        read(&mut w, bot, files, s, 1, DataClass::Public);
    }
    close(&mut w, bot, "a", "b");
    close(&mut w, bot, "b", "c");
    // `a` is used again: it hangs on `c`.
    read(&mut w, bot, files, "a", 2, DataClass::Public);
    // `b` is used again, and goes elsewhere.
    read(&mut w, bot, files, "b", 2, DataClass::Public);
    close(&mut w, bot, "b", "d");
    read(&mut w, bot, files, "c", 2, DataClass::Secret);
    let denied = ToolResponse::Denied {
        reason: DenyReason::TaintTooHigh,
    };
    let id = w.call(bot, "a", 3, "send", TO_X);
    assert_eq!(w.answer(bot, id), denied, "before the restart");
    w.restart(w.records.len());
    let (bot, files) = (w.connect("bot", 1), w.plain("files", 2));
    let id = w.call(bot, "a", 3, "send", TO_X);
    assert_eq!(
        w.requests(files),
        [],
        "the label of `a` fell by the restart"
    );
    assert_eq!(w.answer(bot, id), denied);
}

#[test]
fn a_slow_approver_pins_no_more_than_its_waiting_bytes() {
    let text = CONFIG.replace(
        "max_class = \"secret\"\n\n[roles.ben]",
        "max_class = \"secret\"\nquota = { waiting_bytes = \"64KiB\" }\n\n[roles.ben]",
    );
    assert_ne!(text, CONFIG);
    let mut w = World::with(&text);
    let (bot, ann) = (w.connect("bot", 1), w.connect("ann", 3));
    w.drains = false;
    let args = format!(r#"{{"to":"{}"}}"#, "x".repeat(2000));
    for call in 0..1000 {
        w.now += 10;
        w.call(bot, "ask-1", call, "send", &args);
        w.say(
            bot,
            Message::Cancel(Cancel {
                session: session("ask-1"),
                call: CallId(call),
            }),
        );
        // The agent reads all; the approver one byte, so that write_timeout never comes.
        w.give(Event::Written {
            conn: bot,
            bytes: 1 << 30,
        });
        w.give(Event::Written {
            conn: ann,
            bytes: 1,
        });
        w.heard(bot);
    }
    let usage = w.engine.usage(&"ann".try_into().unwrap());
    assert!(usage.waiting_bytes <= 64 << 10, "{usage:?}");
}

#[test]
fn a_runner_cannot_pin_definitions_without_end() {
    let text = CONFIG
        .replace(r#"pin = "accept""#, r#"pin = "first_use""#)
        .replace(r#"max_frame = "4KiB""#, r#"max_frame = "8MiB""#);
    let mut w = World::with(&text);
    let mail = w.connect("mail", 2);
    for round in 0..20 {
        let tools = (0..500).map(|i| spec(&format!("mail.{round}.{i}")));
        let tools = tools.collect();
        w.say(mail, Message::Offer(Offer { tools }));
        w.heard(mail);
        w.now += 1000;
    }
    let pinned = w
        .records
        .iter()
        .filter(|r| matches!(r, Record::Pinned { .. }))
        .count();
    assert!(pinned <= 4096, "{pinned} definitions are kept for ever");
}

#[test]
fn a_refusal_lasts_refusal_ttl_over_a_restart_too() {
    let mut w = World::new();
    let (bot, ann) = (w.plain("bot", 1), w.connect("ann", 3));
    w.call(bot, "ask-1", 1, "send", TO_X);
    let [request] = &w.asked(ann)[..] else {
        panic!("not asked")
    };
    w.vote(ann, request, Answer::Refuse, Scope::Once);
    w.pass(540_000);
    w.restart(w.records.len());
    let (bot, ann) = (w.plain("bot", 1), w.connect("ann", 3));
    w.pass(61_000);
    w.call(bot, "ask-1", 2, "send", TO_X);
    assert_eq!(w.asked(ann).len(), 1, "ten minutes are over");
}

#[test]
fn a_permitted_read_leaves_a_record() {
    let mut w = World::new();
    let (bot, files) = (w.plain("bot", 1), w.plain("files", 2));
    read(&mut w, bot, files, "s", 1, DataClass::Public);
    let told = |r: &&Record| {
        serde_json::to_string(r)
            .unwrap()
            .contains(r#""tool":"read""#)
    };
    assert!(w.records.iter().find(told).is_some(), "{:?}", w.records);
}

#[test]
fn a_role_that_was_declassified_rises_only_by_what_it_sees_next() {
    let mut w = World::new();
    let (one, files, admin) = (
        w.plain("one", 5),
        w.plain("files", 2),
        w.connect("admin", 0),
    );
    read(&mut w, one, files, "a", 1, DataClass::Secret);
    let declassify = Control::Declassify {
        role: "one".try_into().unwrap(),
        session: "*".to_owned(),
        class: DataClass::Public,
        reason: "looked at it".to_owned(),
    };
    w.say(admin, Message::Control(declassify));
    read(&mut w, one, files, "a", 2, DataClass::Internal);
    w.call(one, "a", 3, "send", TO_X);
    assert_eq!(w.requests(files).len(), 1, "`send` is for internal");
}

#[test]
fn a_label_that_was_lowered_is_the_same_after_a_restart() {
    let mut w = World::new();
    let (bot, files, admin) = (
        w.connect("bot", 1),
        w.plain("files", 2),
        w.connect("admin", 0),
    );
    read(&mut w, bot, files, "a", 1, DataClass::Secret);
    read(&mut w, bot, files, "b", 1, DataClass::Public);
    close(&mut w, bot, "a", "b");
    let declassify = Control::Declassify {
        role: "bot".try_into().unwrap(),
        session: "b".to_owned(),
        class: DataClass::Public,
        reason: "looked at it".to_owned(),
    };
    w.say(admin, Message::Control(declassify));
    // `a` is used again, and sees a stranger's word: `b` becomes untrusted, and no more.
    w.call(bot, "a", 2, "read", "{}");
    let [(wire, _)] = w.requests(files)[..] else {
        panic!("no request")
    };
    let result = Message::ToolResponse(ToolResponse::Result {
        content: "x".to_owned(),
        class: DataClass::Public,
        untrusted: true,
        truncated: false,
    });
    w.send(files, Envelope::last(wire, result));
    let label = |w: &mut World, admin| {
        let show = Control::Session {
            role: "bot".try_into().unwrap(),
            session: session("b"),
        };
        w.say(admin, Message::Control(show));
        match w.heard(admin).pop().unwrap().msg {
            Message::ControlReply(proto::ControlReply::Session { session, .. }) => session.label,
            other => panic!("{other:?}"),
        }
    };
    let live = label(&mut w, admin);
    w.restart(w.records.len());
    let admin = w.connect("admin", 0);
    assert_eq!(label(&mut w, admin), live);
}

#[test]
fn no_frame_is_larger_than_max_frame() {
    let mut w = World::new();
    let (bot, files) = (w.connect("bot", 1), w.connect("files", 2));
    let id = w.call(bot, "s", 1, "read", "{}");
    let [(wire, _)] = w.requests(files)[..] else {
        panic!("no request")
    };
    let progress = Message::Progress(proto::Progress {
        done: 1,
        total: 2,
        note: "\u{1}".repeat(600),
    });
    w.send(files, Envelope::more(wire, progress));
    let failed = Message::ToolResponse(ToolResponse::Failed {
        message: "\"".repeat(2000),
    });
    w.send(files, Envelope::last(wire, failed));
    for envelope in w.heard(bot) {
        let len = proto::encode(&envelope).len();
        assert!(len <= 4096, "a frame of {len} bytes under {id}");
    }
}

#[test]
fn a_cancel_of_an_answered_call_gets_the_stored_answer_where_no_deny_applies() {
    let mut w = World::new();
    let (bot, files) = (w.connect("bot", 1), w.plain("files", 2));
    w.call(bot, "s", 1, "read", r#"{"path":"/a"}"#);
    let [(wire, _)] = w.requests(files)[..] else {
        panic!("no request")
    };
    w.result(files, wire, "hello", DataClass::Public);
    w.heard(bot);
    let cancel = Message::Cancel(Cancel {
        session: session("s"),
        call: CallId(1),
    });
    let id = w.say(bot, cancel);
    let answer = w.answer(bot, id);
    assert!(matches!(answer, ToolResponse::Result { .. }), "{answer:?}");
}

#[test]
fn a_drain_ends_only_when_the_answers_that_wait_were_sent() {
    let text = CONFIG
        .replace(r#"max_frame = "4KiB""#, r#"max_frame = "8MiB""#)
        .replace(r#"stored_bytes = "16KiB""#, r#"stored_bytes = "64MiB""#);
    let mut w = World::with(&text);
    let (bot, files, admin) = (
        w.plain("bot", 1),
        w.plain("files", 2),
        w.connect("admin", 0),
    );
    let ids = [1, 2].map(|call| w.call(bot, "s", call, "log", "{}"));
    let wires = w.requests(files);
    w.say(admin, Message::Control(Control::Drain {}));
    w.drains = false;
    for (wire, _) in wires {
        w.result(files, wire, &"x".repeat(800_000), DataClass::Public);
    }
    w.drains = true;
    w.drain_outboxes();
    let heard = w.heard(bot);
    for id in ids {
        assert!(
            heard.iter().any(|e| e.id == id && e.r#final),
            "{id} of {ids:?}"
        );
    }
    assert!(w.drained);
}

#[test]
fn an_answer_that_waits_for_its_receiver_survives_that_its_session_was_closed() {
    let text = CONFIG
        .replace(r#"max_frame = "4KiB""#, r#"max_frame = "8MiB""#)
        .replace(r#"stored_bytes = "16KiB""#, r#"stored_bytes = "64MiB""#);
    let mut w = World::with(&text);
    let (bot, files) = (w.connect("bot", 1), w.plain("files", 2));
    let ids = [1, 2].map(|call| w.call(bot, "a", call, "log", "{}"));
    let wires = w.requests(files);
    close(&mut w, bot, "a", "b");
    w.drains = false;
    for (wire, _) in wires {
        w.result(files, wire, &"x".repeat(800_000), DataClass::Public);
    }
    w.drains = true;
    w.drain_outboxes();
    let heard = w.heard(bot);
    for id in ids {
        let last = heard.iter().find(|e| e.id == id && e.r#final).unwrap();
        assert!(
            matches!(
                &last.msg,
                Message::ToolResponse(ToolResponse::Result { .. })
            ),
            "{:?}",
            last.msg
        );
    }
}

#[test]
fn a_yes_after_an_approval_expired_counts_for_nothing() {
    let mut w = World::new();
    let (bot, ann) = (w.plain("bot", 1), w.connect("ann", 3));
    w.call(bot, "ask-1", 1, "send", TO_X);
    let [request] = &w.asked(ann)[..] else {
        panic!("not asked")
    };
    // The shell hands the frame over before it looks at its timers.
    w.now += 600_001;
    w.vote(ann, request, Answer::Approve, Scope::Session);
    let given = |r: &Record| {
        matches!(r, Record::Standing { .. })
            || matches!(
                r,
                Record::Settled {
                    outcome: Outcome::Approved,
                    ..
                }
            )
    };
    assert!(!w.records.iter().any(given), "{:?}", w.records.last());
}

#[test]
fn settled_approvals_are_listed_after_a_restart_too() {
    let mut w = World::new();
    let (bot, ann) = (w.plain("bot", 1), w.connect("ann", 3));
    w.call(bot, "ask-1", 1, "send", TO_X);
    let [request] = &w.asked(ann)[..] else {
        panic!("not asked")
    };
    w.vote(ann, request, Answer::Refuse, Scope::Once);
    w.restart(w.records.len());
    let ann = w.connect("ann", 3);
    w.say(
        ann,
        Message::ListApprovals(proto::ListApprovals { settled: true }),
    );
    let listed: usize = w
        .heard(ann)
        .iter()
        .map(|e| match &e.msg {
            Message::Approvals(a) => a.settled.len(),
            _ => 0,
        })
        .sum();
    assert_eq!(listed, 1);
}

#[test]
fn a_tool_that_a_reload_lets_in_is_pinned() {
    let mut w = World::new();
    let mail = w.connect("mail", 2);
    let tools = vec![spec("mail.list")];
    w.say(mail, Message::Offer(Offer { tools }));
    reload(
        &mut w,
        &CONFIG.replace(r#"pin = "accept""#, r#"pin = "first_use""#),
    );
    let bot = w.plain("bot", 1);
    w.heard(mail);
    w.call(bot, "s", 1, "mail.list", "{}");
    let served = w.requests(mail).len();
    let pinned = w
        .records
        .iter()
        .filter(|r| matches!(r, Record::Pinned { .. }))
        .count();
    assert_eq!(served, pinned, "what is served is pinned");
}

#[test]
fn a_call_number_that_was_dispatched_before_a_restart_keeps_its_content() {
    let mut w = World::new();
    let (bot, files) = (w.plain("bot", 1), w.plain("files", 2));
    w.call(bot, "s", 1, "put", "{}");
    assert_eq!(w.requests(files).len(), 1);
    w.restart(w.records.len());
    let bot = w.plain("bot", 1);
    let id = w.call(bot, "s", 1, "put", "{}");
    w.pass(5000);
    assert!(matches!(
        w.answer(bot, id),
        ToolResponse::Failed { message } if FailureCode::of_message(&message) == Some(FailureCode::NoRunner)
    ));
    let files = w.plain("files", 2);
    w.call(bot, "s", 1, "log", r#"{"other":1}"#);
    assert_eq!(w.requests(files), [], "number 1 is `put`");
}

#[test]
fn a_restart_records_the_configuration_that_it_decides_by() {
    let w = World::new();
    let (_, effects) = restore(&w, CONFIG).unwrap();
    let says = |e: &Effect| {
        matches!(
            e,
            Effect::Record {
                record: Record::Configured { .. },
                ..
            }
        )
    };
    assert!(effects.iter().any(says));
}

#[test]
fn only_agents_are_told_that_tools_changed() {
    let mut w = World::new();
    let (files, ann) = (w.connect("files", 2), w.connect("ann", 3));
    reload(&mut w, CONFIG);
    for conn in [files, ann] {
        assert!(w.heard(conn).is_empty());
    }
}

#[test]
fn a_result_gets_the_floor_of_the_ruleset_that_it_arrives_under() {
    let mut w = World::new();
    let (bot, files) = (w.plain("bot", 1), w.plain("files", 2));
    let id = w.call(bot, "s", 1, "read", "{}");
    let [(wire, _)] = w.requests(files)[..] else {
        panic!("no request")
    };
    let text = CONFIG.replacen(
        "name = \"read\"\nrunner = \"files\"\nclass = \"public\"",
        "name = \"read\"\nrunner = \"files\"\nclass = \"secret\"",
        1,
    );
    assert_ne!(text, CONFIG);
    reload(&mut w, &text);
    w.result(files, wire, "x", DataClass::Public);
    assert!(matches!(
        w.answer(bot, id),
        ToolResponse::Result {
            class: DataClass::Secret,
            ..
        }
    ));
}

/// Every session's label, as an operator is shown it.
fn labels(w: &mut World) -> Vec<(String, proto::Label)> {
    w.drains = true;
    w.drain_outboxes();
    let admin = w.connect("admin", 0);
    w.say(
        admin,
        Message::Control(Control::Sessions {
            role: "bot".try_into().unwrap(),
        }),
    );
    let mut labels = Vec::new();
    for e in w.heard(admin) {
        if let Message::ControlReply(proto::ControlReply::Sessions { sessions }) = e.msg {
            labels.extend(
                sessions
                    .into_iter()
                    .map(|s| (s.session.to_string(), s.label)),
            );
        }
    }
    w.give(Event::Closed { conn: admin });
    labels
}

/// A random world of calls, parts, cancels, votes, joins, losses, reloads and restarts.
fn random_life(seed: u64) {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut rnd = move |n: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) % n
    };
    let mut w = World::new();
    let mut conns: Vec<(engine::ConnId, &str)> = Vec::new();
    let mut wires: Vec<(engine::ConnId, u64)> = Vec::new();
    let mut asked = Vec::new();
    let mut ran = std::collections::BTreeSet::new();
    let names = ["a", "b", "c", "ask-1", "two-1"];
    let tools = ["read", "put", "log", "send"];
    let classes = DataClass::ALL;
    let tight = CONFIG
        .replace("stored_bytes = \"16KiB\"", "stored_bytes = \"4KiB\"")
        .replace("closed_sessions = 8", "closed_sessions = 2");
    for _ in 0..400 {
        w.drains = rnd(4) != 0;
        let pick =
            |rnd: &mut dyn FnMut(u64) -> u64, conns: &[(engine::ConnId, &str)], role: &str| {
                let of: Vec<_> = conns
                    .iter()
                    .filter(|(_, r)| *r == role)
                    .map(|(c, _)| *c)
                    .collect();
                (!of.is_empty()).then(|| of[rnd(of.len() as u64) as usize])
            };
        let s = names[rnd(5) as usize];
        match rnd(22) {
            0 | 1 => {
                let (role, uid) = [
                    ("bot", 1),
                    ("files", 2),
                    ("ann", 3),
                    ("ben", 4),
                    ("admin", 0),
                ][rnd(5) as usize];
                if conns.len() < 12 {
                    let conn = w.plain(role, uid);
                    let hello = Message::Hello(proto::Hello {
                        software: "x".to_owned(),
                        features: vec!["parts".to_owned(), "progress".to_owned()],
                    });
                    w.say(conn, hello);
                    conns.push((conn, role));
                }
            }
            2..=8 => {
                if let Some(bot) = pick(&mut rnd, &conns, "bot") {
                    let size = [1, 10, 900][rnd(3) as usize];
                    let args = format!(r#"{{"to":"{}"}}"#, "x".repeat(size));
                    w.call(bot, s, rnd(12), tools[rnd(4) as usize], &args);
                }
            }
            9..=12 if !wires.is_empty() => {
                let at = rnd(wires.len() as u64) as usize;
                let (conn, wire) = wires[at];
                let class = classes[rnd(4) as usize];
                let text = "y".repeat([1, 50, 2500][rnd(3) as usize]);
                if rnd(3) == 0 {
                    w.part(conn, wire, &text, class);
                } else {
                    w.result(conn, wire, &text, class);
                    wires.swap_remove(at);
                }
            }
            13 => {
                if let Some(bot) = pick(&mut rnd, &conns, "bot") {
                    let cancel = Cancel {
                        session: session(s),
                        call: CallId(rnd(12)),
                    };
                    w.say(bot, Message::Cancel(cancel));
                }
            }
            14 | 15 if !asked.is_empty() => {
                let role = ["ann", "ben"][rnd(2) as usize];
                if let Some(conn) = pick(&mut rnd, &conns, role) {
                    let at = rnd(asked.len() as u64) as usize;
                    let answer = if rnd(4) == 0 {
                        Answer::Refuse
                    } else {
                        Answer::Approve
                    };
                    let scope = if rnd(2) == 0 {
                        Scope::Once
                    } else {
                        Scope::Session
                    };
                    w.vote(conn, &asked[at], answer, scope);
                }
            }
            16 => {
                if let Some(bot) = pick(&mut rnd, &conns, "bot") {
                    let join = JoinSession {
                        from: session(s),
                        into: session(names[rnd(5) as usize]),
                        close: rnd(2) == 0,
                    };
                    w.say(bot, Message::JoinSession(join));
                }
            }
            17 => {
                if let Some(admin) = pick(&mut rnd, &conns, "admin") {
                    let role = || "bot".try_into().unwrap();
                    let reason = "r".to_owned();
                    let op = match rnd(3) {
                        0 => Control::CloseSession {
                            role: role(),
                            session: session(s),
                        },
                        1 => Control::Declassify {
                            role: role(),
                            session: s.to_owned(),
                            class: DataClass::Public,
                            reason,
                        },
                        _ => Control::Endorse {
                            role: role(),
                            session: "*".to_owned(),
                            reason,
                        },
                    };
                    w.say(admin, Message::Control(op));
                }
            }
            18 if !conns.is_empty() && rnd(2) == 0 => {
                let (conn, _) = conns.swap_remove(rnd(conns.len() as u64) as usize);
                w.give(Event::Closed { conn });
            }
            19 => w.pass([1, 1000, 6000, 61_000, 700_000, 90_000_000][rnd(6) as usize]),
            20 if rnd(3) == 0 => reload(&mut w, if rnd(2) == 0 { &tight } else { CONFIG }),
            21 if rnd(4) == 0 => {
                let kept = w.records.len();
                let before = labels(&mut w);
                w.restart(kept);
                assert_eq!(
                    labels(&mut w),
                    before,
                    "seed {seed}: a restart changes no label"
                );
                conns.clear();
                wires.clear();
            }
            _ => {}
        }
        let closed = std::mem::take(&mut w.closed);
        conns.retain(|(c, _)| !closed.contains(c));
        for (conn, role) in conns.clone() {
            match role {
                "files" => {
                    for e in w.heard(conn) {
                        if let Message::ToolRequest(r) = e.msg {
                            wires.push((conn, e.id));
                            let once = matches!(r.tool.as_str(), "log" | "send");
                            let first = !once || ran.insert((r.session.to_string(), r.call.0));
                            assert!(first, "seed {seed}: {} {} again", r.session, r.call);
                        }
                    }
                }
                "ann" | "ben" => asked.extend(w.asked(conn)),
                _ => drop(w.heard(conn)),
            }
        }
    }
    for (conn, _) in conns {
        w.give(Event::Closed { conn });
    }
    w.drains = true;
    w.pass(20_000_000);
    for role in ["bot", "files", "ann", "ben", "admin"] {
        let usage = w.engine.usage(&role.try_into().unwrap());
        assert_eq!(
            (
                usage.connections,
                usage.in_flight,
                usage.waiting_bytes,
                usage.approvals
            ),
            (0, 0, 0, 0),
            "{role}, seed {seed}"
        );
    }
    w.give(Event::Drain);
    assert!(w.drained, "seed {seed}: nothing runs");
}

#[test]
fn whatever_happens_once_runs_once_labels_survive_and_nothing_stays_charged() {
    for seed in 1..80 {
        random_life(seed);
    }
}
