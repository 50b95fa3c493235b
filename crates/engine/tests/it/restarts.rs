//! What a restart must find as it was.

use engine::{Effect, Effects, Event, Record};
use proto::{
    Answer, CallId, Control, DataClass, DenyReason, Envelope, FailureCode, Message, Scope,
    Timestamp, ToolResponse,
};

use crate::steps::{TO_X, close, once_put, read, reload, restore};
use crate::world::{CONFIG, World, session};

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

/// A call of `ask-1` is asked about when its session is closed; the name is used again once it has ended.
fn reused_after_its_call_ended(scope: Scope, served: bool) -> World {
    let once = "effects = \"once\"\negress = true";
    let mut w = World::with(&CONFIG.replace(once, "effects = \"read\"\negress = true"));
    let (bot, ann) = (w.connect("bot", 1), w.connect("ann", 3));
    w.call(bot, "ask-1", 1, "send", TO_X);
    let [request] = &w.asked(ann)[..] else {
        panic!("not asked")
    };
    close(&mut w, bot, "ask-1", "s");
    let files = served.then(|| w.plain("files", 2));
    w.vote(ann, request, Answer::Approve, scope);
    if let Some(files) = files {
        let [(wire, _)] = w.requests(files)[..] else {
            panic!("no request")
        };
        w.result(files, wire, "x", DataClass::Public);
    } else {
        w.pass(6_000);
    }
    assert_eq!(w.engine.usage(&"bot".try_into().unwrap()).approvals, 0);
    w.call(bot, "ask-1", 2, "read", "{}");
    w
}

#[test]
fn what_a_closed_session_let_go_of_does_not_come_back_by_a_restart_once_its_name_is_used_again() {
    for (scope, served) in [(Scope::Session, true), (Scope::Once, false)] {
        let mut w = reused_after_its_call_ended(scope, served);
        w.restart(w.records.len());
        let bot: proto::RoleName = "bot".try_into().unwrap();
        assert_eq!(w.engine.usage(&bot).approvals, 0, "{scope:?}");
        let (bot, ann) = (w.plain("bot", 1), w.connect("ann", 3));
        w.call(bot, "ask-1", 3, "send", TO_X);
        assert_eq!(w.asked(ann).len(), 1, "{scope:?}");
    }
}

/// The calls that the standing approvals of `ask-1` are good for.
fn calls_left(w: &mut World) -> Vec<u64> {
    let admin = w.connect("admin", 0);
    let show = Control::Session {
        role: "bot".try_into().unwrap(),
        session: session("ask-1"),
    };
    w.say(admin, Message::Control(show));
    match w.heard(admin).pop().unwrap().msg {
        Message::ControlReply(proto::ControlReply::Session { standing, .. }) => {
            standing.iter().map(|held| held.uses_left).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_restart_spends_of_a_standing_approval_what_a_call_spent_whose_own_approval_had_lapsed() {
    let mut w = World::new();
    let (bot, ann) = (w.plain("bot", 1), w.connect("ann", 3));
    w.call(bot, "ask-1", 1, "send", TO_X);
    let [request] = &w.asked(ann)[..] else {
        panic!("not asked")
    };
    w.vote(ann, request, Answer::Approve, Scope::Session);
    assert_eq!(calls_left(&mut w), [2]);
    // No runner is there: the call ends, and its own approval lapses unspent.
    w.pass(600_000);
    let files = w.plain("files", 2);
    w.call(bot, "ask-1", 1, "send", TO_X);
    assert_eq!(w.requests(files).len(), 1);
    assert_eq!(calls_left(&mut w), [1]);
    w.restart(w.records.len());
    assert_eq!(calls_left(&mut w), [1]);
}
