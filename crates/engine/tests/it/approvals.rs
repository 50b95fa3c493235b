//! Approvals: asked, answered, covered, superseded.

use proto::{
    Answer, Control, ControlReply, DataClass, DenyReason, Message, Outcome, Scope, ToolResponse,
};

use crate::world::World;

const TO_X: &str = r#"{"to":"x","text":"hi"}"#;

fn outcomes(w: &mut World, conn: engine::ConnId) -> Vec<(u64, Outcome)> {
    w.heard(conn)
        .into_iter()
        .filter_map(|e| match e.msg {
            Message::ApprovalSettled(settled) => Some((e.id, settled.outcome)),
            _ => None,
        })
        .collect()
}

#[test]
fn an_asked_call_waits_and_runs_once_approved() {
    let mut w = World::new();
    let (bot, files, ann) = (w.plain("bot", 1), w.plain("files", 2), w.connect("ann", 3));
    let id = w.call(bot, "ask-1", 1, "send", TO_X);
    let pending = w.heard(bot);
    assert!(
        matches!(
            &pending[0].msg,
            Message::ToolResponse(ToolResponse::PendingApproval { .. })
        ) && !pending[0].r#final
            && pending[0].id == id,
        "{pending:?}"
    );
    let [request] = &w.asked(ann)[..] else {
        panic!("not asked")
    };
    assert_eq!(request.arguments, TO_X);
    let vote = w.vote(ann, request, Answer::Approve, Scope::Once);
    assert_eq!(outcomes(&mut w, ann), [(vote, Outcome::Approved)]);
    let [(wire, 1)] = w.requests(files)[..] else {
        panic!("no request")
    };
    w.result(files, wire, "sent", DataClass::Public);
    assert!(matches!(w.answer(bot, id), ToolResponse::Result { .. }));
    assert_eq!(w.engine.usage(&"bot".try_into().unwrap()).approvals, 0);
}

#[test]
fn one_refusal_ends_it_and_answers_the_same_content_for_a_while() {
    let mut w = World::new();
    let (bot, ann) = (w.plain("bot", 1), w.connect("ann", 3));
    let id = w.call(bot, "ask-1", 1, "send", TO_X);
    let [request] = &w.asked(ann)[..] else {
        panic!("not asked")
    };
    w.vote(ann, request, Answer::Refuse, Scope::Once);
    let refused = ToolResponse::Denied {
        reason: DenyReason::ApprovalRefused,
    };
    assert_eq!(w.answer(bot, id), refused);
    let id = w.call(bot, "ask-1", 2, "send", TO_X);
    assert_eq!(w.answer(bot, id), refused);
    w.pass(600_001);
    w.call(bot, "ask-1", 3, "send", TO_X);
    assert_eq!(w.asked(ann).len(), 1, "after refusal_ttl it is asked again");
}

#[test]
fn nobody_answers_in_time_or_nobody_may_be_asked_is_approval_expired() {
    let mut w = World::new();
    let (bot, ann, ben) = (w.plain("bot", 1), w.connect("ann", 3), w.connect("ben", 4));
    let id = w.call(bot, "ask-1", 1, "send", TO_X);
    w.pass(600_000);
    let expired = ToolResponse::Denied {
        reason: DenyReason::ApprovalExpired,
    };
    assert_eq!(w.answer(bot, id), expired);
    assert_eq!(outcomes(&mut w, ann), [(0, Outcome::Expired)]);
    assert!(w.heard(ben).is_empty(), "who is not asked hears nothing");
}

#[test]
fn a_quorum_is_of_distinct_uids() {
    let mut w = World::new();
    let (bot, files) = (w.plain("bot", 1), w.plain("files", 2));
    let (ann, again, ben) = (
        w.connect("ann", 3),
        w.connect("ann", 3),
        w.connect("ben", 4),
    );
    w.call(bot, "two-1", 1, "send", TO_X);
    let [request] = &w.asked(ann)[..] else {
        panic!("not asked")
    };
    w.vote(ann, request, Answer::Approve, Scope::Once);
    w.vote(again, request, Answer::Approve, Scope::Once);
    assert!(w.requests(files).is_empty());
    w.vote(ben, request, Answer::Approve, Scope::Once);
    assert_eq!(w.requests(files).len(), 1);
}

#[test]
fn a_standing_approval_covers_equal_values_for_its_uses_and_no_higher_label() {
    let mut w = World::new();
    let (bot, files, ann) = (w.plain("bot", 1), w.plain("files", 2), w.connect("ann", 3));
    w.call(bot, "ask-1", 1, "send", TO_X);
    let [request] = &w.asked(ann)[..] else {
        panic!("not asked")
    };
    assert_eq!(request.scopes, [Scope::Once, Scope::Session]);
    w.vote(ann, request, Answer::Approve, Scope::Session);
    w.call(bot, "ask-1", 2, "send", TO_X);
    assert_eq!(w.requests(files).len(), 2, "the second is covered");
    w.call(bot, "ask-1", 3, "send", r#"{"to":"x","text":"other"}"#);
    assert_eq!(w.asked(ann).len(), 1, "other values are not");
    w.call(bot, "ask-2", 1, "send", TO_X);
    assert_eq!(w.asked(ann).len(), 1, "another session is not");
}

#[test]
fn a_label_that_rises_while_asked_supersedes_the_question() {
    let mut w = World::new();
    let (bot, files, ann) = (w.plain("bot", 1), w.plain("files", 2), w.connect("ann", 3));
    w.call(bot, "ask-1", 1, "read", "{}");
    let [(wire, _)] = w.requests(files)[..] else {
        panic!("no request")
    };
    w.call(bot, "ask-1", 2, "send", TO_X);
    let [first] = &w.asked(ann)[..] else {
        panic!("not asked")
    };
    w.result(files, wire, "key", DataClass::Internal);
    let heard = w.heard(ann);
    assert!(heard.iter().any(|e| matches!(&e.msg, Message::ApprovalSettled(s) if s.outcome == Outcome::Superseded && s.approval == first.approval)), "{heard:?}");
    let second = heard
        .iter()
        .find_map(|e| match &e.msg {
            Message::ApprovalRequest(request) => Some(request.clone()),
            _ => None,
        })
        .expect("asked anew");
    assert_eq!(second.label.class, DataClass::Internal);
    assert_eq!(second.raised_by.len(), 1);
    w.vote(ann, first, Answer::Approve, Scope::Once);
    assert!(
        w.requests(files).is_empty(),
        "the old question approves nothing"
    );
    w.vote(ann, &second, Answer::Approve, Scope::Once);
    assert_eq!(w.requests(files).len(), 1);
}

#[test]
fn a_pending_approval_and_a_granted_one_survive_a_restart() {
    let mut w = World::new();
    let (bot, ann) = (w.plain("bot", 1), w.connect("ann", 3));
    w.call(bot, "ask-1", 1, "send", TO_X);
    let [request] = &w.asked(ann)[..] else {
        panic!("not asked")
    };
    w.restart(w.records.len());
    let ann = w.plain("ann", 3);
    let hello = proto::Hello {
        software: String::new(),
        features: Vec::new(),
    };
    w.say(ann, Message::Hello(hello));
    assert_eq!(
        w.asked(ann),
        std::slice::from_ref(request),
        "announced again"
    );
    w.vote(ann, request, Answer::Approve, Scope::Once);
    w.restart(w.records.len());
    let (bot, files) = (w.plain("bot", 1), w.plain("files", 2));
    assert!(w.requests(files).is_empty(), "it runs on a repeat only");
    w.call(bot, "ask-1", 1, "send", TO_X);
    assert_eq!(
        w.requests(files).len(),
        1,
        "approved before, it is not asked again"
    );
}

#[test]
fn an_operator_approves_beforehand_within_what_the_grants_allow() {
    let mut w = World::new();
    let (bot, files, admin) = (
        w.plain("bot", 1),
        w.plain("files", 2),
        w.connect("admin", 0),
    );
    w.call(bot, "ask-1", 1, "read", "{}");
    w.requests(files);
    let op = |uses| {
        Message::Control(Control::Preapprove {
            role: "bot".try_into().unwrap(),
            session: "ask-1".try_into().unwrap(),
            tool: "send".try_into().unwrap(),
            grants: vec!["ask-send".try_into().unwrap()],
            arguments: TO_X.to_owned(),
            label: proto::Label::BOTTOM,
            uses,
            ttl: 60_000,
            reason: "test".to_owned(),
        })
    };
    w.say(admin, op(4));
    assert!(
        matches!(&w.heard(admin)[0].msg, Message::Error(_)),
        "more than standing_uses"
    );
    w.say(admin, op(1));
    let heard = w.heard(admin);
    assert!(
        matches!(
            &heard[0].msg,
            Message::ControlReply(ControlReply::Preapproved { .. })
        ),
        "{heard:?}"
    );
    w.call(bot, "ask-1", 2, "send", TO_X);
    assert_eq!(w.requests(files).len(), 1);
}
