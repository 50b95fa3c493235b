//! What waits, for whom, and how much of it.

use engine::{Effect, Effects, Event, Record};
use proto::{
    CallId, Cancel, Control, DataClass, Envelope, Message, Offer, Timestamp, ToolResponse,
};

use crate::steps::{close, spec};
use crate::world::{CONFIG, World, session};

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
fn a_request_that_no_outbox_takes_waits_for_its_turn_until_one_drains() {
    let large = CONFIG
        .replace(r#"max_frame = "4KiB""#, r#"max_frame = "8MiB""#)
        .replace(r#"waiting_bytes = "16KiB""#, r#"waiting_bytes = "64MiB""#);
    let mut w = World::with(&large);
    let (bot, files) = (w.plain("bot", 1), w.plain("files", 2));
    w.drains = false;
    let arguments = format!(r#"{{"x":"{}"}}"#, "x".repeat(900_000));
    w.call(bot, "s", 1, "log", &arguments);
    w.call(bot, "s", 2, "log", &arguments);
    assert_eq!(w.requests(files).len(), 1);
    w.drains = true;
    w.drain_outboxes();
    assert_eq!(w.requests(files).len(), 1);
}
