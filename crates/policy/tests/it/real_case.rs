//! A small real case loads and behaves.

use policy::decision::Decision;
use policy::{LabelScope, Pin, RoleKind};
use proto::{Access, Content, DataClass, Effects, Timestamp};

use crate::fixture::{Asked, UNTRUSTED, load, seen};

const REAL_CASE: &str = include_str!("../fixtures/real_case.toml");

const INSIDE: &str = r#"{"to":["a@example.org","b@example.org"],"subject":"s","body":"b"}"#;
const OUTSIDE: &str = r#"{"to":["a@example.org","c@example.net"],"subject":"s","body":"b"}"#;

#[test]
fn its_settings_and_roles_are_read() {
    let config = load(REAL_CASE);
    assert_eq!(config.settings.max_frame, 8 << 20);
    assert_eq!(config.settings.call_limit, 3_600_000);
    assert_eq!(config.settings.cancel_grace, 5_000, "a default");
    let bot = &config.roles["bot"];
    assert_eq!(
        (bot.kind, bot.label_scope),
        (RoleKind::Agent, LabelScope::Session)
    );
    assert_eq!(
        (bot.quota.connections, bot.quota.requests_per_second),
        (4, 200)
    );
    assert_eq!(bot.quota.closed_sessions, 100_000, "a default");
    assert_eq!(config.roles["files"].concurrency, 8);
    assert_eq!(config.roles["alice"].max_class, DataClass::Confidential);
    let offer = &config.roles["mail"].offers[0];
    assert_eq!(
        (offer.tools.join(","), offer.pin),
        ("mail.*".to_owned(), Pin::Accept)
    );
}

#[test]
fn its_tools_are_declared_or_offered() {
    let rules = load(REAL_CASE).ruleset;
    let read = rules.tool("read_file").unwrap().effective(None);
    assert_eq!(read.clearance, DataClass::Secret, "read without egress");
    let search = rules.tool("mail.search").unwrap();
    assert!(search.declared);
    assert_eq!(
        (search.effects, search.content),
        (Effects::Read, Content::Mcp)
    );
    let send = rules.tool("mail.send").unwrap();
    assert!(!send.declared && send.untrusted && send.egress);
    assert_eq!(
        (send.effects, send.runner.as_str()),
        (Effects::Once, "mail")
    );
    assert_eq!(
        send.effective(None).clearance,
        DataClass::Confidential,
        "its floor"
    );
    assert_eq!(rules.tool("exec"), None);
}

#[test]
fn documents_are_permitted_and_keys_are_not() {
    let rules = load(REAL_CASE).ruleset;
    let told = |arguments| Asked::default().told(&rules, "read_file", arguments);
    assert_eq!(told(r#"{"path":"/srv/docs/a.md"}"#), "permit docs");
    assert_eq!(
        told(r#"{"path":"/srv/docs/a.pem"}"#),
        "denied_by_grant no-keys"
    );
    assert_eq!(
        told(r#"{"path":"/srv/docs/public-certificates/a.pem"}"#),
        "permit docs"
    );
    assert_eq!(
        told(r#"{"path":"/srv/docs/public-certificates/../a.pem"}"#),
        "denied_by_grant no-keys"
    );
    assert_eq!(told(r#"{"path":"/etc/shadow"}"#), "no_grant");
    assert_eq!(told(r#"{"path":"/srv/docs/a.md","mode":"x"}"#), "no_grant");
    assert_eq!(
        told(r#"{"path":"/srv/docs/a.md","path":"/etc/shadow"}"#),
        "denied_by_grant no-keys"
    );
    assert_eq!(told("not json"), "denied_by_grant no-keys");
    let secret = Asked::label(seen(DataClass::Secret));
    assert_eq!(
        secret.told(&rules, "read_file", r#"{"path":"/srv/docs/a.md"}"#),
        "permit docs"
    );
}

#[test]
fn only_the_bot_in_its_sessions_is_granted_anything() {
    let rules = load(REAL_CASE).ruleset;
    let arguments = r#"{"path":"/srv/docs/a.md"}"#;
    let other = Asked {
        session: "irc-1".try_into().unwrap(),
        ..Asked::default()
    };
    assert_eq!(other.told(&rules, "read_file", arguments), "no_grant");
    let other = Asked {
        role: "cron".try_into().unwrap(),
        ..Asked::default()
    };
    assert_eq!(other.told(&rules, "read_file", arguments), "no_grant");
}

#[test]
fn notes_are_asked_about() {
    let rules = load(REAL_CASE).ruleset;
    let note = r#"{"path":"/srv/notes/a","content":"x"}"#;
    let Decision::Ask(ask) = Asked::default().decide(&rules, "write_file", note) else {
        panic!("not asked");
    };
    assert_eq!(ask.grants.len(), 1);
    let asking = &ask.grants[0];
    assert_eq!(
        asking.approvers,
        ["alice".try_into().unwrap()],
        "the configuration's"
    );
    assert_eq!(asking.pointers, ["/content", "/path"]);
    assert_eq!((asking.quorum, asking.approval_ttl), (1, 600_000));
    assert_eq!(
        (asking.standing_ttl, asking.standing_uses),
        (Some(3_600_000), Some(20))
    );
    let told = |label| Asked::label(label).told(&rules, "write_file", note);
    assert_eq!(told(seen(DataClass::Confidential)), "ask notes");
    assert_eq!(told(seen(DataClass::Secret)), "taint_too_high notes");
    assert_eq!(told(UNTRUSTED), "ask notes");
}

#[test]
fn mail_inside_is_permitted_and_asked_about_above_its_class() {
    let rules = load(REAL_CASE).ruleset;
    let told = |label| Asked::label(label).told(&rules, "mail.send", INSIDE);
    assert_eq!(told(seen(DataClass::Internal)), "permit mail-inside");
    assert_eq!(told(seen(DataClass::Confidential)), "ask mail-inside");
    assert_eq!(told(UNTRUSTED), "ask mail-inside");
    let Decision::Permit(permit) = Asked::default().decide(&rules, "mail.send", INSIDE) else {
        panic!("not permitted");
    };
    assert_eq!(permit.spend, ["mail-inside".try_into().unwrap()]);
    let Decision::Ask(ask) = Asked::label(UNTRUSTED).decide(&rules, "mail.send", INSIDE) else {
        panic!("not asked");
    };
    assert_eq!(ask.permit, permit, "an approved call spends a use too");
    assert_eq!(ask.grants[0].approval_ttl, 900_000);
}

#[test]
fn mail_inside_lapses_and_is_spent() {
    let rules = load(REAL_CASE).ruleset;
    let late = Asked {
        now: Timestamp::from_millis(1_814_313_600_000).unwrap(),
        ..Asked::default()
    };
    assert_eq!(
        late.told(&rules, "mail.send", INSIDE),
        "grant_expired mail-inside"
    );
    let spent = Asked {
        uses: [("mail-inside".try_into().unwrap(), 1000)].into(),
        ..Asked::default()
    };
    assert_eq!(spent.told(&rules, "mail.send", INSIDE), "no_grant");
}

#[test]
fn mail_outside_wants_two_people() {
    let rules = load(REAL_CASE).ruleset;
    let Decision::Ask(ask) = Asked::default().decide(&rules, "mail.send", OUTSIDE) else {
        panic!("not asked");
    };
    assert_eq!(ask.grants.len(), 1);
    assert_eq!(
        (ask.grants[0].id.as_str(), ask.grants[0].quorum),
        ("mail-outside", 2)
    );
    assert_eq!(
        ask.grants[0].pointers,
        [""],
        "it has no where, so all arguments are pinned"
    );
    let confidential = Asked::label(seen(DataClass::Confidential));
    assert_eq!(
        confidential.told(&rules, "mail.send", OUTSIDE),
        "taint_too_high mail-outside"
    );
}

#[test]
fn access_tells_the_best_that_a_call_could_get() {
    let rules = load(REAL_CASE).ruleset;
    let asked = Asked::default();
    assert_eq!(asked.access(&rules, "read_file"), Some(Access::Allow));
    assert_eq!(asked.access(&rules, "write_file"), Some(Access::Ask));
    assert_eq!(asked.access(&rules, "mail.send"), Some(Access::Allow));
    assert_eq!(asked.access(&rules, "mail.other"), None);
    let untrusted = Asked::label(UNTRUSTED);
    assert_eq!(untrusted.access(&rules, "mail.send"), Some(Access::Ask));
    let secret = Asked::label(seen(DataClass::Secret));
    assert_eq!(secret.access(&rules, "write_file"), None);
}

#[test]
fn explain_tells_of_every_grant_and_of_no_value() {
    let rules = load(REAL_CASE).ruleset;
    let trace = Asked::default().trace(&rules, "read_file", r#"{"path":"/srv/docs/a.md"}"#);
    assert_eq!(
        trace,
        [
            "docs: permits: it says allow",
            "no-keys: falls: its `where` wants `/path` to match the glob `/**/*.pem`, and what stands there is something else",
            "notes: falls: its `tools` do not name this tool",
            "inbox: falls: its `tools` do not name this tool",
            "mail-inside: falls: its `tools` do not name this tool",
            "mail-outside: falls: its `tools` do not name this tool",
        ]
    );
}
