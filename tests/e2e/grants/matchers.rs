//! The page's table of matchers: each meets each value that stands beside it, in an allow and in a deny.

use serde_json::Value;

use super::page;
use crate::harness::{Peer, Place};

const MATCHERS: &str = r#"
[broker]
runtime_dir = "RUNTIME"
state_dir = "STATE"
allow_shared_uid = true

[roles.bot]
kind = "agent"
users = ["SELF"]
label_scope = "session"

[roles.echo]
kind = "runner"
users = ["SELF"]
"#;

/// What an allow and a deny with a matcher make of arguments.
#[derive(Debug, PartialEq)]
enum Fit {
    Matches,
    Differs,
    Unclear,
}

#[test]
fn each_matcher_takes_each_value_of_the_table_as_its_column_says() {
    let rows = page::code_rows(page::section("Matchers"));
    let place = rows
        .iter()
        .enumerate()
        .fold(Place::with(MATCHERS), |place, (row, cells)| {
            place.and(&rules_of(row, cells[0][0]))
        });
    let daemon = place.start();
    let _echo = daemon.echo();
    let mut agent = daemon.join("bot");
    let mut tried = 0;
    let mut calls = 0..;
    let mut fit = |row: usize, arguments: &str| {
        let mut call = |tool: &str| called(&mut agent, calls.next(), row, tool, arguments);
        match (call("may"), call("must-not")) {
            (true, false) => Fit::Matches,
            (false, true) => Fit::Differs,
            (false, false) => Fit::Unclear,
            (true, true) => panic!("a deny does not apply to what an allow permits"),
        }
    };
    for (row, cells) in rows.iter().enumerate() {
        let matcher = cells[0][0];
        for (column, expected) in [(1, Fit::Matches), (2, Fit::Differs), (3, Fit::Unclear)] {
            for value in &cells[column] {
                let seen = fit(row, &format!("{{\"x\":{value}}}"));
                assert_eq!(seen, expected, "{matcher} {value}");
                tried += 1;
            }
        }
        let absent = match matcher.contains("optional") {
            true => Fit::Matches,
            false => Fit::Differs,
        };
        assert_eq!(fit(row, "{}"), absent, "{matcher}, absent");
    }
    assert!(tried > 40, "the table was not read: {tried} values");
}

/// Two tools for a matcher: one that it lets through, one that it keeps from running.
fn rules_of(row: usize, matcher: &str) -> String {
    let tool = |tool: &str| {
        format!(
            "[[tool]]\nname = \"{tool}.{row}\"\nrunner = \"echo\"\nclass = \"public\"\n\
             untrusted = false\neffects = \"read\"\negress = false\n"
        )
    };
    let grant = |id: &str, tool: &str, effect: &str, condition: &str| {
        format!(
            "[[grant]]\nid = \"{id}.{row}\"\nroles = [\"bot\"]\nsessions = [\"*\"]\n\
             tools = [\"{tool}.{row}\"]\neffect = \"{effect}\"\n{condition}\n"
        )
    };
    let condition = format!("where = {{ \"/x\" = {matcher} }}");
    [
        tool("may"),
        tool("must-not"),
        grant("let", "may", "allow", &condition),
        grant("else", "must-not", "allow", ""),
        grant("keep", "must-not", "deny", &condition),
    ]
    .concat()
}

/// Whether the call ran.
#[track_caller]
fn called(agent: &mut Peer, call: Option<u64>, row: usize, tool: &str, arguments: &str) -> bool {
    let call = call.expect("numbers do not end");
    let answer: Value = agent.called("s", call, &format!("{tool}.{row}"), arguments);
    match (answer["status"].as_str(), answer["reason"].as_str()) {
        (Some("result"), _) => true,
        (_, Some("no_grant")) if tool == "may" => false,
        (_, Some("denied_by_grant")) if tool == "must-not" => false,
        _ => panic!("{tool} {row} {arguments}: {answer}"),
    }
}
