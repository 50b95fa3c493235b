//! Grants for a set of calls permit those calls, and nothing that was not among them.

use std::collections::BTreeSet;

use policy::decision::Query;
use policy::limits::{MAX_DIFFERENT, MAX_LIST, MAX_SUGGESTED};
use policy::{Decision, How, Ruleset, Seen, Why, suggest_seen};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proto::{Access, DataClass, Label, SessionId, Timestamp};
use serde_json::{Value, json};

use crate::fixture::{Asked, TRUSTED, UNTRUSTED, load, seen as seen_class};

/// No `approvers` at the top, tools of every kind, and a grant that never fits.
const BARE: &str = r#"
[roles]
bot = { kind = "agent", label_scope = "session" }
run = { kind = "runner" }
eve = { kind = "approver", max_class = "secret", groups = ["g"] }
[[tool]]
name = "read"
runner = "run"
class = "public"
effects = "read"
egress = false
[[tool]]
name = "send"
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

/// On top of it: an allow, an ask and a deny, each for some sessions, arguments or labels.
const MIXED: &str = r#"
[[grant]]
id = "some"
roles = ["bot"]
sessions = ["s1", "s2"]
tools = ["read"]
effect = "allow"
untrusted = "ask"
approvers = ["eve"]
expires = "1970-01-01T00:00:05Z"
where = { "/a" = { any = true } }
[[grant]]
id = "look"
roles = ["bot"]
sessions = ["s2"]
tools = ["*"]
effect = "ask"
approvers = ["eve"]
max_class = "confidential"
where = { "/a" = { equals = 2 } }
[[grant]]
id = "stop"
roles = ["bot"]
sessions = ["*"]
tools = ["*"]
effect = "deny"
where = { "/b" = { equals = "y" } }
"#;

/// Allows that look at no arguments.
const BLIND: &str = r#"
approvers = ["eve"]
[roles]
bot = { kind = "agent", label_scope = "session" }
run = { kind = "runner" }
eve = { kind = "approver", max_class = "secret", groups = ["g"] }
[[tool]]
name = "read"
runner = "run"
class = "public"
effects = "read"
egress = false
[[tool]]
name = "send"
runner = "run"
class = "internal"
[[grant]]
id = "s1-only"
roles = ["bot"]
sessions = ["s1"]
tools = ["read"]
effect = "allow"
"#;

const TOOLS: [&str; 2] = ["read", "send"];
const VALUES: [&str; 6] = ["1", "1.0", "2", "\"x\"", "\"y\"", "true"];

/// A call that a set may hold.
#[derive(Debug, Clone)]
struct Call {
    asked: Asked,
    tool: &'static str,
    arguments: String,
}

impl Call {
    fn new(session: &str, tool: &'static str, arguments: &str, label: Label) -> Call {
        let session = session.try_into().unwrap();
        Call {
            asked: Asked {
                session,
                label,
                ..Asked::default()
            },
            tool,
            arguments: arguments.to_owned(),
        }
    }

    fn decide(&self, rules: &Ruleset) -> Decision {
        self.asked.decide(rules, self.tool, &self.arguments)
    }

    fn answer(&self, rules: &Ruleset) -> &'static str {
        match self.decide(rules) {
            Decision::Permit(_) => "permit",
            Decision::Ask(_) => "ask",
            Decision::Deny(_) => "deny",
        }
    }

    /// The arguments by value.
    fn value(&self) -> Option<Value> {
        serde_json::from_str(&self.arguments).ok().map(by_value)
    }
}

fn by_value(value: Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Object(fields) => fields.into_iter().map(|(k, v)| (k, by_value(v))).collect(),
        Value::Array(all) => all.into_iter().map(by_value).collect(),
        other => other,
    }
}

fn suggested(rules: &Ruleset, calls: &[Call], how: &How) -> Seen {
    try_suggested(rules, calls, how).unwrap()
}

fn try_suggested(rules: &Ruleset, calls: &[Call], how: &How) -> Result<Seen, String> {
    let tools: Vec<_> = calls
        .iter()
        .map(|call| rules.tool(call.tool).unwrap().effective(None))
        .collect();
    let query = |(call, tool)| {
        let call: &Call = call;
        Query {
            role: &call.asked.role,
            session: &call.asked.session,
            tool,
            arguments: &call.arguments,
            label: call.asked.label,
            now: call.asked.now,
            uses: &call.asked.uses,
        }
    };
    let queries: Vec<_> = calls.iter().zip(&tools).map(query).collect();
    suggest_seen(rules, &queries, how)
}

fn named(sessions: &[&str]) -> How {
    How {
        named: sessions
            .iter()
            .map(|&name| name.try_into().unwrap())
            .collect(),
        any_session: false,
    }
}

fn any_session() -> How {
    How {
        any_session: true,
        ..How::default()
    }
}

/// The same rules with the grants in the file.
fn with(base: &str, seen: &Seen) -> Ruleset {
    load(&format!("{base}\n{}", seen.toml())).ruleset
}

fn object() -> impl Strategy<Value = String> {
    let value = || proptest::option::weighted(0.8, select(&VALUES));
    let nested = proptest::option::weighted(0.2, select(&["[\"x\"]", "{\"d\":1}", "null"]));
    (value(), value(), nested).prop_map(|(a, b, c)| {
        let field =
            |key: &str, value: Option<&str>| value.map(|value| format!("\"{key}\":{value}"));
        let fields = [field("a", a), field("b", b), field("c", c)];
        format!(
            "{{{}}}",
            fields.into_iter().flatten().collect::<Vec<_>>().join(",")
        )
    })
}

fn label() -> impl Strategy<Value = Label> {
    let class = prop_oneof![3 => Just(DataClass::Public), 2 => select(&DataClass::ALL)];
    (class, proptest::bool::weighted(0.3)).prop_map(|(class, untrusted)| Label { class, untrusted })
}

fn call() -> impl Strategy<Value = Call> {
    let arguments = prop_oneof![20 => object(), 1 => Just("no JSON".to_owned())];
    (
        select(&["s1", "s2", "s3"]),
        select(&TOOLS),
        arguments,
        label(),
        0..10_000_u64,
    )
        .prop_map(|(session, tool, arguments, label, at)| {
            let mut call = Call::new(session, tool, &arguments, label);
            call.asked.now = Timestamp::from_millis(at).unwrap();
            call
        })
}

fn how() -> impl Strategy<Value = How> {
    (any::<bool>(), any::<bool>()).prop_map(|(any_session, one)| How {
        any_session,
        named: one
            .then(|| SessionId::new("s2").unwrap())
            .into_iter()
            .collect(),
    })
}

/// Whether a set's covered calls speak for another call.
fn speaks_for(covered: &[&Call], rules: &Ruleset, how: &How, other: &Call) -> bool {
    let is_same = |call: &&&Call| {
        let asked = &call.asked;
        let session =
            asked.session == other.asked.session || (how.any_session && !asked.label.untrusted);
        session
            && call.tool == other.tool
            && call.value() == other.value()
            && (!other.asked.label.untrusted || asked.label.untrusted)
    };
    let clearance = rules.tool(other.tool).unwrap().effective(None).clearance;
    let highest = covered
        .iter()
        .filter(is_same)
        .map(|call| call.asked.label.class)
        .max();
    highest.is_some_and(|class| other.asked.label.class <= class.max(clearance))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_grants_for_a_set_permit_its_calls_and_no_other(
        base in select(vec![BARE.to_owned(), format!("{BARE}{MIXED}"), BLIND.to_owned()]),
        calls in proptest::collection::vec(call(), 1..40), how in how(),
        probes in proptest::collection::vec((call(), any::<Index>(), any::<Index>(), 0..5_u8), 60),
        turned in any::<Index>(),
    ) {
        let rules = load(&base).ruleset;
        let seen = try_suggested(&rules, &calls, &how).map_err(TestCaseError::fail)?;
        let toml = seen.toml();
        prop_assert!(toml.bytes().all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)));
        let left: u64 = seen.left.values().sum();
        prop_assert_eq!(left + seen.covered.len() as u64, calls.len() as u64);
        let more = with(&base, &seen);
        let asks = seen.grants.iter().any(|grant| grant.answer == Access::Ask);
        for (place, call) in calls.iter().enumerate() {
            let (before, after) = (call.answer(&rules), call.answer(&more));
            if seen.covered.contains(&place) {
                let asked = call.asked.label.untrusted && asks;
                prop_assert!(after == "permit" || (asked && after == "ask"), "{:?}: {}", call, after);
                let is_named = how.named.contains(&call.asked.session);
                prop_assert!(!call.asked.label.untrusted || is_named);
            } else {
                prop_assert_eq!(before, after, "{:?}", call);
            }
        }
        let covered: Vec<&Call> = seen.covered.iter().map(|place| &calls[*place]).collect();
        for (mut probe, one, other, mix) in probes {
            let (one, other) = (one.get(&calls), other.get(&calls));
            // Parts of calls that were seen, put together anew; some at another label or with another key.
            probe.tool = one.tool;
            if mix > 0 {
                probe.arguments.clone_from(&one.arguments);
                probe.asked.session = other.asked.session.clone();
            }
            if mix == 2 {
                probe.asked.label = one.asked.label;
                let mut fields = one.value().unwrap_or_default();
                if let (Some(into), Some(from)) = (fields.as_object_mut(), other.value()) {
                    into.extend(from.as_object().unwrap().iter().take(1).map(|(k, v)| (k.clone(), v.clone())));
                    probe.arguments = fields.to_string();
                }
            } else if mix == 3 {
                probe.asked.label = one.asked.label;
                probe.asked.session = "s4".try_into().unwrap();
            } else if mix == 4 {
                probe.arguments = probe.arguments.replacen('{', "{\"e\":0,", 1).replace(",}", "}");
            }
            let (before, after) = (probe.answer(&rules), probe.answer(&more));
            if before == "deny" && after != "deny" || before == "ask" && after == "permit" {
                prop_assert!(speaks_for(&covered, &rules, &how, &probe), "{:?}: {}\n{}", probe, after, toml);
            }
        }
        let mut others = calls.clone();
        others.rotate_left(turned.index(calls.len()));
        others.reverse();
        prop_assert_eq!(suggested(&rules, &others, &how).toml(), toml);
    }
}

fn grants(seen: &Seen) -> Vec<&str> {
    seen.grants
        .iter()
        .map(|grant| grant.toml.as_str())
        .collect()
}

fn left(seen: &Seen) -> Vec<(Why, &str, u64)> {
    let one = |(left, count): (&policy::Left, &u64)| (left.why, left.words.clone(), *count);
    let all: Vec<_> = seen.left.iter().map(one).collect();
    all.into_iter()
        .map(|(why, words, count)| (why, &*words.leak(), count))
        .collect()
}

#[test]
fn a_suggestion_for_a_set_reads_like_a_grant() {
    let rules = load(BARE).ruleset;
    let calls: Vec<Call> = ["s1", "s2"]
        .into_iter()
        .flat_map(|session| {
            ["{\"a\":\"x\",\"n\":1}", "{\"n\":1.0,\"a\":\"\u{e9}\"}"]
                .map(|arguments| Call::new(session, "read", arguments, TRUSTED))
        })
        .collect();
    let seen = suggested(&rules, &calls, &How::default());
    insta::assert_snapshot!(seen.toml(), @r#"
    [[grant]]
    id = "seen-read-1"
    roles = ["bot"]
    sessions = ["s1", "s2"]
    tools = ["read"]
    effect = "allow"
    where."/a" = { one_of = ["\u00E9", "x"] }
    where."/n" = { equals = 1 }
    untrusted = "deny"
    why = "from 4 calls seen between 1970-01-01T00:00:00Z and 1970-01-01T00:00:00Z; a person should say here why they may run"
    "#);
}

#[test]
fn combinations_that_were_not_seen_take_grants_of_their_own() {
    let rules = load(BARE).ruleset;
    let calls = ["{\"a\":1,\"b\":1}", "{\"a\":2,\"b\":2}"]
        .map(|text| Call::new("s1", "send", text, TRUSTED));
    let seen = suggested(&rules, &calls, &How::default());
    assert_eq!(seen.grants.len(), 2);
    let mixed = Call::new("s1", "send", "{\"a\":1,\"b\":2}", TRUSTED);
    assert_eq!(mixed.answer(&with(BARE, &seen)), "deny");
}

#[test]
fn a_call_without_arguments_permits_no_arguments() {
    let rules = load(BARE).ruleset;
    let seen = suggested(
        &rules,
        &[Call::new("s1", "send", "{}", TRUSTED)],
        &How::default(),
    );
    let more = with(BARE, &seen);
    assert_eq!(
        Call::new("s1", "send", "{}", TRUSTED).answer(&more),
        "permit"
    );
    assert_eq!(
        Call::new("s1", "send", "{\"a\":1}", TRUSTED).answer(&more),
        "deny"
    );
}

#[test]
fn a_high_class_seen_with_one_set_of_arguments_opens_no_other() {
    let rules = load(BARE).ruleset;
    let secret = seen_class(DataClass::Secret);
    let calls = [
        Call::new("s1", "send", "{\"a\":1}", TRUSTED),
        Call::new("s1", "send", "{\"a\":2}", secret),
    ];
    let seen = suggested(&rules, &calls, &How::default());
    let more = with(BARE, &seen);
    assert_eq!(
        Call::new("s1", "send", "{\"a\":1}", secret).answer(&more),
        "deny"
    );
    assert_eq!(
        Call::new("s1", "send", "{\"a\":2}", secret).answer(&more),
        "permit"
    );
}

#[test]
fn an_untrusted_session_is_left_out_unless_it_is_named() {
    let rules = load(BARE).ruleset;
    let calls = [
        Call::new("s1", "send", "{\"a\":1}", UNTRUSTED),
        Call::new("s1", "send", "{\"a\":2}", TRUSTED),
        Call::new("s2", "read", "{\"a\":3}", UNTRUSTED),
    ];
    let seen = suggested(&rules, &calls, &any_session());
    assert_eq!(seen.covered, BTreeSet::from([1]));
    assert_eq!(
        left(&seen),
        [
            (Why::Untrusted, "session `s2`", 1),
            (Why::Untrusted, "session `s1`", 1)
        ]
    );
    let how = How {
        any_session: true,
        ..named(&["s1", "s2"])
    };
    let seen = suggested(&rules, &calls, &how);
    let all = grants(&seen).join("\n");
    assert!(
        all.contains("untrusted = \"ask\"\napprovers = [\"eve\"]\n"),
        "{all}"
    );
    assert!(
        all.contains("sessions = [\"s1\"]") && all.contains("sessions = [\"s2\"]"),
        "{all}"
    );
    let more = with(BARE, &seen);
    assert_eq!(
        calls.each_ref().map(|call| call.answer(&more)),
        ["ask", "permit", "permit"]
    );
    assert_eq!(
        Call::new("s3", "send", "{\"a\":2}", TRUSTED).answer(&more),
        "permit"
    );
    assert_eq!(
        Call::new("s3", "send", "{\"a\":2}", UNTRUSTED).answer(&more),
        "deny"
    );
    assert_eq!(
        Call::new("s3", "send", "{\"a\":1}", UNTRUSTED).answer(&more),
        "deny"
    );
}

#[test]
fn where_nobody_can_be_asked_a_named_untrusted_session_is_let_through() {
    let nobody = BARE.replace("eve = {", "# ");
    let rules = load(&nobody).ruleset;
    let call = Call::new("s1", "send", "{\"a\":1}", UNTRUSTED);
    let seen = suggested(&rules, std::slice::from_ref(&call), &named(&["s1"]));
    assert_eq!(call.answer(&with(&nobody, &seen)), "permit");
}

#[test]
fn what_runs_is_asked_about_or_is_denied_for_good_is_counted() {
    let base = format!("{BARE}{MIXED}");
    let rules = load(&base).ruleset;
    let calls = [
        Call::new("s1", "read", "{\"a\":1}", TRUSTED),
        Call::new("s2", "read", "{\"a\":2}", TRUSTED),
        Call::new("s1", "read", "{\"b\":\"y\"}", TRUSTED),
        Call::new("s1", "send", "{\"z\":null}", TRUSTED),
        Call::new("s1", "send", "[]", TRUSTED),
    ];
    let seen = suggested(&rules, &calls, &How::default());
    assert_eq!(seen.grants, []);
    let whys: Vec<Why> = seen.left.keys().map(|left| left.why).collect();
    assert_eq!(
        whys,
        [
            Why::Permitted,
            Why::Asked,
            Why::Restricted,
            Why::Impossible,
            Why::Impossible
        ]
    );
    assert_eq!(left(&seen)[1].1, "grant `look`");
    assert_eq!(left(&seen)[2].1, "grant `stop`");
}

#[test]
fn calls_that_run_with_arguments_that_cannot_be_read_go_on_running() {
    let rules = load(BLIND).ruleset;
    let calls = [
        Call::new("s1", "read", "no JSON", TRUSTED),
        Call::new("s2", "read", "{\"a\":1}", TRUSTED),
        Call::new("s2", "send", "{\"a\":1}", TRUSTED),
    ];
    let seen = suggested(&rules, &calls, &How::default());
    assert_eq!(seen.covered, BTreeSet::from([2]));
    let (why, words, count) = left(&seen)[1];
    assert_eq!((why, count), (Why::Impossible, 1));
    assert!(words.contains("no JSON object"), "{words}");
    assert_eq!(calls[0].answer(&with(BLIND, &seen)), "permit");
}

#[test]
fn beyond_a_limit_those_with_the_most_calls_come_first_and_the_rest_is_counted() {
    let rules = load(BARE).ruleset;
    let call = |n: usize| {
        let text = format!("{{\"a\":{n},\"b\":{n}}}");
        Call::new("s1", "send", &text, TRUSTED)
    };
    let mut calls: Vec<Call> = (0..MAX_SUGGESTED + 6).map(call).collect();
    calls.extend([call(69), call(69), call(68)]);
    let seen = suggested(&rules, &calls, &How::default());
    assert_eq!(seen.grants.len(), MAX_SUGGESTED);
    assert_eq!((seen.grants[0].calls, seen.grants[1].calls), (3, 2));
    assert_eq!(left(&seen), [(Why::TooMany, "", 6)]);
    // A list is cut, and a set of arguments.
    let listed: Vec<Call> = (0..=MAX_LIST)
        .map(|n| Call::new("s1", "send", &format!("{{\"a\":{n}}}"), TRUSTED))
        .collect();
    assert_eq!(suggested(&rules, &listed, &How::default()).grants.len(), 2);
    let different: Vec<Call> = (0..=MAX_DIFFERENT)
        .map(|n| Call::new("s1", "send", &format!("{{\"a\":{n}}}"), TRUSTED))
        .collect();
    let seen = suggested(&rules, &different, &How::default());
    assert_eq!(
        (seen.grants.len(), left(&seen)),
        (64, vec![(Why::TooMany, "", 1)])
    );
}

#[test]
fn long_values_are_suggested_up_to_the_bytes_that_there_is_room_for() {
    let rules = load(BARE).ruleset;
    let calls: Vec<Call> = (0..1_000)
        .map(|n| {
            Call::new(
                "s1",
                "send",
                &format!("{{\"a\":\"{n}{}\"}}", "x".repeat(1_000)),
                TRUSTED,
            )
        })
        .collect();
    let seen = suggested(&rules, &calls, &How::default());
    assert_eq!(seen.covered.len(), 2 * MAX_LIST);
}

#[test]
fn a_suggested_id_is_free() {
    let taken = BARE.replace("id = \"never\"", "id = \"seen-send-1\"");
    let rules = load(&taken).ruleset;
    let mut call = Call::new("s1", "send", "{}", TRUSTED);
    call.asked.uses = [("seen-send-2".parse().unwrap(), 1)].into();
    let seen = suggested(&rules, &[call], &How::default());
    assert_eq!(seen.grants[0].id.as_str(), "seen-send-3");
}
