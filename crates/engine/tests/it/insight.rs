//! What operators and approvers can see of what was decided and what became of it.

use engine::ConnId;
use proto::control::{Decided, EventStatus, Judgement};
use proto::{
    Answer, CallEnd, CallId, CallSettled, Control, ControlReply, DataClass, ListApprovals, Message,
    Scope,
};

use crate::world::{World, session};

const TO_X: &str = r#"{"to":"x","text":"hi"}"#;

/// What an operator is told, or the words of the refusal.
fn ask(w: &mut World, admin: ConnId, control: Control) -> Result<Vec<ControlReply>, String> {
    w.heard(admin);
    let id = w.say(admin, Message::Control(control));
    let mut replies = Vec::new();
    for envelope in w.heard(admin).into_iter().filter(|e| e.id == id) {
        match envelope.msg {
            Message::ControlReply(reply) => replies.push(reply),
            Message::Error(error) => return Err(error.detail),
            other => panic!("{other:?}"),
        }
    }
    Ok(replies)
}

/// A decision, and which grants it looked at with what became of them.
fn explain(
    w: &mut World,
    admin: ConnId,
    control: Control,
) -> Result<(Judgement, Vec<(String, String)>), String> {
    let replies = ask(w, admin, control)?;
    let mut head = None;
    let mut lines = Vec::new();
    for reply in replies {
        let ControlReply::Explained { judgement, trace } = reply else {
            panic!("{reply:?}")
        };
        let trace = trace.into_iter();
        lines.extend(trace.map(|line| (line.grant.to_string(), line.what)));
        head = Some(judgement);
    }
    Ok((head.expect("an answer"), lines))
}

fn past(call: u64) -> Control {
    Control::Explain {
        role: "bot".try_into().unwrap(),
        session: session("s"),
        call: CallId(call),
    }
}

fn hypothetical(name: &str, tool: &str, arguments: &str) -> Control {
    Control::ExplainRequest {
        role: "bot".try_into().unwrap(),
        session: session(name),
        tool: tool.try_into().unwrap(),
        arguments: arguments.to_owned(),
    }
}

#[test]
fn a_denied_call_is_explained_with_every_grant_and_why_it_fell() {
    let mut w = World::new();
    let (bot, admin) = (w.plain("bot", 1), w.connect("admin", 0));
    w.call(bot, "s", 1, "read", r#"{"path":"/a/key.pem"}"#);
    let (judgement, trace) = explain(&mut w, admin, past(1)).unwrap();
    assert_eq!(judgement.decided, Decided::Deny);
    assert_eq!(
        (judgement.reason.as_str(), judgement.grant.as_str()),
        ("denied_by_grant", "no-keys")
    );
    let grants: Vec<&str> = trace.iter().map(|(grant, _)| grant.as_str()).collect();
    assert_eq!(
        grants,
        ["read", "no-keys", "send", "ask-send", "ask-two", "mail"]
    );
    assert!(
        trace.iter().all(|(_, what)| !what.contains("key.pem")),
        "a value of the arguments is told: {trace:?}"
    );
}

#[test]
fn a_decision_is_explained_by_the_rules_and_the_label_of_its_time() {
    let mut w = World::new();
    let (bot, files, admin) = (
        w.plain("bot", 1),
        w.plain("files", 2),
        w.connect("admin", 0),
    );
    w.call(bot, "s", 1, "send", TO_X);
    let wire = w.requests(files)[0].0;
    w.result(files, wire, "sent", DataClass::Confidential);
    w.call(bot, "s", 2, "send", TO_X);
    let forbid = "id = \"stop\"\nroles = [\"*\"]\nsessions = [\"*\"]\ntools = [\"send\"]\neffect = \"deny\"\n";
    let added = Control::Grant {
        grant: forbid.to_owned(),
        reason: "a test".to_owned(),
    };
    ask(&mut w, admin, added).unwrap();

    let (first, trace) = explain(&mut w, admin, past(1)).unwrap();
    assert_eq!(
        (first.decided, first.grant.as_str()),
        (Decided::Permit, "send")
    );
    assert_eq!(first.label.class, DataClass::Public);
    assert!(trace.iter().all(|(grant, _)| grant != "stop"), "{trace:?}");
    let (second, _) = explain(&mut w, admin, past(2)).unwrap();
    assert_eq!(second.reason, "taint_too_high");
    assert_eq!(second.label.class, DataClass::Confidential);
    let (now, trace) = explain(&mut w, admin, hypothetical("s", "send", TO_X)).unwrap();
    assert_eq!(
        (now.reason.as_str(), now.grant.as_str()),
        ("denied_by_grant", "stop")
    );
    assert!(trace.iter().any(|(grant, _)| grant == "stop"), "{trace:?}");
}

#[test]
fn explaining_a_request_asks_nobody_and_spends_nothing() {
    let mut w = World::new();
    let (ann, admin) = (w.connect("ann", 3), w.connect("admin", 0));
    let records = w.records.len();
    let (judgement, _) = explain(&mut w, admin, hypothetical("ask-1", "send", TO_X)).unwrap();
    assert_eq!(judgement.decided, Decided::Ask);
    assert_eq!(w.records.len(), records);
    assert!(w.asked(ann).is_empty());
    assert_eq!(w.engine.usage(&"bot".try_into().unwrap()).sessions, 0);
}

#[test]
fn a_request_of_which_nobody_can_be_asked_is_explained_as_it_would_be_answered() {
    let deaf = crate::world::CONFIG.replace(
        "max_class = \"secret\"\n\n[roles.ben]",
        "max_class = \"public\"\n\n[roles.ben]",
    );
    let mut w = World::with(&deaf);
    let (bot, files, admin) = (
        w.plain("bot", 1),
        w.plain("files", 2),
        w.connect("admin", 0),
    );
    w.call(bot, "ask-1", 1, "read", r#"{"path":"/a"}"#);
    let wire = w.requests(files)[0].0;
    w.result(files, wire, "x", DataClass::Internal);
    let id = w.call(bot, "ask-1", 2, "send", TO_X);
    let denied = proto::ToolResponse::Denied {
        reason: proto::DenyReason::ApprovalExpired,
    };
    assert_eq!(w.answer(bot, id), denied);
    let (judgement, _) = explain(&mut w, admin, hypothetical("ask-1", "send", TO_X)).unwrap();
    assert_eq!(judgement.decided, Decided::Deny);
    assert_eq!(judgement.reason, "approval_expired");
}

#[test]
fn an_approved_call_is_explained_with_its_approval() {
    let mut w = World::new();
    let (bot, ann, admin) = (
        w.plain("bot", 1),
        w.connect("ann", 3),
        w.connect("admin", 0),
    );
    let _files = w.plain("files", 2);
    w.call(bot, "ask-1", 1, "send", TO_X);
    let about = || Control::Explain {
        role: "bot".try_into().unwrap(),
        session: session("ask-1"),
        call: CallId(1),
    };
    let request = w.asked(ann).remove(0);
    let (asked, _) = explain(&mut w, admin, about()).unwrap();
    assert_eq!(asked.decided, Decided::Ask);
    assert_eq!(asked.approval, request.approval.as_str());
    w.vote(ann, &request, Answer::Approve, Scope::Once);
    let (sent, _) = explain(&mut w, admin, about()).unwrap();
    assert_eq!(sent.decided, Decided::Permit);
    assert_eq!(sent.approval, request.approval.as_str());
}

#[test]
fn the_oldest_decisions_are_forgotten_first_and_nothing_else_is() {
    let mut w = World::new();
    let (bot, admin) = (w.plain("bot", 1), w.connect("admin", 0));
    let remembered = engine::limits::MAX_REMEMBERED as u64;
    for call in 0..=remembered {
        w.call(bot, "s", call, "no-such", "{}");
    }
    let forgotten = explain(&mut w, admin, past(0)).unwrap_err();
    assert!(forgotten.contains("no decision"), "{forgotten}");
    let (judgement, trace) = explain(&mut w, admin, past(1)).unwrap();
    assert_eq!(judgement.reason, "no_grant");
    assert!(trace.is_empty() && judgement.words.contains("no tool"));
}

#[test]
fn an_approver_hears_how_the_call_ended_and_not_what_it_said() {
    let mut w = World::new();
    let (bot, files, ann) = (w.plain("bot", 1), w.plain("files", 2), w.connect("ann", 3));
    w.call(bot, "ask-1", 1, "send", TO_X);
    let request = w.asked(ann).remove(0);
    w.vote(ann, &request, Answer::Approve, Scope::Once);
    w.heard(ann);
    let wire = w.requests(files)[0].0;
    w.result(files, wire, "a secret", DataClass::Secret);
    let heard = w.heard(ann);
    let ended = CallSettled {
        approval: request.approval.clone(),
        role: "bot".try_into().unwrap(),
        session: session("ask-1"),
        call: CallId(1),
        tool: "send".try_into().unwrap(),
        end: CallEnd::Result,
        detail: String::new(),
    };
    assert!(
        matches!(&heard[..], [only] if only.id == 0 && only.msg == Message::CallSettled(ended.clone())),
        "{heard:?}"
    );
    let id = w.say(ann, Message::ListApprovals(ListApprovals { settled: true }));
    let listed: Vec<_> = w.heard(ann).into_iter().filter(|e| e.id == id).collect();
    let calls = listed.iter().filter_map(|e| match &e.msg {
        Message::Approvals(approvals) => Some(approvals.calls.clone()),
        _ => None,
    });
    assert_eq!(calls.flatten().collect::<Vec<_>>(), [ended]);
}

#[test]
fn an_approver_hears_that_the_approved_call_failed_or_was_denied_after_all() {
    let mut w = World::new();
    let (bot, ann, admin) = (
        w.plain("bot", 1),
        w.connect("ann", 3),
        w.connect("admin", 0),
    );
    let ends = |w: &mut World| -> Vec<(CallEnd, String)> {
        let heard = w.heard(ann).into_iter();
        let ended = heard.filter_map(|e| match e.msg {
            Message::CallSettled(ended) => Some((ended.end, ended.detail)),
            _ => None,
        });
        ended.collect()
    };
    w.call(bot, "ask-1", 1, "send", TO_X);
    let request = w.asked(ann).remove(0);
    w.vote(ann, &request, Answer::Approve, Scope::Once);
    w.pass(60_000);
    assert_eq!(ends(&mut w), [(CallEnd::Failed, "no_runner".to_owned())]);

    w.call(bot, "ask-1", 2, "send", TO_X);
    let request = w.asked(ann).remove(0);
    w.vote(ann, &request, Answer::Approve, Scope::Once);
    let forbid = "id = \"stop\"\nroles = [\"*\"]\nsessions = [\"*\"]\ntools = [\"send\"]\neffect = \"deny\"\n";
    let added = Control::Grant {
        grant: forbid.to_owned(),
        reason: "a test".to_owned(),
    };
    ask(&mut w, admin, added).unwrap();
    let _files = w.plain("files", 2);
    assert_eq!(
        ends(&mut w),
        [(CallEnd::Denied, "denied_by_grant".to_owned())]
    );
}

fn forbid(id: &str) -> String {
    format!(
        "id = \"{id}\"\nroles = [\"*\"]\nsessions = [\"*\"]\ntools = [\"send\"]\neffect = \"deny\"\n"
    )
}

fn events(w: &mut World, admin: ConnId) -> Vec<EventStatus> {
    let heard = w.heard(admin).into_iter();
    let events = heard.filter_map(|e| match e.msg {
        Message::ControlReply(ControlReply::Event { event }) => {
            assert!(!e.r#final, "a tail does not end by itself");
            Some(event)
        }
        _ => None,
    });
    events.collect()
}

#[test]
fn a_tail_tells_what_the_log_tells_and_no_arguments() {
    let mut w = World::new();
    let (bot, files, admin) = (
        w.plain("bot", 1),
        w.plain("files", 2),
        w.connect("admin", 0),
    );
    w.say(admin, Message::Control(Control::Tail {}));
    w.call(bot, "s", 1, "send", r#"{"to":"canary"}"#);
    let wire = w.requests(files)[0].0;
    w.result(files, wire, "canary", DataClass::Public);
    let events = events(&mut w, admin);
    let words: Vec<&str> = events.iter().map(|event| event.event.as_str()).collect();
    assert_eq!(words, ["dispatched", "answered"]);
    let sent = &events[0];
    assert_eq!(
        (
            sent.role.as_str(),
            sent.session.as_str(),
            sent.call.0,
            sent.grant.as_str()
        ),
        ("bot", "s", 1, "send")
    );
    assert!(!format!("{events:?}").contains("canary"), "{events:?}");
}

#[test]
fn a_tail_that_does_not_read_costs_nothing_more_and_is_told_what_it_missed() {
    let mut w = World::new();
    let (bot, admin) = (w.plain("bot", 1), w.connect("admin", 0));
    w.say(admin, Message::Control(Control::Tail {}));
    w.drains = false;
    let flood = 6_000;
    for call in 0..flood {
        w.pass(1);
        w.call(bot, "s", call, "no-such", "{}");
        w.heard(bot);
    }
    let told = events(&mut w, admin).len() as u64;
    assert!(told < flood, "{told} were taken without being read");
    assert_eq!(
        w.engine.usage(&"admin".try_into().unwrap()).waiting_bytes,
        0
    );
    w.drains = true;
    w.drain_outboxes();
    assert!(events(&mut w, admin).is_empty());
    w.call(bot, "s", flood, "no-such", "{}");
    let missed: Vec<u64> = events(&mut w, admin)
        .iter()
        .map(|event| event.missed)
        .collect();
    assert!(
        missed.first().is_some_and(|missed| *missed > 0),
        "{missed:?}"
    );
    assert!(missed[1..].iter().all(|missed| *missed == 0), "{missed:?}");
}

fn suggest(w: &mut World, admin: ConnId, call: u64) -> (String, Vec<String>) {
    let control = Control::Suggest {
        role: "bot".try_into().unwrap(),
        session: session("s"),
        call: CallId(call),
    };
    match ask(w, admin, control).unwrap().remove(0) {
        ControlReply::Suggested { grant, notes } => (grant, notes),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_suggested_grant_lets_the_denied_call_through_and_no_other() {
    let mut w = World::new();
    let (bot, files, admin) = (
        w.plain("bot", 1),
        w.plain("files", 2),
        w.connect("admin", 0),
    );
    w.call(bot, "s", 1, "send", TO_X);
    let wire = w.requests(files)[0].0;
    w.result(files, wire, "sent", DataClass::Confidential);
    w.call(bot, "s", 2, "send", TO_X);
    let (grant, notes) = suggest(&mut w, admin, 2);
    assert!(!grant.is_empty(), "{notes:?}");
    let reason = "a test".to_owned();
    ask(&mut w, admin, Control::Grant { grant, reason }).unwrap();
    w.call(bot, "s", 3, "send", r#"{"to":"y","text":"hi"}"#);
    assert!(w.requests(files).is_empty(), "another call goes through");
    w.call(bot, "s", 4, "send", TO_X);
    assert_eq!(w.requests(files).len(), 1);
}

#[test]
fn where_a_deny_applies_no_grant_is_suggested_and_the_deny_is_named() {
    let mut w = World::new();
    let (bot, admin) = (w.plain("bot", 1), w.connect("admin", 0));
    w.call(bot, "s", 1, "read", r#"{"path":"/a/key.pem"}"#);
    let (grant, notes) = suggest(&mut w, admin, 1);
    assert!(grant.is_empty(), "{grant}");
    assert!(
        notes.iter().any(|note| note.contains("no-keys")),
        "{notes:?}"
    );
}

#[test]
fn a_repeat_that_a_new_deny_stops_is_explained_as_denied() {
    let mut w = World::new();
    let (bot, files, admin) = (
        w.plain("bot", 1),
        w.plain("files", 2),
        w.connect("admin", 0),
    );
    w.call(bot, "s", 1, "send", TO_X);
    let wire = w.requests(files)[0].0;
    w.result(files, wire, "sent", DataClass::Public);
    let added = Control::Grant {
        grant: forbid("stop"),
        reason: "a test".to_owned(),
    };
    ask(&mut w, admin, added).unwrap();
    w.call(bot, "s", 1, "send", TO_X);
    let (judgement, _) = explain(&mut w, admin, past(1)).unwrap();
    assert_eq!(
        (judgement.reason.as_str(), judgement.grant.as_str()),
        ("denied_by_grant", "stop")
    );
}

#[test]
fn arguments_that_are_too_long_to_remember_push_out_nothing() {
    let mut w = World::new();
    let (bot, admin) = (w.plain("bot", 1), w.connect("admin", 0));
    w.call(bot, "s", 1, "no-such", "{}");
    let long = " ".repeat(engine::limits::MAX_REMEMBERED_BYTES + 1);
    w.call(bot, "s", 2, "no-such", &long);
    assert!(explain(&mut w, admin, past(2)).is_err());
    assert_eq!(
        explain(&mut w, admin, past(1)).unwrap().0.reason,
        "no_grant"
    );
}

#[test]
fn decisions_by_rules_that_were_replaced_often_since_are_forgotten() {
    let mut w = World::new();
    let (bot, admin) = (w.plain("bot", 1), w.connect("admin", 0));
    w.call(bot, "s", 1, "no-such", "{}");
    for n in 1..engine::limits::MAX_REMEMBERED_RULESETS {
        let (grant, reason) = (forbid(&format!("stop-{n}")), "a test".to_owned());
        ask(&mut w, admin, Control::Grant { grant, reason }).unwrap();
        w.call(bot, "s", 1 + n, "no-such", "{}");
    }
    explain(&mut w, admin, past(1)).unwrap();
    let (grant, reason) = (forbid("stop"), "a test".to_owned());
    ask(&mut w, admin, Control::Grant { grant, reason }).unwrap();
    let forgotten = explain(&mut w, admin, past(1)).unwrap_err();
    assert!(forgotten.contains("no decision"), "{forgotten}");
    explain(&mut w, admin, past(2)).unwrap();
}

#[test]
fn a_spent_grant_is_explained_as_it_was_and_only_its_own_uses_are_kept() {
    let mut w = World::new();
    let (bot, files, admin) = (
        w.plain("bot", 1),
        w.plain("files", 2),
        w.connect("admin", 0),
    );
    let once = "id = \"once\"\nroles = [\"bot\"]\nsessions = [\"s\"]\ntools = [\"send\"]\n\
                effect = \"allow\"\nmax_class = \"secret\"\nmax_uses = 1\nexpires = \"2090-01-01T00:00:00Z\"\n";
    let (grant, reason) = (once.to_owned(), "a test".to_owned());
    w.call(bot, "s", 1, "read", r#"{"path":"/a"}"#);
    let wire = w.requests(files)[0].0;
    w.result(files, wire, "x", DataClass::Secret);
    ask(&mut w, admin, Control::Grant { grant, reason }).unwrap();
    w.call(bot, "s", 2, "send", TO_X);
    w.call(bot, "s", 3, "send", TO_X);
    let of_once = |trace: Vec<(String, String)>| {
        let line = trace.into_iter().find(|(grant, _)| grant == "once");
        line.expect("the grant is looked at").1
    };
    let (sent, trace) = explain(&mut w, admin, past(2)).unwrap();
    assert_eq!(sent.decided, Decided::Permit);
    assert!(of_once(trace).contains("permits"));
    let (denied, trace) = explain(&mut w, admin, past(3)).unwrap();
    assert_eq!(denied.decided, Decided::Deny);
    assert!(of_once(trace).contains("spent"));
}

fn call_ends(w: &mut World, approver: ConnId) -> Vec<(u64, CallEnd)> {
    let heard = w.heard(approver).into_iter();
    let ended = heard.filter_map(|e| match e.msg {
        Message::CallSettled(ended) => Some((ended.call.0, ended.end)),
        _ => None,
    });
    ended.collect()
}

#[test]
fn an_end_is_told_only_of_the_content_that_was_approved() {
    let mut w = World::new();
    let (bot, ann) = (w.plain("bot", 1), w.connect("ann", 3));
    w.call(bot, "ask-1", 1, "send", TO_X);
    let request = w.asked(ann).remove(0);
    w.vote(ann, &request, Answer::Approve, Scope::Once);
    w.pass(60_000);
    assert_eq!(call_ends(&mut w, ann), [(1, CallEnd::Failed)]);
    // Its answer was not kept: the number may be used for something else, which nobody approved.
    let files = w.plain("files", 2);
    w.call(bot, "ask-1", 1, "read", r#"{"path":"/a"}"#);
    let wire = w.requests(files)[0].0;
    w.result(files, wire, "x", DataClass::Public);
    assert_eq!(call_ends(&mut w, ann), []);
}

#[test]
fn the_end_of_a_call_is_told_however_long_it_ran_after_its_approval_and_after_a_restart() {
    let patient = "[broker]\ncall_timeout = \"3h\"\ncall_limit = \"3h\"\n";
    let mut w = World::with(&crate::world::CONFIG.replace("[broker]\n", patient));
    let (bot, files, ann) = (w.plain("bot", 1), w.plain("files", 2), w.connect("ann", 3));
    w.call(bot, "ask-1", 1, "send", TO_X);
    let request = w.asked(ann).remove(0);
    w.vote(ann, &request, Answer::Approve, Scope::Session);
    let wire = w.requests(files)[0].0;
    w.pass(2 * 3_600_000);
    // Another approval pushes what is older than an hour out of the list.
    w.call(bot, "ask-2", 1, "send", TO_X);
    let request = w.asked(ann).remove(0);
    w.vote(ann, &request, Answer::Refuse, Scope::Once);
    w.result(files, wire, "sent", DataClass::Public);
    assert_eq!(call_ends(&mut w, ann), [(1, CallEnd::Result)]);

    w.call(bot, "ask-3", 1, "send", TO_X);
    let request = w.asked(ann).remove(0);
    w.vote(ann, &request, Answer::Approve, Scope::Session);
    let kept = w.records.len();
    w.restart(kept);
    let (bot, _files, ann) = (w.plain("bot", 1), w.plain("files", 2), w.connect("ann", 3));
    w.call(bot, "ask-3", 2, "send", TO_X);
    w.pass(4 * 3_600_000);
    assert_eq!(call_ends(&mut w, ann), [(2, CallEnd::Failed)]);
}

#[test]
fn a_suggestion_that_fits_no_frame_is_refused_and_not_sent() {
    let mut w = World::new();
    let (bot, admin) = (w.plain("bot", 1), w.connect("admin", 0));
    let deny = forbid("stop").replace("\"send\"", "\"read\"");
    let (grant, reason) = (deny, "a test".to_owned());
    ask(&mut w, admin, Control::Grant { grant, reason }).unwrap();
    // Two bytes each; six as TOML writes them, and a backslash more in JSON.
    let text = "é".repeat(500);
    w.call(
        bot,
        "s",
        1,
        "read",
        &format!(r#"{{"a":"{text}","b":"{text}"}}"#),
    );
    let suggested = Control::Suggest {
        role: "bot".try_into().unwrap(),
        session: session("s"),
        call: CallId(1),
    };
    let refused = ask(&mut w, admin, suggested).unwrap_err();
    assert!(refused.contains("4096"), "{refused}");
}
