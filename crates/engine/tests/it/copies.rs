//! A copy of the state that was put back: what came after it is not known, and the worst counts.

use engine::{CallKey, ConnId, Effects, Engine, Record, SessionKey};
use proto::{
    Answer, CallId, Control, ControlReply, DataClass, DenyReason, Label, Message, Outcome, Scope,
    Timestamp, ToolResponse,
};

use crate::steps::{TO_X, read, reload};
use crate::world::{CONFIG, World, session};

const TAINTED: ToolResponse = ToolResponse::Denied {
    reason: DenyReason::TaintTooHigh,
};

fn key(name: &str) -> SessionKey {
    SessionKey {
        role: "bot".try_into().unwrap(),
        session: session(name),
    }
}

/// A label, whether the session is closed, and how many standing approvals it has.
fn shown(w: &mut World, admin: ConnId, name: &str) -> (Label, bool, usize) {
    let SessionKey { role, session } = key(name);
    w.say(admin, Message::Control(Control::Session { role, session }));
    match &w.heard(admin)[..] {
        [envelope] => match &envelope.msg {
            Message::ControlReply(ControlReply::Session {
                session, standing, ..
            }) => (session.label, session.closed, standing.len()),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

fn lower(w: &mut World, admin: ConnId, class: DataClass) {
    let role: proto::RoleName = "bot".try_into().unwrap();
    let session = "*".to_owned();
    let reason = "looked at it".to_owned();
    let endorse = Control::Endorse {
        role: role.clone(),
        session: session.clone(),
        reason: reason.clone(),
    };
    let declassify = Control::Declassify {
        role,
        session,
        class,
        reason,
    };
    for control in [endorse, declassify] {
        w.say(admin, Message::Control(control));
        let heard = w.heard(admin);
        assert!(
            matches!(
                heard[0].msg,
                Message::ControlReply(ControlReply::Done { .. })
            ),
            "{heard:?}"
        );
    }
}

#[track_caller]
fn is_unknown(told: &ToolResponse) {
    match told {
        ToolResponse::Failed { message } if message.starts_with("unknown_outcome: ") => {}
        other => panic!("{other:?}"),
    }
}

/// Records of calls of every kind: answered, granted, asked, standing, with a runner.
fn busy() -> World {
    let mut w = World::new();
    let (bot, files, ann) = (
        w.connect("bot", 1),
        w.plain("files", 2),
        w.connect("ann", 3),
    );
    read(&mut w, bot, files, "s", 1, DataClass::Public);
    w.call(bot, "s", 2, "log", "{}");
    let [(wire, _)] = w.requests(files)[..] else {
        panic!("no request")
    };
    w.result(files, wire, "logged", DataClass::Public);
    w.call(bot, "ask-1", 1, "send", TO_X);
    let [request] = &w.asked(ann)[..] else {
        panic!("not asked")
    };
    w.vote(ann, request, Answer::Approve, Scope::Session);
    w.call(bot, "ask-2", 1, "send", TO_X);
    assert_eq!(w.asked(ann).len(), 1, "a question stays open");
    w.call(bot, "s", 3, "log", "{}");
    w
}

#[test]
fn every_session_of_the_copy_counts_as_having_seen_all_is_closed_and_keeps_no_approval() {
    for again in [false, true] {
        let mut w = busy();
        let admin = w.connect("admin", 0);
        assert_eq!(shown(&mut w, admin, "ask-1"), (Label::BOTTOM, false, 1));
        w.restore_copy(w.records.len());
        if again {
            w.restart(w.records.len());
        }
        let admin = w.connect("admin", 0);
        for name in ["s", "ask-1", "ask-2"] {
            assert_eq!(
                shown(&mut w, admin, name),
                (Label::TOP, true, 0),
                "{name}, restarted: {again}"
            );
        }
        let usage = w.engine.usage(&"bot".try_into().unwrap());
        assert_eq!(
            (usage.sessions, usage.closed_sessions, usage.approvals),
            (0, 3, 0)
        );
        assert_eq!((usage.in_flight, usage.waiting_bytes), (0, 0));
        assert_eq!(usage.stored_bytes, 0);
    }
}

#[test]
fn no_call_of_a_session_of_the_copy_runs_again_whatever_its_number() {
    for again in [false, true] {
        let mut w = busy();
        w.restore_copy(w.records.len());
        if again {
            w.restart(w.records.len());
        }
        let (bot, files) = (w.connect("bot", 1), w.plain("files", 2));
        for call in [2, 3, 4, u64::MAX] {
            let id = w.call(bot, "s", call, "log", "{}");
            is_unknown(&w.answer(bot, id));
        }
        assert_eq!(w.requests(files), []);
    }
}

#[test]
fn a_session_whose_last_number_was_used_is_not_told_that_it_is_of_a_copy() {
    let mut w = World::new();
    let (bot, files) = (w.connect("bot", 1), w.plain("files", 2));
    read(&mut w, bot, files, "s", u64::MAX, DataClass::Public);
    // The answer is kept no longer.
    w.pass(25 * 60 * 60 * 1000);
    let id = w.call(bot, "s", 1, "log", "{}");
    match w.answer(bot, id) {
        ToolResponse::Failed { message } => {
            assert!(message.contains("no longer kept"), "{message}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_pending_approval_of_the_copy_is_superseded_and_a_late_yes_lets_nothing_through() {
    let mut w = busy();
    let asked: Vec<_> = w.records.iter().filter_map(asked_in).collect();
    w.restore_copy(w.records.len());
    let superseded = w.records.iter().filter(|record| {
        matches!(record, Record::Settled { outcome, .. } if *outcome == Outcome::Superseded)
    });
    assert_eq!(superseded.count(), 1);
    let (files, ann) = (w.plain("files", 2), w.connect("ann", 3));
    let open = asked.last().unwrap().clone();
    w.vote(ann, &open, Answer::Approve, Scope::Session);
    w.connect("bot", 1);
    assert_eq!(w.requests(files), []);
}

fn asked_in(record: &Record) -> Option<proto::ApprovalRequest> {
    match record {
        Record::Asked { request, .. } => Some(request.clone()),
        _ => None,
    }
}

#[test]
fn a_session_that_the_copy_does_not_know_begins_at_secret_and_untrusted() {
    for again in [false, true] {
        let mut w = busy();
        w.restore_copy(w.records.len());
        if again {
            w.restart(w.records.len());
        }
        let (bot, files, admin) = (
            w.connect("bot", 1),
            w.plain("files", 2),
            w.connect("admin", 0),
        );
        let id = w.call(bot, "new", 1, "send", TO_X);
        assert_eq!(w.answer(bot, id), TAINTED);
        assert_eq!(w.requests(files), []);
        w.call(bot, "new", 2, "log", "{}");
        assert_eq!(shown(&mut w, admin, "new").0, Label::TOP);
    }
}

#[test]
fn a_role_that_had_no_session_in_the_copy_begins_there_too_and_one_of_later_does_not() {
    let mut w = World::new();
    w.restore_copy(0);
    let told = w.records.iter().find_map(|record| match record {
        Record::Restored {
            uid, reason, roles, ..
        } => Some((*uid, reason.as_str(), roles.clone())),
        _ => None,
    });
    let roles = ["bot", "one"].map(|role| role.try_into().unwrap()).to_vec();
    assert_eq!(told, Some((7, "the disk broke", roles)));
    let late = format!(
        "{}\n[roles.late]\nkind = \"agent\"\nusers = [\"6\"]\nlabel_scope = \"session\"\n",
        crate::world::CONFIG
    );
    crate::steps::reload(&mut w, &late);
    let files = w.plain("files", 2);
    for (role, uid, runs) in [("one", 5, false), ("late", 6, true)] {
        let agent = w.connect(role, uid);
        w.call(agent, "new", 1, "send", TO_X);
        assert_eq!(w.requests(files).len(), usize::from(runs), "{role}");
    }
}

#[test]
fn an_operators_word_on_the_role_lowers_where_its_sessions_begin_and_only_it_does() {
    let mut w = busy();
    w.restore_copy(w.records.len());
    let admin = w.connect("admin", 0);
    lower(&mut w, admin, DataClass::Internal);
    for again in [false, true] {
        if again {
            w.restart(w.records.len());
        }
        let (bot, files, admin) = (
            w.connect("bot", 1),
            w.plain("files", 2),
            w.connect("admin", 0),
        );
        let name = if again { "later" } else { "new" };
        w.call(bot, name, 1, "send", TO_X);
        assert_eq!(w.requests(files).len(), 1, "restarted: {again}");
        let internal = Label {
            class: DataClass::Internal,
            untrusted: false,
        };
        assert_eq!(shown(&mut w, admin, name).0, internal);
        // The role sees a secret again: that is no reason to begin there.
        read(&mut w, bot, files, name, 2, DataClass::Secret);
        assert_eq!(
            shown(&mut w, admin, "s").0,
            Label::TOP,
            "a session that is known is lowered by its own name only"
        );
    }
}

#[test]
fn a_role_that_the_configuration_had_no_more_begins_with_all_seen_when_it_is_back() {
    let one = "[roles.one]\nkind = \"agent\"\nusers = [\"5\"]\nlabel_scope = \"role\"\n";
    assert!(CONFIG.contains(one));
    let mut w = World::new();
    let (agent, files) = (w.plain("one", 5), w.plain("files", 2));
    read(&mut w, agent, files, "s", 1, DataClass::Public);
    reload(&mut w, &CONFIG.replace(one, ""));
    w.restore_copy(w.records.len());
    reload(&mut w, CONFIG);
    let agent = w.plain("one", 5);
    let id = w.call(agent, "new", 1, "send", TO_X);
    assert_eq!(w.answer(agent, id), TAINTED);
}

#[test]
fn a_snapshot_of_any_moment_and_the_records_after_it_are_what_all_records_are() {
    let mut w = busy();
    w.restore_copy(w.records.len());
    let (bot, admin) = (w.connect("bot", 1), w.connect("admin", 0));
    w.call(bot, "new", 1, "log", "{}");
    lower(&mut w, admin, DataClass::Internal);
    w.call(bot, "newer", 1, "log", "{}");
    let config = w.engine.config().clone();
    let now = Timestamp::from_millis(w.now).unwrap();
    let restored = |parts, records: &[Record]| {
        let mut effects = Effects::new();
        let engine = Engine::restore(
            config.clone(),
            now,
            parts,
            records.to_vec(),
            None,
            &mut effects,
        );
        let mut engine = engine.unwrap();
        engine.handle_timeout(now, &mut effects);
        format!("{effects:?} {engine:?}")
    };
    let all = restored(Vec::new(), &w.records);
    for at in 0..=w.records.len() {
        let (old, rest) = w.records.split_at(at);
        let parts = Engine::condense(config.clone(), [], old.to_vec());
        assert!(restored(parts, rest) == all, "at record {at}");
    }
}

#[test]
fn a_copy_that_is_put_back_a_second_time_says_the_same() {
    let mut w = busy();
    w.restore_copy(w.records.len());
    w.restore_copy(w.records.len());
    let admin = w.connect("admin", 0);
    assert_eq!(shown(&mut w, admin, "s"), (Label::TOP, true, 0));
    let call = CallKey {
        session: key("s"),
        call: CallId(2),
    };
    assert!(
        !w.records.iter().any(
            |record| matches!(record, Record::Evicted { call: evicted, .. } if *evicted == call)
        ),
        "what the record of it says is not said call by call"
    );
}
