use client::proto::{
    CallId, Content, DenyReason, Digest, Effects, GrantId, RoleName, SessionId, Timestamp, ToolName,
};
use client::{DataClass, Label};
use ctl::cli::PastArgs;
use ctl::past::{Decisions, Gone, Past, Said};
use ctl::replay::{Other, Report};
use ctl::{exit, render};
use policy::Decision;
use store::record::{Basis, By, CallKey, OfferedTool, Record, SessionKey};

pub(crate) const CONFIG: &str = r#"
approvers = ["boss"]
[broker]
runtime_dir = "/r"
state_dir = "/s"
[roles.bot]
kind = "agent"
users = ["1"]
label_scope = "session"
[roles.files]
kind = "runner"
users = ["2"]
[roles.boss]
kind = "approver"
users = ["3"]
max_class = "secret"
[[tool]]
name = "read"
runner = "files"
class = "public"
untrusted = false
effects = "read"
egress = false
"#;

const MORE: &str = "id = \"more\"\nroles = [\"bot\"]\nsessions = [\"*\"]\ntools = [\"read\"]\neffect = \"allow\"\n\
    expires = \"2100-01-01T00:00:00Z\"\nmax_uses = 2\nwhy = \"for the move\"\n";

pub(crate) fn time(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis).unwrap()
}

fn digest(text: &str) -> Digest {
    policy::Config::parse("c", text).unwrap().digest
}

fn by() -> By {
    By {
        role: RoleName::new("admin").unwrap(),
        uid: 0,
    }
}

pub(crate) fn configured(text: Option<&str>) -> Record {
    Record::Configured {
        at: time(1),
        ruleset: digest(text.unwrap_or(CONFIG)),
        text: text.map(str::to_owned),
        by: None,
    }
}

pub(crate) fn granted() -> Record {
    Record::Granted {
        at: time(2),
        grant: GrantId::new("more").unwrap(),
        toml: MORE.to_owned(),
        by: by(),
        reason: "r".to_owned(),
    }
}

fn revoked() -> Record {
    Record::Revoked {
        at: time(3),
        grant: GrantId::new("more").unwrap(),
        by: by(),
        reason: "r".to_owned(),
    }
}

pub(crate) fn key(call: u64) -> CallKey {
    CallKey {
        session: SessionKey {
            role: RoleName::new("bot").unwrap(),
            session: SessionId::new("s").unwrap(),
        },
        call: CallId(call),
    }
}

pub(crate) fn basis(arguments: Option<&str>, spent: u64) -> Option<Box<Basis>> {
    Some(Box::new(Basis {
        asks: false,
        label: Label {
            class: DataClass::Public,
            untrusted: true,
        },
        offer: None,
        uses: vec![(GrantId::new("more").unwrap(), spent)],
        arguments: arguments.map(str::to_owned),
    }))
}

fn asking(basis: Option<Box<Basis>>, asks: bool) -> Option<Box<Basis>> {
    basis.map(|basis| Box::new(Basis { asks, ..*basis }))
}

pub(crate) fn denied(call: u64, reason: DenyReason, basis: Option<Box<Basis>>) -> Record {
    let asks = matches!(
        reason,
        DenyReason::ApprovalRefused | DenyReason::ApprovalExpired
    );
    Record::Denied {
        at: time(100 + call),
        call: key(call),
        tool: ToolName::new("read").unwrap(),
        fingerprint: Digest::from_bytes([0; 32]),
        reason,
        grant: None,
        basis: asking(basis, asks),
    }
}

fn dispatched(call: u64, approval: Option<&str>) -> Record {
    Record::Dispatched {
        at: time(100 + call),
        call: key(call),
        fingerprint: Digest::from_bytes([0; 32]),
        tool: ToolName::new("read").unwrap(),
        effects: Effects::Read,
        grant: GrantId::new("more").unwrap(),
        spend: vec![],
        approval: approval.map(|name| name.parse().unwrap()),
        basis: asking(basis(Some("{}"), 0), approval.is_some()),
    }
}

pub(crate) fn all(records: impl IntoIterator<Item = Record>, wanted: &PastArgs) -> Vec<Past> {
    let mut decisions = Decisions::default();
    let follow = |record| decisions.follow(record, wanted);
    records.into_iter().filter_map(follow).collect()
}

fn under_own_rules(past: &Past) -> Result<Decision, Gone> {
    past.decide(&past.rules()?.ruleset)
}

fn permits(past: &Past) -> bool {
    matches!(under_own_rules(past), Ok(Decision::Permit(_)))
}

#[test]
fn a_decision_has_the_rules_that_counted_when_it_was_made() {
    let no_grant = |call| denied(call, DenyReason::NoGrant, basis(Some("{}"), 0));
    let pasts = all(
        [
            configured(Some(CONFIG)),
            no_grant(1),
            granted(),
            no_grant(2),
            // A restart: the grants of run time stay.
            configured(Some(CONFIG)),
            no_grant(3),
            configured(Some(&format!("{CONFIG}\n# another\n"))),
            no_grant(4),
            revoked(),
            no_grant(5),
        ],
        &PastArgs::default(),
    );
    let permitted: Vec<bool> = pasts.iter().map(permits).collect();
    assert_eq!(permitted, [false, true, true, true, false]);
    let rules = |index: usize| std::rc::Rc::as_ptr(pasts[index].rules().unwrap());
    assert_eq!(rules(1), rules(2), "parsed again");
    assert_ne!(rules(2), rules(3));
}

#[test]
fn the_uses_of_then_count() {
    let spent = |spent| denied(1, DenyReason::NoGrant, basis(Some("{}"), spent));
    let rules = [configured(Some(CONFIG)), granted()];
    let pasts = all(
        rules.into_iter().chain([spent(1), spent(2)]),
        &PastArgs::default(),
    );
    assert!(permits(&pasts[0]));
    assert!(!permits(&pasts[1]));
}

#[test]
fn what_the_runner_offered_then_tightens_the_tool() {
    let offered = |egress| {
        let offer = OfferedTool {
            class: DataClass::Public,
            untrusted: false,
            effects: Effects::Read,
            egress,
            content: Content::Text,
        };
        let held = basis(Some("{}"), 0).map(|it| {
            Box::new(Basis {
                offer: Some(offer),
                ..*it
            })
        });
        denied(1, DenyReason::NoGrant, held)
    };
    let rules = [configured(Some(CONFIG)), granted()];
    let pasts = all(
        rules.into_iter().chain([offered(false), offered(true)]),
        &PastArgs::default(),
    );
    // The label is untrusted, and nothing carries it out.
    assert!(permits(&pasts[0]));
    assert!(!permits(&pasts[1]));
}

#[test]
fn what_cannot_be_judged_again_says_why() {
    let one = |records: Vec<Record>| {
        let pasts = all(records, &PastArgs::default());
        under_own_rules(&pasts[0]).err()
    };
    let no = DenyReason::NoGrant;
    let known = || configured(Some(CONFIG));
    assert_eq!(
        one(vec![known(), denied(1, no, basis(Some("{}"), 0))]),
        None
    );
    assert_eq!(one(vec![known(), denied(1, no, None)]), Some(Gone::Basis));
    assert_eq!(
        one(vec![known(), denied(1, no, basis(None, 0))]),
        Some(Gone::Arguments)
    );
    let full = || denied(1, no, basis(Some("{}"), 0));
    assert_eq!(one(vec![full()]), Some(Gone::Rules));
    assert_eq!(one(vec![configured(None), full()]), Some(Gone::Rules));
    assert_eq!(
        one(vec![known(), configured(None), full()]),
        Some(Gone::Rules),
        "rules of before"
    );
    let strange = Record::Configured {
        at: time(1),
        ruleset: Digest::from_bytes([9; 32]),
        text: Some("future = true".to_owned()),
        by: None,
    };
    assert_eq!(one(vec![known(), strange, full()]), Some(Gone::Rules));
}

#[test]
fn a_persons_yes_or_no_means_that_the_rules_asked() {
    let no = |reason| denied(1, reason, basis(Some("{}"), 0));
    let said = |record| all([record], &PastArgs::default())[0].said();
    assert_eq!(said(no(DenyReason::ApprovalRefused)), Said::Ask);
    assert_eq!(said(no(DenyReason::ApprovalExpired)), Said::Ask);
    assert_eq!(said(dispatched(1, Some("a1"))), Said::Ask);
    let grant = GrantId::new("more").unwrap();
    assert_eq!(said(dispatched(1, None)), Said::Permit { grant });
    let (reason, grant) = (DenyReason::NoGrant, None);
    assert_eq!(said(no(reason)), Said::Deny { reason, grant });
}

#[test]
fn filters_narrow_the_decisions_and_not_the_rules() {
    let wanted = PastArgs {
        since: Some(time(102)),
        until: Some(time(104)),
        ..PastArgs::default()
    };
    let no_grant = |call| denied(call, DenyReason::NoGrant, basis(Some("{}"), 0));
    let rules = [configured(Some(CONFIG)), granted()];
    let pasts = all(rules.into_iter().chain((1..=5).map(no_grant)), &wanted);
    let calls: Vec<u64> = pasts.iter().map(|past| past.call.call.0).collect();
    assert_eq!(calls, [2, 3]);
    assert!(pasts.iter().all(permits));
    let elsewhere = PastArgs {
        tool: Some(ToolName::new("write").unwrap()),
        ..PastArgs::default()
    };
    assert!(all([no_grant(1)], &elsewhere).is_empty());
}

/// What a replay says of these records, under another configuration if there is one.
fn report(records: impl IntoIterator<Item = Record>, other: Option<&str>) -> Report {
    let mut other = other.map(|text| Other::new(policy::Config::parse("c", text).unwrap()));
    let mut report = Report::default();
    for past in all(records, &PastArgs::default()) {
        report.take(&past, other.as_mut());
    }
    report
}

#[test]
fn a_decision_that_is_not_what_the_rules_of_its_time_say_is_a_fault() {
    let no_grant = denied(7, DenyReason::NoGrant, basis(Some("{}"), 0));
    let report = report([configured(Some(CONFIG)), granted(), no_grant], None);
    assert_eq!(report.exit().0, exit::INTERNAL);
    let shown = render::replay::all(&report);
    assert!(
        shown.contains("deny (no_grant) is recorded, and the rules of its time say permit"),
        "{shown}"
    );
    assert!(shown.contains("audit verify"), "{shown}");
}

#[test]
fn a_replay_shows_for_each_change_what_it_was_what_it_would_be_and_an_example() {
    let no_grant = |call, arguments| denied(call, DenyReason::NoGrant, basis(Some(arguments), 0));
    let allowed = format!("{CONFIG}\n[[grant]]\n{}", MORE.replace("more", "own"));
    let records = [
        configured(Some(CONFIG)),
        no_grant(1, "{}"),
        no_grant(2, "{\"path\":\"\u{202e}a\u{1b}[2J\"}"),
        denied(3, DenyReason::NoGrant, None),
        denied(4, DenyReason::NoGrant, basis(None, 0)),
    ];
    let report = report(records, Some(&allowed));
    assert_eq!(report.exit(), exit::NOT_DONE);
    let shown = render::replay::all(&report);
    assert!(shown.chars().all(|c| c == '\n' || (' '..='~').contains(&c)));
    insta::assert_snapshot!(shown);
    let json = serde_json::to_string_pretty(&render::replay::json(&report)).unwrap();
    insta::assert_snapshot!(
        "replay_json",
        json.lines()
            .map(ctl::out::ascii)
            .collect::<Vec<_>>()
            .join("\n")
    );
}

#[test]
fn long_arguments_of_an_example_are_cut_and_said_to_be() {
    let long = format!("{{\"path\":\"{}\"}}", "a".repeat(5_000));
    let no_grant = denied(1, DenyReason::NoGrant, basis(Some(&long), 0));
    let allowed = format!("{CONFIG}\n[[grant]]\n{}", MORE.replace("more", "own"));
    let report = report([configured(Some(CONFIG)), no_grant], Some(&allowed));
    let shown = render::replay::all(&report);
    assert!(shown.contains("aaa... (5011 bytes)"), "{shown}");
    assert!(shown.lines().all(|line| line.len() < 500));
}
