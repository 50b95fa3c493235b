//! What a session is told that it may call, arguments aside.

use policy::Ruleset;
use proto::{Access, DataClass};

use crate::fixture::{Asked, UNTRUSTED, load, seen};

/// Each grant is its effect and what else it says, for the tool `send`, internal, with egress.
fn rules(grants: &[&str]) -> Ruleset {
    let mut text = "approvers = [\"eve\"]\n[roles]\nbot = { kind = \"agent\", label_scope = \"session\" }\nrun = { kind = \"runner\" }\neve = { kind = \"approver\", max_class = \"secret\", groups = [\"g\"] }\n[[tool]]\nname = \"send\"\nrunner = \"run\"\n".to_owned();
    for (place, grant) in grants.iter().enumerate() {
        text += &format!(
            "[[grant]]\nid = \"g{place}\"\nroles = [\"bot\"]\nsessions = [\"*\"]\ntools = [\"send\"]\n{grant}\n"
        );
    }
    load(&text).ruleset
}

const ALLOW: &str = "effect = \"allow\"";
const ASK: &str = "effect = \"ask\"";
const DENY: &str = "effect = \"deny\"";
const WHERE: &str = "where = { \"/a\" = { equals = 1 } }";
const UNLESS: &str = "unless = { \"/a\" = { equals = 1 } }";

fn access(grants: &[&str]) -> Option<Access> {
    Asked::default().access(&rules(grants), "send")
}

#[test]
fn nothing_granted_is_nothing() {
    assert_eq!(access(&[]), None);
    assert_eq!(access(&[DENY]), None);
}

#[test]
fn what_has_no_condition_holds_for_every_call() {
    assert_eq!(access(&[ALLOW]), Some(Access::Allow));
    assert_eq!(access(&[ASK]), Some(Access::Ask));
    assert_eq!(access(&[ALLOW, ASK]), Some(Access::Ask));
    assert_eq!(access(&[ALLOW, ASK, DENY]), None);
}

#[test]
fn what_has_a_condition_may_not_restrict_the_best_call_and_may_permit_it() {
    let with = |effect: &str, condition: &str| format!("{effect}\n{condition}");
    assert_eq!(access(&[ALLOW, &with(DENY, WHERE)]), Some(Access::Allow));
    assert_eq!(access(&[ALLOW, &with(DENY, UNLESS)]), Some(Access::Allow));
    assert_eq!(access(&[ALLOW, &with(ASK, WHERE)]), Some(Access::Allow));
    assert_eq!(access(&[&with(ALLOW, WHERE)]), Some(Access::Allow));
    assert_eq!(access(&[&with(ASK, WHERE)]), Some(Access::Ask));
}

#[test]
fn labels_time_and_uses_count() {
    let told = |asked: Asked, grant: &str| asked.access(&rules(&[grant]), "send");
    assert_eq!(told(Asked::label(UNTRUSTED), ALLOW), Some(Access::Ask));
    assert_eq!(told(Asked::label(seen(DataClass::Secret)), ALLOW), None);
    let counted = format!("{ALLOW}\nmax_uses = 1");
    assert_eq!(told(Asked::default(), &counted), Some(Access::Allow));
    let spent = Asked {
        uses: [("g0".try_into().unwrap(), 1)].into(),
        ..Asked::default()
    };
    assert_eq!(told(spent, &counted), None);
    let expiring = format!("{ALLOW}\nexpires = \"1970-01-01T00:00:00Z\"");
    assert_eq!(told(Asked::default(), &expiring), None);
}
