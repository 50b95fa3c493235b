//! Calls: routed, answered, repeated, lost, cancelled, cut.

use proto::{
    CallId, Cancel, Control, ControlReply, DataClass, DenyReason, Envelope, ErrorCode, FailureCode,
    Message, Progress, ToolResponse, WireError,
};

use crate::world::{World, session};

fn failed(response: &ToolResponse) -> Option<FailureCode> {
    match response {
        ToolResponse::Failed { message } => FailureCode::of_message(message),
        _ => None,
    }
}

fn content(response: &ToolResponse) -> &str {
    match response {
        ToolResponse::Result { content, .. } => content,
        other => panic!("not a result: {other:?}"),
    }
}

#[test]
fn a_permitted_call_goes_to_a_runner_and_its_result_comes_back() {
    let mut w = World::new();
    let (bot, files) = (w.plain("bot", 1), w.plain("files", 2));
    let id = w.call(bot, "s", 1, "read", r#"{"path":"/a"}"#);
    let [(wire, 1)] = w.requests(files)[..] else {
        panic!("no request")
    };
    w.result(files, wire, "hello", DataClass::Internal);
    assert_eq!(content(&w.answer(bot, id)), "hello");
    let usage = w.engine.usage(&"bot".try_into().unwrap());
    assert_eq!((usage.in_flight, usage.waiting_bytes), (0, 0));
}

#[test]
fn a_denied_call_makes_no_session_and_says_why() {
    let mut w = World::new();
    let bot = w.plain("bot", 1);
    for (call, tool, args, reason) in [
        (1, "nothing", "{}", DenyReason::NoGrant),
        (
            2,
            "read",
            r#"{"path":"/a/b.pem"}"#,
            DenyReason::DeniedByGrant,
        ),
    ] {
        let id = w.call(bot, "s", call, tool, args);
        assert_eq!(w.answer(bot, id), ToolResponse::Denied { reason });
    }
    assert_eq!(w.engine.usage(&"bot".try_into().unwrap()).sessions, 0);
}

#[test]
fn a_repeat_gets_the_stored_bytes_and_other_content_under_its_number_an_error() {
    let mut w = World::new();
    let (bot, files) = (w.plain("bot", 1), w.plain("files", 2));
    let id = w.call(bot, "s", 1, "log", "{}");
    let [(wire, _)] = w.requests(files)[..] else {
        panic!("no request")
    };
    w.result(files, wire, "once", DataClass::Public);
    let first = w.answer(bot, id);
    let id = w.call(bot, "s", 1, "log", "{}");
    assert_eq!(w.answer(bot, id), first);
    assert!(w.requests(files).is_empty());
    let id = w.call(bot, "s", 1, "log", r#"{"x":1}"#);
    let heard = w.heard(bot);
    assert!(
        matches!(&heard[..], [Envelope { id: told, msg: Message::Error(WireError { code: ErrorCode::BadMessage, .. }), .. }] if *told == id),
        "{heard:?}"
    );
}

#[test]
fn many_repeats_wait_for_one_run() {
    let mut w = World::new();
    let files = w.plain("files", 2);
    let bots: Vec<_> = (0..5).map(|_| w.plain("bot", 1)).collect();
    let ids: Vec<_> = bots
        .iter()
        .map(|bot| (*bot, w.call(*bot, "s", 1, "log", "{}")))
        .collect();
    let [(wire, _)] = w.requests(files)[..] else {
        panic!("not one request")
    };
    w.result(files, wire, "x", DataClass::Public);
    for (bot, id) in ids {
        assert_eq!(content(&w.answer(bot, id)), "x");
    }
}

#[test]
fn no_runner_within_runner_wait_is_no_runner_and_may_be_asked_again() {
    let mut w = World::new();
    let bot = w.plain("bot", 1);
    let id = w.call(bot, "s", 1, "log", "{}");
    w.pass(5000);
    assert_eq!(failed(&w.answer(bot, id)), Some(FailureCode::NoRunner));
    let files = w.plain("files", 2);
    let id = w.call(bot, "s", 1, "log", "{}");
    let [(wire, _)] = w.requests(files)[..] else {
        panic!("no request")
    };
    w.result(files, wire, "x", DataClass::Public);
    assert_eq!(content(&w.answer(bot, id)), "x");
}

#[test]
fn a_lost_runner_leaves_once_unknown_and_reruns_the_rest_elsewhere_once() {
    let mut w = World::new();
    let bot = w.plain("bot", 1);
    let (first, second) = (w.plain("files", 2), w.plain("files", 2));
    let once = w.call(bot, "s", 1, "log", "{}");
    let put = w.call(bot, "s", 2, "put", "{}");
    let (a, b) = (w.requests(first), w.requests(second));
    assert_eq!((a.len(), b.len()), (1, 1), "the least loaded comes first");
    w.give(engine::Event::Closed { conn: first });
    assert_eq!(
        failed(&w.answer(bot, once)),
        Some(FailureCode::UnknownOutcome)
    );
    w.give(engine::Event::Closed { conn: second });
    let third = w.plain("files", 2);
    let again = w.requests(third);
    assert_eq!(again.iter().map(|(_, call)| *call).collect::<Vec<_>>(), [2]);
    w.give(engine::Event::Closed { conn: third });
    assert_eq!(
        failed(&w.answer(bot, put)),
        Some(FailureCode::UnknownOutcome)
    );
}

#[test]
fn silence_is_timed_out_or_unknown_and_the_late_answer_is_not_released() {
    let mut w = World::new();
    let (bot, files) = (w.connect("bot", 1), w.connect("files", 2));
    let (log, read) = (
        w.call(bot, "s", 1, "log", "{}"),
        w.call(bot, "s", 2, "read", "{}"),
    );
    let wires = w.requests(files);
    w.pass(60_000);
    let heard = w.heard(bot);
    for (id, code) in [(log, "unknown_outcome: "), (read, "timed_out: ")] {
        assert!(
            heard.iter().any(|e| e.id == id
                && matches!(&e.msg, Message::ToolResponse(ToolResponse::Failed { message }) if message.starts_with(code))),
            "{code}: {heard:?}"
        );
    }
    for (wire, _) in wires {
        w.result(files, wire, "late", DataClass::Secret);
    }
    assert!(w.heard(bot).is_empty());
    assert!(
        w.records
            .iter()
            .any(|r| matches!(r, engine::Record::Late { .. }))
    );
}

#[test]
fn progress_puts_the_deadline_off_up_to_call_limit() {
    let mut w = World::new();
    let (bot, files) = (w.connect("bot", 1), w.connect("files", 2));
    let id = w.call(bot, "s", 1, "read", "{}");
    let [(wire, _)] = w.requests(files)[..] else {
        panic!("no request")
    };
    let mut told = 0;
    for minute in 0..61 {
        let note = "on it".to_owned();
        let progress = Message::Progress(Progress {
            done: minute,
            total: 0,
            note,
        });
        w.send(files, Envelope::more(wire, progress));
        w.pass(59_000);
        told += w
            .heard(bot)
            .iter()
            .filter(|e| matches!(e.msg, Message::Progress(_)))
            .count();
    }
    assert!(told > 50, "{told}");
    w.pass(60_000);
    let repeat = w.call(bot, "s", 1, "read", "{}");
    assert_eq!(failed(&w.answer(bot, repeat)), Some(FailureCode::TimedOut));
    let _ = id;
}

#[test]
fn cancel_before_a_dispatch_is_cancelled_and_after_it_the_runners_word() {
    let mut w = World::new();
    let (bot, files) = (w.connect("bot", 1), w.connect("files", 2));
    let id = w.call(bot, "s", 1, "log", "{}");
    let [(wire, _)] = w.requests(files)[..] else {
        panic!("no request")
    };
    let cancel = |call| {
        Message::Cancel(Cancel {
            session: session("s"),
            call: CallId(call),
        })
    };
    let asked = w.say(bot, cancel(1));
    assert!(
        w.heard(files)
            .iter()
            .any(|e| e.id == wire && matches!(e.msg, Message::Cancel(_)))
    );
    w.result(files, wire, "done anyway", DataClass::Public);
    let heard = w.heard(bot);
    assert_eq!(
        heard.iter().filter(|e| e.id == id || e.id == asked).count(),
        2,
        "{heard:?}"
    );
    w.call(bot, "s", 2, "log", "{}");
    w.requests(files);
    w.say(bot, cancel(2));
    w.pass(5000);
    let repeat = w.call(bot, "s", 2, "log", "{}");
    w.heard(files);
    let last = w.heard(bot).into_iter().find(|e| e.id == repeat).unwrap();
    assert!(
        matches!(&last.msg, Message::ToolResponse(r) if failed(r) == Some(FailureCode::UnknownOutcome))
    );
    let none = w.say(bot, cancel(99));
    assert!(
        matches!(&w.heard(bot)[..], [Envelope { id, msg: Message::Error(_), .. }] if *id == none)
    );
}

#[test]
fn parts_join_to_the_answer_and_a_repeat_gets_them_joined() {
    let mut w = World::new();
    let (bot, files) = (w.connect("bot", 1), w.connect("files", 2));
    let id = w.call(bot, "s", 1, "log", "{}");
    let [(wire, _)] = w.requests(files)[..] else {
        panic!("no request")
    };
    w.part(files, wire, "one ", DataClass::Public);
    w.part(files, wire, "two ", DataClass::Internal);
    w.result(files, wire, "three", DataClass::Public);
    let heard = w.heard(bot);
    let pieces: Vec<_> = heard
        .iter()
        .filter(|e| e.id == id)
        .map(|e| match &e.msg {
            Message::ToolResponse(r) => content(r),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(pieces, ["one ", "two ", "three"]);
    let id = w.call(bot, "s", 1, "log", "{}");
    let whole = w.answer(bot, id);
    assert_eq!(content(&whole), "one two three");
    assert!(matches!(
        whole,
        ToolResponse::Result {
            class: DataClass::Internal,
            ..
        }
    ));
}

#[test]
fn a_slow_reader_of_parts_gets_the_whole_answer_in_fewer_pieces() {
    let mut w = World::with(
        &crate::world::CONFIG
            .replace(r#"max_frame = "4KiB""#, r#"max_frame = "8MiB""#)
            .replace(r#"stored_bytes = "16KiB""#, r#"stored_bytes = "64MiB""#),
    );
    let (bot, files) = (w.connect("bot", 1), w.connect("files", 2));
    let id = w.call(bot, "s", 1, "log", "{}");
    let [(wire, _)] = w.requests(files)[..] else {
        panic!("no request")
    };
    w.drains = false;
    let piece = "x".repeat(600_000);
    for _ in 0..5 {
        w.part(files, wire, &piece, DataClass::Public);
    }
    w.result(files, wire, "end", DataClass::Public);
    w.drains = true;
    w.drain_outboxes();
    let heard = w.heard(bot);
    let total: usize = heard
        .iter()
        .filter(|e| e.id == id)
        .map(|e| match &e.msg {
            Message::ToolResponse(r) => content(r).len(),
            other => panic!("{other:?}"),
        })
        .sum();
    assert_eq!(total, 3_000_003);
    assert_eq!(heard.iter().filter(|e| e.id == id && e.r#final).count(), 1);
}

#[test]
fn text_over_the_frame_is_cut_and_marked() {
    let mut w = World::new();
    let (bot, files) = (w.connect("bot", 1), w.connect("files", 2));
    let id = w.call(bot, "s", 1, "read", "{}");
    let [(wire, _)] = w.requests(files)[..] else {
        panic!("no request")
    };
    for _ in 0..4 {
        w.part(files, wire, &"ä".repeat(1000), DataClass::Public);
    }
    w.result(files, wire, "end", DataClass::Public);
    let heard = w.heard(bot);
    let last = heard.iter().find(|e| e.id == id && e.r#final).unwrap();
    assert!(
        matches!(
            last.msg,
            Message::ToolResponse(ToolResponse::Result {
                truncated: true,
                ..
            })
        ),
        "{last:?}"
    );
    let repeat = w.call(bot, "s", 1, "read", "{}");
    let whole = w.answer(bot, repeat);
    assert!(content(&whole).len() > 3800 && content(&whole).len() < 4096);
}

#[test]
fn a_runner_cannot_speak_as_the_broker() {
    let mut w = World::new();
    let (bot, files) = (w.plain("bot", 1), w.plain("files", 2));
    for (call, said) in [
        (
            1,
            Message::ToolResponse(ToolResponse::Denied {
                reason: DenyReason::NoGrant,
            }),
        ),
        (
            2,
            Message::ToolResponse(ToolResponse::Failed {
                message: "busy: no".to_owned(),
            }),
        ),
        (
            3,
            Message::Error(WireError {
                code: ErrorCode::Internal,
                detail: "x".to_owned(),
            }),
        ),
    ] {
        let id = w.call(bot, "s", call, "read", "{}");
        let [(wire, _)] = w.requests(files)[..] else {
            panic!("no request")
        };
        w.send(files, Envelope::last(wire, said));
        assert_eq!(failed(&w.answer(bot, id)), Some(FailureCode::RunnerFailed));
    }
}

#[test]
fn a_quota_that_is_full_is_busy_and_says_which() {
    let mut w = World::new();
    let bot = w.plain("bot", 1);
    for call in 0..8 {
        w.call(bot, "s", call, "read", "{}");
    }
    let id = w.call(bot, "s", 8, "read", "{}");
    assert_eq!(
        w.answer(bot, id),
        ToolResponse::Failed {
            message: "busy: in_flight".to_owned()
        }
    );
}

#[test]
fn stored_answers_are_bounded_and_an_evicted_identity_never_runs_again() {
    let mut w = World::new();
    let (bot, files) = (w.plain("bot", 1), w.plain("files", 2));
    for call in 1..=10 {
        let id = w.call(bot, "s", call, "log", "{}");
        let [(wire, _)] = w.requests(files)[..] else {
            panic!("no request")
        };
        w.result(files, wire, &"x".repeat(3000), DataClass::Public);
        w.answer(bot, id);
        assert!(w.engine.usage(&"bot".try_into().unwrap()).stored_bytes <= 16 << 10);
    }
    let id = w.call(bot, "s", 1, "log", "{}");
    assert_eq!(
        failed(&w.answer(bot, id)),
        Some(FailureCode::UnknownOutcome)
    );
    assert!(w.requests(files).is_empty());
}

#[test]
fn a_drain_takes_no_new_calls_and_ends_when_those_in_flight_have() {
    let mut w = World::new();
    let (bot, files) = (w.plain("bot", 1), w.plain("files", 2));
    let admin = w.connect("admin", 0);
    let id = w.call(bot, "s", 1, "log", "{}");
    w.say(admin, Message::Control(Control::Drain {}));
    let late = w.call(bot, "s", 2, "log", "{}");
    assert_eq!(
        failed(&w.answer(bot, late)),
        Some(FailureCode::ShuttingDown)
    );
    assert!(!w.drained);
    let [(wire, _)] = w.requests(files)[..] else {
        panic!("no request")
    };
    w.result(files, wire, "x", DataClass::Public);
    assert_eq!(content(&w.answer(bot, id)), "x");
    assert!(w.drained);
}

#[test]
fn after_a_restart_once_is_unknown_and_answers_are_served_again() {
    let mut w = World::new();
    let (bot, files) = (w.plain("bot", 1), w.plain("files", 2));
    let id = w.call(bot, "s", 1, "log", "{}");
    let [(wire, _)] = w.requests(files)[..] else {
        panic!("no request")
    };
    w.result(files, wire, "kept", DataClass::Secret);
    let first = w.answer(bot, id);
    w.call(bot, "s", 2, "log", "{}");
    w.call(bot, "s", 3, "put", "{}");
    assert_eq!(w.requests(files).len(), 2);
    w.restart(w.records.len());
    let (bot, files) = (w.plain("bot", 1), w.plain("files", 2));
    assert!(
        w.requests(files).is_empty(),
        "reruns happen only on a repeat"
    );
    let id = w.call(bot, "s", 1, "log", "{}");
    assert_eq!(w.answer(bot, id), first);
    let id = w.call(bot, "s", 2, "log", "{}");
    assert_eq!(
        failed(&w.answer(bot, id)),
        Some(FailureCode::UnknownOutcome)
    );
    let id = w.call(bot, "s", 3, "put", "{}");
    let [(wire, 3)] = w.requests(files)[..] else {
        panic!("no request")
    };
    w.result(files, wire, "put", DataClass::Public);
    assert_eq!(content(&w.answer(bot, id)), "put");
    let send = w.call(bot, "s", 4, "send", r#"{"to":"x"}"#);
    let reason = DenyReason::TaintTooHigh;
    assert_eq!(
        w.answer(bot, send),
        ToolResponse::Denied { reason },
        "the label came back too"
    );
}

#[test]
fn a_reply_under_an_id_that_is_not_open_is_dropped_and_counted() {
    let mut w = World::new();
    let (bot, files, admin) = (
        w.plain("bot", 1),
        w.plain("files", 2),
        w.connect("admin", 0),
    );
    w.result(files, 99, "nobody asked", DataClass::Secret);
    assert!(w.heard(files).is_empty() && w.heard(bot).is_empty());
    w.say(admin, Message::Control(Control::Status {}));
    let heard = w.heard(admin);
    let [
        Envelope {
            msg: Message::ControlReply(ControlReply::Status { roles, .. }),
            ..
        },
    ] = &heard[..]
    else {
        panic!("{heard:?}")
    };
    let files = roles.iter().find(|role| role.role.as_str() == "files");
    assert_eq!(files.map(|role| role.dropped_replies), Some(1));
}
