//! The suggested grant permits the call, and nothing that differs from it.

use policy::{Ruleset, Suggestion, suggest};
use proptest::prelude::*;
use proptest::sample::select;
use proto::{Access, DataClass, GrantId, Label, Timestamp};
use serde_json::{Value, json};

use crate::fixture::{Asked, UNTRUSTED, load, seen};

const REAL_CASE: &str = include_str!("../fixtures/real_case.toml");

/// No `approvers` at the top, tools of every kind, and grants that never fit.
const BARE: &str = r#"
[roles]
bot = { kind = "agent", label_scope = "session" }
run = { kind = "runner", offers = [{ tools = ["offered.*"], effects = "read", egress = false }] }
eve = { kind = "approver", max_class = "secret", groups = ["g"] }
[[tool]]
name = "read_file"
runner = "run"
class = "public"
effects = "read"
egress = false
[[tool]]
name = "mail.send"
runner = "run"
class = "internal"
[[grant]]
id = "never"
roles = ["bot"]
sessions = ["*"]
tools = ["*"]
effect = "allow"
untrusted = "deny"
where = { "/never" = { equals = "x" } }
"#;

fn suggested(asked: &Asked, rules: &Ruleset, tool: &str, arguments: &str) -> Suggestion {
    asked.query(rules, tool, arguments, |query| suggest(rules, query))
}

/// Values of which `equals` can hold each leaf.
fn pinnable() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1.0e6..1.0e6).prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        "[\"\\\\\u{0}\u{7f}\u{202e}\n'a/~.]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 1..4).prop_map(Value::from),
            proptest::collection::btree_map(key(), inner, 1..4)
                .prop_map(|fields| fields.into_iter().collect()),
        ]
    })
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof!["[a-c~/0-9]{0,3}", "\\PC{0,4}"]
}

fn arguments() -> impl Strategy<Value = Value> {
    proptest::collection::btree_map(key(), pinnable(), 0..4)
        .prop_map(|fields| fields.into_iter().collect())
}

fn label() -> impl Strategy<Value = Label> {
    (select(&DataClass::ALL), any::<bool>())
        .prop_map(|(class, untrusted)| Label { class, untrusted })
}

/// Every value that differs from `value` in one leaf, or by a leaf more or less.
fn others(value: &Value) -> Vec<Value> {
    let mut all = Vec::new();
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                let with = |put: Value| {
                    let mut fields = fields.clone();
                    fields.insert(key.clone(), put);
                    Value::from(fields)
                };
                all.extend(others(field).into_iter().map(with));
                let mut less = fields.clone();
                less.remove(key);
                all.push(less.into());
            }
            for key in ["more", "nothing", ""] {
                let mut more = fields.clone();
                if more.insert(key.to_owned(), json!("x")).is_none() {
                    all.push(more.into());
                }
            }
        }
        Value::Array(elements) => {
            for (place, element) in elements.iter().enumerate() {
                let with = |put: Value| {
                    let mut elements = elements.clone();
                    elements[place] = put;
                    Value::from(elements)
                };
                all.extend(others(element).into_iter().map(with));
            }
            all.push([&elements[..], &[json!("x")]].concat().into());
            all.push(elements[1..].to_vec().into());
        }
        Value::String(text) => {
            all.extend([
                json!(format!("{text} ")),
                json!(text.clone() + "\u{0}"),
                json!(1),
            ]);
            all.extend([json!([text]), Value::Null, json!({ "a": text }), json!([])]);
        }
        Value::Number(number) => {
            let next = number.as_f64().unwrap() * 2.0 + 3.0;
            all.extend([
                json!(next),
                json!(number.to_string()),
                json!([number]),
                Value::Null,
            ]);
        }
        Value::Bool(flag) => all.extend([json!(!flag), json!(flag.to_string()), Value::Null]),
        Value::Null => unreachable!("not made here"),
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_suggested_grant_permits_its_call_and_no_other(
        base in select(&[REAL_CASE, BARE]), tool in select(&["read_file", "mail.send"]),
        arguments in arguments(), label in label(),
    ) {
        let rules = load(base).ruleset;
        let asked = Asked { label, now: Timestamp::from_millis(1_780_000_000_000).unwrap(), ..Asked::default() };
        let text = arguments.to_string();
        let proposal = match suggested(&asked, &rules, tool, &text) {
            Suggestion::Grant(proposal) => proposal,
            Suggestion::Restricted { by } | Suggestion::Asked { by } => {
                // The real case asks two people about mail to strangers, whatever else is granted.
                prop_assert!(base == REAL_CASE && tool == "mail.send", "{by:?}");
                return Ok(());
            }
            other => return Err(TestCaseError::fail(format!("{other:?} for {text}"))),
        };
        prop_assert!(proposal.toml.is_ascii());
        let (more, id) = rules.with_grant(&proposal.toml).map_err(TestCaseError::fail)?;
        prop_assert_eq!(&id, &proposal.id);
        let told = asked.told(&more, tool, &text);
        match proposal.answer {
            Access::Allow => prop_assert_eq!(told, format!("permit {id}")),
            Access::Ask => prop_assert!(told.starts_with("ask"), "{} for {}", told, text),
        }
        for other in others(&arguments) {
            let other = other.to_string();
            let (before, after) = (asked.told(&rules, tool, &other), asked.told(&more, tool, &other));
            prop_assert_eq!(before, after, "{} is let through by the grant for {}", other, text);
        }
        let elsewhere = Asked { session: "mm-2".try_into().unwrap(), ..asked.clone() };
        prop_assert_eq!(elsewhere.told(&rules, tool, &text), elsewhere.told(&more, tool, &text));
        let late = Asked { now: Timestamp::from_millis(1_780_000_000_000 + 3_600_000).unwrap(), ..asked.clone() };
        let (before, after) = (late.told(&rules, tool, &text), late.told(&more, tool, &text));
        prop_assert!(after == before || after == format!("grant_expired {id}"), "{}", after);
        let spent = Asked { uses: [(id.clone(), 1)].into(), ..asked.clone() };
        prop_assert_eq!(spent.told(&more, tool, &text), asked.told(&rules, tool, &text));
        // The same lines below [[grant]] make a configuration that loads and says the same.
        let whole = load(&format!("{base}\n[[grant]]\n{}", proposal.toml)).ruleset;
        prop_assert_eq!(asked.told(&whole, tool, &text), asked.told(&more, tool, &text));
    }
}

fn grant(suggestion: Suggestion) -> policy::Proposal {
    match suggestion {
        Suggestion::Grant(proposal) => proposal,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_suggestion_reads_like_a_grant() {
    let rules = load(REAL_CASE).ruleset;
    let proposal = grant(suggested(
        &Asked::default(),
        &rules,
        "read_file",
        r#"{"path":"/etc/hosts"}"#,
    ));
    insta::assert_snapshot!(proposal.toml, @r#"
    id = "once-read_file-1"
    roles = ["bot"]
    sessions = ["mm-1"]
    tools = ["read_file"]
    effect = "allow"
    where."/path" = { equals = "/etc/hosts" }
    max_uses = 1
    expires = "1970-01-01T01:00:00Z"
    why = "for one call that was denied; say here why it may run"
    "#);
    assert_eq!(proposal.answer, Access::Allow);
}

#[test]
fn what_runs_needs_no_grant() {
    let rules = load(REAL_CASE).ruleset;
    let docs = suggested(
        &Asked::default(),
        &rules,
        "read_file",
        r#"{"path":"/srv/docs/a"}"#,
    );
    let grant = GrantId::new("docs").unwrap();
    assert_eq!(docs, Suggestion::Permitted { grant });
}

#[test]
fn against_a_deny_no_grant_is_suggested_and_its_unless_is() {
    let rules = load(&format!(
        "{BARE}[[grant]]\nid = \"stop\"\nroles = [\"*\"]\nsessions = [\"*\"]\ntools = [\"*\"]\neffect = \"deny\"\n"
    ))
    .ruleset;
    let text = r#"{"path":"/etc/hosts"}"#;
    let Suggestion::Restricted { by } = suggested(&Asked::default(), &rules, "read_file", text)
    else {
        panic!("a deny applies");
    };
    assert_eq!(by.len(), 1);
    let lines = by[0].lines.as_ref().unwrap();
    assert_eq!(lines, "unless.\"/path\" = { equals = \"/etc/hosts\" }\n");
    let mended = load(&format!(
        "{BARE}[[grant]]\nid = \"stop\"\nroles = [\"*\"]\nsessions = [\"*\"]\ntools = [\"*\"]\neffect = \"deny\"\n{lines}"
    ))
    .ruleset;
    assert_eq!(
        Asked::default().told(&mended, "read_file", text),
        "no_grant"
    );
    // One that has an `unless` already cannot simply be given another.
    let rules = load(REAL_CASE).ruleset;
    let pem = r#"{"path":"/srv/docs/a.pem"}"#;
    let Suggestion::Restricted { by } = suggested(&Asked::default(), &rules, "read_file", pem)
    else {
        panic!("a deny applies");
    };
    assert_eq!((by[0].grant.as_str(), &by[0].lines), ("no-keys", &None));
}

#[test]
fn an_ask_that_says_deny_at_this_label_is_named_with_what_it_would_have_to_say() {
    let rules = load(REAL_CASE).ruleset;
    let outside = r#"{"to":["c@example.net"],"subject":"s","body":"b"}"#;
    let asked = Asked::label(seen(DataClass::Secret));
    let Suggestion::Restricted { by } = suggested(&asked, &rules, "mail.send", outside) else {
        panic!("an ask applies and says deny");
    };
    assert_eq!(by[0].grant.as_str(), "mail-outside");
    assert!(by[0].instead.contains("`max_class = \"secret\"`"), "{by:?}");
}

#[test]
fn what_a_person_is_asked_about_is_left_to_the_person() {
    let rules = load(REAL_CASE).ruleset;
    let note = r#"{"path":"/srv/notes/a","content":"x"}"#;
    for asked in [Asked::default(), Asked::label(UNTRUSTED)] {
        let Suggestion::Asked { by } = suggested(&asked, &rules, "write_file", note) else {
            panic!("an ask applies");
        };
        assert_eq!(by[0].grant.as_str(), "notes");
    }
    let inside = r#"{"to":["a@example.org"],"subject":"s","body":"b"}"#;
    let asked = suggested(&Asked::label(UNTRUSTED), &rules, "mail.send", inside);
    assert!(matches!(asked, Suggestion::Asked { .. }), "{asked:?}");
    // Where the class alone asks, a grant for this call can say that it may go there.
    let asked = Asked::label(seen(DataClass::Secret));
    let proposal = grant(suggested(&asked, &rules, "mail.send", inside));
    assert!(proposal.toml.contains("max_class = \"secret\""));
    assert_eq!(proposal.answer, Access::Allow);
}

#[test]
fn an_untrusted_session_is_asked_about_where_anybody_can_be() {
    let rules = load(BARE).ruleset;
    let proposal = grant(suggested(
        &Asked::label(UNTRUSTED),
        &rules,
        "mail.send",
        "{\"a\":1}",
    ));
    assert!(
        proposal
            .toml
            .contains("untrusted = \"ask\"\napprovers = [\"eve\"]\n")
    );
    assert_eq!(proposal.answer, Access::Ask);
    let nobody = load(&BARE.replace("eve = {", "# ")).ruleset;
    let proposal = grant(suggested(
        &Asked::label(UNTRUSTED),
        &nobody,
        "mail.send",
        "{\"a\":1}",
    ));
    assert!(proposal.toml.contains("untrusted = \"allow\""));
    assert!(proposal.notes.iter().any(|note| note.contains("unseen")));
    let proposal = grant(suggested(
        &Asked::default(),
        &nobody,
        "mail.send",
        "{\"a\":1}",
    ));
    assert!(
        proposal.toml.contains("untrusted = \"deny\""),
        "{}",
        proposal.toml
    );
}

#[test]
fn where_no_matcher_is_narrow_enough_the_suggestion_says_so() {
    let rules = load(BARE).ruleset;
    let long = json!({ "path": "a".repeat(2000), "cursor": null, "list": [] }).to_string();
    let Suggestion::Wider { proposal, pointers } =
        suggested(&Asked::default(), &rules, "read_file", &long)
    else {
        panic!("null has no matcher of its own");
    };
    let mut at: Vec<_> = pointers.iter().map(|(at, _)| at.as_str()).collect();
    at.sort_unstable();
    assert_eq!(at, ["/cursor", "/list", "/path"]);
    assert!(proposal.toml.contains("{ max_len = 2000 }"));
    let (more, id) = rules.with_grant(&proposal.toml).unwrap();
    assert_eq!(
        Asked::default().told(&more, "read_file", &long),
        format!("permit {id}")
    );
    for text in ["[]", "{\"a\":1,\"a\":2}"] {
        let told = suggested(&Asked::default(), &rules, "read_file", text);
        assert!(matches!(told, Suggestion::Impossible { .. }), "{told:?}");
    }
}

#[test]
fn a_suggested_id_is_free_and_at_the_end_of_time_there_is_none() {
    let rules = load(BARE).ruleset;
    let first = grant(suggested(
        &Asked::default(),
        &rules,
        "read_file",
        "{\"a\":1}",
    ));
    let (more, id) = rules.with_grant(&first.toml).unwrap();
    let second = grant(suggested(
        &Asked::default(),
        &more,
        "read_file",
        "{\"a\":2}",
    ));
    assert_ne!(second.id, id);
    let used = Asked {
        uses: [(id.clone(), 1)].into(),
        ..Asked::default()
    };
    assert_ne!(
        grant(suggested(&used, &rules, "read_file", "{\"a\":1}")).id,
        id
    );
    let last = Asked {
        now: Timestamp::MAX,
        ..Asked::default()
    };
    let told = suggested(&last, &rules, "read_file", "{\"a\":1}");
    assert!(matches!(told, Suggestion::Impossible { .. }), "{told:?}");
}
