//! What an ask carries: what it pins, what it would spend, what it hashes.

use policy::decision::{Ask, AskingGrant, Decision, Pins};
use policy::{Permit, Ruleset};

use crate::fixture::{Asked, UNTRUSTED, load};

fn rules(grants: &str) -> Ruleset {
    load(&format!(
        r#"
approvers = ["eve"]
[roles]
bot = {{ kind = "agent", label_scope = "session" }}
run = {{ kind = "runner" }}
eve = {{ kind = "approver", max_class = "secret", users = ["eve"] }}
adam = {{ kind = "approver", max_class = "secret", users = ["adam"] }}
[[tool]]
name = "send"
runner = "run"
class = "public"
{grants}"#
    ))
    .ruleset
}

fn grant(id: &str, rest: &str) -> String {
    format!(
        "[[grant]]\nid = \"{id}\"\nroles = [\"*\"]\nsessions = [\"*\"]\ntools = [\"send\"]\n{rest}\n"
    )
}

fn asked(rules: &Ruleset, arguments: &str) -> Ask {
    let decision = Asked::label(UNTRUSTED).decide(rules, "send", arguments);
    let Decision::Ask(ask) = decision else {
        panic!("{decision:?}");
    };
    ask
}

fn pins(pointers: &[&str], arguments: &str) -> Option<Pins> {
    let asking = AskingGrant {
        pointers: pointers.iter().map(|p| (*p).to_owned()).collect(),
        ..asked(&rules(&grant("a", "effect = \"ask\"")), "{}")
            .grants
            .remove(0)
    };
    let permit = Permit {
        grant: asking.id.clone(),
        spend: Vec::new(),
    };
    Ask {
        grants: vec![asking],
        permit,
    }
    .pins(arguments)
}

#[test]
fn pins_are_equal_where_the_values_are_and_absent_equals_absent() {
    let at = |arguments| pins(&["/a", "/b"], arguments).unwrap();
    let one = at(r#"{"a":{"x":1,"y":"é"},"c":1}"#);
    assert_eq!(one, at(r#"{ "c":2, "a":{"y":"\u00e9","x":1} }"#));
    assert_ne!(one, at(r#"{"a":{"x":1,"y":"é"},"b":null}"#));
    assert_ne!(one, at(r#"{"a":{"x":2,"y":"é"}}"#));
    assert_ne!(one, at(r#"{"a":{"x":"1","y":"é"}}"#));
    assert_eq!(pins(&["/a"], "{"), None);
    assert_eq!(pins(&["/a"], "[]"), None);
}

#[test]
fn all_arguments_are_pinned_by_the_empty_pointer() {
    let at = |arguments| pins(&[""], arguments).unwrap();
    assert_eq!(at(r#"{"a":1,"b":2}"#), at(r#"{"b":2, "a":1}"#));
    assert_ne!(at(r#"{"a":1}"#), at(r#"{"a":1,"b":2}"#));
}

#[test]
fn numbers_that_a_double_rounds_are_pinned_by_their_text() {
    let at = |arguments| pins(&["/a"], arguments).unwrap();
    assert_ne!(at(r#"{"a":1.00000000000000000001}"#), at(r#"{"a":1.0}"#));
    assert_ne!(
        at(r#"{"a":1e22}"#),
        at(r#"{"a":10000000000000000000001e0}"#)
    );
    assert_eq!(at(r#"{"a":1.5}"#), at(r#"{"a":1.5}"#));
    assert_ne!(
        at(r#"{"a":1.5}"#),
        at(r#"{"a":1.5,"b":1}"#),
        "not known to be equal"
    );
    assert_eq!(
        at(r#"{"a":1,"b":1.5}"#),
        at(r#"{"a":1,"b":2.5}"#),
        "not pinned"
    );
}

#[test]
fn a_grant_pins_its_where_only_if_that_speaks_for_the_whole_call() {
    let pointers = |terms: &str, arguments: &str| {
        let permits = grant("all", "effect = \"allow\"\nuntrusted = \"allow\"");
        let ask = asked(&rules(&(grant("a", terms) + &permits)), arguments);
        ask.grants[0].pointers.clone()
    };
    let a = "effect = \"ask\"\nwhere = { \"/a\" = { equals = 1 } }";
    assert_eq!(pointers(a, r#"{"a":1}"#), ["/a"]);
    assert_eq!(
        pointers(a, r#"{"a":"x"}"#),
        [""],
        "it applies without permitting"
    );
    assert_eq!(
        pointers(a, r#"{"a":1,"b":2}"#),
        [""],
        "its where does not name all"
    );
    assert_eq!(pointers(&format!("{a}\nonly = false"), r#"{"a":1}"#), [""]);
    assert_eq!(pointers("effect = \"ask\"", "{}"), [""]);
}

#[test]
fn everyone_who_asks_is_named_in_file_order() {
    let rules = rules(
        &(grant("z", "effect = \"allow\"\nmax_uses = 5")
            + &grant(
                "y",
                "effect = \"ask\"\napprovers = [\"adam\"]\napproval_ttl = \"1m\"",
            )
            + &grant("free", "effect = \"allow\"\nuntrusted = \"allow\"")
            + &grant("x", "effect = \"allow\"\nmax_uses = 7")
            + &grant(
                "none",
                "effect = \"allow\"\nuntrusted = \"deny\"\nmax_uses = 1",
            )),
    );
    let ask = asked(&rules, "{}");
    let named: Vec<_> = ask
        .grants
        .iter()
        .map(|g| (g.id.as_str(), g.approvers[0].as_str(), g.approval_ttl))
        .collect();
    assert_eq!(
        named,
        [
            ("z", "eve", 600_000),
            ("y", "adam", 60_000),
            ("x", "eve", 600_000)
        ]
    );
    assert_eq!(ask.permit.grant.as_str(), "z", "the first that permits");
    let spent: Vec<_> = ask.permit.spend.iter().map(|id| id.as_str()).collect();
    assert_eq!(spent, ["z", "x"], "every allow that asks and permits");
}

#[test]
fn a_permit_names_the_first_allow_without_max_uses() {
    let rules = rules(
        &(grant("counted", "effect = \"allow\"\nmax_uses = 5")
            + &grant("free", "effect = \"allow\"")
            + &grant("later", "effect = \"allow\"")),
    );
    let Decision::Permit(permit) = Asked::default().decide(&rules, "send", "{}") else {
        panic!("not permitted");
    };
    assert_eq!((permit.grant.as_str(), permit.spend.len()), ("free", 0));
}

#[test]
fn a_person_is_not_shown_arguments_that_do_not_parse() {
    let rules = rules(&grant("a", "effect = \"ask\""));
    assert_eq!(Asked::default().told(&rules, "send", "{"), "no_grant");
    let rules = self::rules(&grant("a", "effect = \"allow\""));
    assert_eq!(
        Asked::default().told(&rules, "send", "{"),
        "permit a",
        "nobody reads them"
    );
}

#[test]
fn the_hash_changes_with_anything_that_the_grant_says() {
    let hash = |terms: &str| {
        asked(
            &rules(&grant("a", &format!("effect = \"ask\"\n{terms}"))),
            r#"{"p":"/s/a"}"#,
        )
        .grants[0]
            .hash
    };
    let plain = hash("");
    assert_eq!(plain, hash("quorum = 1"), "a default, stated");
    let mut hashes = vec![plain];
    for terms in [
        "why = \"x\"",
        "approvers = [\"adam\"]",
        "approvers = [\"eve\", \"adam\"]",
        "approvers = [\"eve\", \"adam\"]\nquorum = 2",
        "approval_ttl = \"1m\"",
        "max_class = \"secret\"",
        "above_max = \"ask\"",
        "untrusted = \"ask\"",
        "standing_ttl = \"1h\"\nstanding_uses = 1",
        "standing_ttl = \"1h\"\nstanding_uses = 2",
        "where = { \"/p\" = { under = \"/s\" } }",
        "where = { \"/p\" = { under = \"/s/a\" } }",
        "where = { \"/p\" = { glob = \"/s/*\" } }",
        "where = { \"/p\" = { glob = \"/s/*\" } }\nonly = false",
        "unless = { \"/p\" = { under = \"/t\" } }",
    ] {
        hashes.push(hash(terms));
    }
    let count = hashes.len();
    hashes.sort();
    hashes.dedup();
    assert_eq!(hashes.len(), count);
}
