//! Grants for past calls: what is typed, what is counted, and what is printed.

use clap::Parser as _;
use client::proto::DenyReason;
use ctl::cli::{Cli, Command, PastArgs, SeenArgs};
use ctl::past::Past;
use ctl::render;
use ctl::seen::Suggested;
use policy::How;
use store::record::Record;

use crate::past::{CONFIG, all, basis, configured, denied, granted, key};

fn no_grant(call: u64, arguments: &str) -> Record {
    denied(call, DenyReason::NoGrant, basis(Some(arguments), 0))
}

/// What is suggested for these calls, under the rules at the end; with the untrusted session that they are in, or
/// without.
fn suggested(records: Vec<Record>, named: bool) -> Suggested {
    let role = key(1).session.role;
    let pasts: Vec<Past> = all(records, &PastArgs::default());
    let rules = pasts.last().unwrap().rules().unwrap().clone();
    let how = How {
        named: named.then(|| key(1).session.session).into_iter().collect(),
        any_session: false,
    };
    let mut suggested = Suggested::new(&role, &rules, &pasts, &how).unwrap();
    for past in &pasts {
        suggested.follow(past);
    }
    suggested
}

fn lived() -> Vec<Record> {
    vec![
        configured(Some(CONFIG)),
        no_grant(1, "{\"path\":\"/a\"}"),
        no_grant(2, "{\"path\":\"\u{202e}b\\u001b[2J\"}"),
        no_grant(3, "{\"path\":null}"),
        denied(4, DenyReason::NoGrant, basis(None, 0)),
    ]
}

#[test]
fn what_is_printed_can_be_appended_to_a_file_without_a_last_line_end() {
    let shown = render::seen::all(&suggested(lived(), true));
    assert!(
        shown
            .bytes()
            .all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)),
        "{shown}"
    );
    let text = format!("{}{shown}", CONFIG.trim_end());
    policy::Config::parse("c", &text).unwrap_or_else(|faults| panic!("{faults}\n{text}"));
    let again = format!("{text}{}", shown.replace("seen-read-1", "seen-read-2"));
    assert!(policy::Config::parse("c", &again).is_ok(), "{again}");
    insta::assert_snapshot!(shown);
}

#[test]
fn a_program_is_told_the_same() {
    let json = render::seen::json(&suggested(lived(), true));
    insta::assert_snapshot!(serde_json::to_string_pretty(&json).unwrap());
}

#[test]
fn where_there_is_nothing_to_suggest_only_comments_are_printed() {
    let suggested = suggested(lived(), false);
    let shown = render::seen::all(&suggested);
    assert!(
        shown
            .lines()
            .all(|line| line.is_empty() || line.starts_with('#')),
        "{shown}"
    );
    assert!(shown.contains("of them 0 would change"), "{shown}");
    assert_eq!(render::seen::json(&suggested)["status"], "nothing");
}

#[test]
fn the_rules_that_count_are_those_at_the_end() {
    let records = vec![
        configured(Some(CONFIG)),
        no_grant(1, "{}"),
        granted(),
        no_grant(2, "{}"),
    ];
    let json = render::seen::json(&suggested(records, true));
    assert_eq!(json["left"][0]["why"], "permitted");
    assert_eq!(json["left"][0]["count"], 2, "{json}");
}

#[test]
fn a_call_of_the_same_arguments_at_another_time_is_told_as_a_change() {
    let pasts = all(
        vec![
            configured(Some(CONFIG)),
            no_grant(1, "{}"),
            no_grant(2, "{}"),
        ],
        &PastArgs::default(),
    );
    let rules = pasts[0].rules().unwrap().clone();
    let how = How {
        named: [key(1).session.session].into(),
        any_session: false,
    };
    let mut suggested = Suggested::new(&key(1).session.role, &rules, &pasts[1..], &how).unwrap();
    pasts.iter().for_each(|past| suggested.follow(past));
    assert_eq!(
        (suggested.others.judged, suggested.others.changed()),
        (1, 1)
    );
    let shown = render::seen::all(&suggested);
    assert!(
        shown.contains("\n# 1 times: deny (no_grant) would be permit\n"),
        "{shown}"
    );
}

#[test]
fn a_tool_that_is_not_declared_is_counted() {
    let other = CONFIG.replace("name = \"read\"", "name = \"other\"");
    let records = vec![
        configured(Some(CONFIG)),
        no_grant(1, "{}"),
        configured(Some(&other)),
        no_grant(2, "{}"),
    ];
    let suggested = suggested(records, true);
    let shown = render::seen::all(&suggested);
    assert!(
        shown.contains("#   2: read: no grant can be written"),
        "{shown}"
    );
}

fn typed(line: &str) -> Result<SeenArgs, clap::Error> {
    let cli = Cli::try_parse_from(line.split(' '))?;
    match cli.command {
        Command::Suggest(args) => Ok(args.seen),
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_call_or_the_past_is_typed_and_not_both() {
    let args =
        typed("rolebroker suggest bot --past --session a --session b --tool t --any-session");
    let args = args.unwrap();
    assert_eq!(
        (args.past, args.sessions.len(), args.any_session),
        (true, 2, true)
    );
    assert!(!typed("rolebroker suggest bot s 1 --record").unwrap().past);
    for wrong in [
        "rolebroker suggest bot",
        "rolebroker suggest bot s",
        "rolebroker suggest bot s 1 --past",
        "rolebroker suggest bot s --past",
        "rolebroker suggest bot --past --record",
        "rolebroker suggest bot s 1 --session t",
        "rolebroker suggest bot s 1 --tool t",
        "rolebroker suggest bot s 1 --since 2h",
        "rolebroker suggest bot s 1 --until 2h",
        "rolebroker suggest bot s 1 --config f",
        "rolebroker suggest bot s 1 --any-session",
    ] {
        assert!(typed(wrong).is_err(), "{wrong}");
    }
}
