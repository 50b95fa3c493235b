//! Requests over a role's rate: all are told, and a minute of them is one record.

use engine::{ConnId, Event, Record};
use proto::{Control, Message};

use crate::world::{CONFIG, World};

const MINUTE: u64 = 60_000;

/// A role that may ask twice a second.
fn slow() -> World {
    let text = CONFIG.replace("requests_per_second = 1000", "requests_per_second = 2");
    assert_ne!(text, CONFIG);
    World::with(&text)
}

/// So many requests at once; the first two are within the rate.
fn flood(w: &mut World, bot: ConnId, count: u64) {
    let list = || {
        Message::ListTools(proto::ListTools {
            session: crate::world::session("s"),
        })
    };
    for _ in 0..count {
        w.say(bot, list());
    }
}

/// Role, seconds from `since` to `at`, count.
fn refused(w: &World) -> Vec<(String, u64, u64)> {
    let counted = w.records.iter().filter_map(|record| match record {
        Record::Refused {
            at,
            role,
            since,
            count,
        } => Some((role.to_string(), at.since(*since) / 1000, *count)),
        _ => None,
    });
    counted.collect()
}

#[test]
fn a_minute_of_requests_over_the_rate_is_one_record() {
    let mut w = slow();
    let bot = w.plain("bot", 1);
    flood(&mut w, bot, 1002);
    assert_eq!(w.heard(bot).len(), 1002, "each is answered at once");
    w.pass(MINUTE - 1);
    assert!(refused(&w).is_empty());
    w.pass(1);
    assert_eq!(refused(&w), [("bot".to_owned(), 60, 1000)]);
    w.pass(10 * MINUTE);
    assert_eq!(refused(&w).len(), 1, "none where nothing was refused");
}

#[test]
fn a_flood_that_lasts_is_one_record_a_minute_for_each_role_and_loses_none() {
    let mut w = slow();
    let (bot, files) = (w.plain("bot", 1), w.plain("files", 2));
    let mut over = 0;
    for _ in 0..5 * 60 {
        w.heard(bot);
        flood(&mut w, bot, 10);
        let told = w.heard(bot);
        over += told
            .iter()
            .filter(
                |e| matches!(&e.msg, Message::Error(e) if e.detail == "busy: requests_per_second"),
            )
            .count() as u64;
        w.pass(1000);
    }
    w.pass(MINUTE);
    let counted = refused(&w);
    assert_eq!(counted.len(), 5);
    assert_eq!(counted.iter().map(|(_, _, count)| count).sum::<u64>(), over);
    assert!(counted.iter().all(|(role, ..)| role == "bot"));
    w.heard(files);
}

#[test]
fn a_drain_records_what_was_counted_until_it_began_and_until_it_ended() {
    let mut w = slow();
    let bot = w.plain("bot", 1);
    let admin = w.connect("admin", 0);
    w.call(bot, "s", 1, "log", "{}");
    flood(&mut w, bot, 6);
    w.say(admin, Message::Control(Control::Drain {}));
    assert_eq!(refused(&w), [("bot".to_owned(), 0, 5)]);
    flood(&mut w, bot, 3);
    w.pass(MINUTE);
    assert!(w.drained);
    assert_eq!(refused(&w).len(), 2);
    assert_eq!(refused(&w)[1].2, 3);
}

#[test]
fn what_was_counted_is_a_thing_of_the_record_alone() {
    let mut w = slow();
    let bot = w.plain("bot", 1);
    flood(&mut w, bot, 10);
    w.pass(MINUTE);
    assert_eq!(refused(&w).len(), 1);
    let kept = w.records.len();
    w.restart(kept);
    w.pass(10 * MINUTE);
    assert_eq!(refused(&w).len(), 1);
    w.give(Event::Drain);
    assert_eq!(refused(&w).len(), 1);
}
