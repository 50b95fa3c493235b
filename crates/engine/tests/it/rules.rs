//! Rules that move while calls, sessions and offers live.

use engine::{Event, Record};
use proto::{
    Answer, CallId, Cancel, Control, DataClass, Message, Offer, Outcome, Scope, ToolResponse,
};

use crate::steps::{TO_X, once_put, read, reload, spec};
use crate::world::{CONFIG, World, session};

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
