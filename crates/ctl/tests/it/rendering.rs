use client::proto::control::RoleStatus;
use client::proto::{self, ControlReply, LabelScope, Raise, RoleKind, RoleName, Timestamp};
use client::{DataClass, DenyReason, FailureCode, Label, Outcome, Scope};
use ctl::explain::Asked;
use ctl::{call, render};

fn time(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis).unwrap()
}

fn asked() -> proto::ApprovalRequest {
    proto::ApprovalRequest {
        approval: proto::ApprovalId::new("a7").unwrap(),
        role: RoleName::new("bot").unwrap(),
        session: proto::SessionId::new("mm-42").unwrap(),
        call: proto::CallId(17),
        tool: proto::ToolName::new("write_file").unwrap(),
        arguments: "{\"path\":\"/srv/notes/\u{202e}a\"}".to_owned(),
        label: Label {
            class: DataClass::Internal,
            untrusted: true,
        },
        raised_by: vec![Raise {
            call: proto::CallId(3),
            tool: proto::ToolName::new("mail.search").unwrap(),
            label: Label {
                class: DataClass::Internal,
                untrusted: true,
            },
        }],
        grants: vec![proto::AskingGrant {
            grant: proto::GrantId::new("notes").unwrap(),
            why: "seen\u{1b}[8m first".to_owned(),
            pointers: vec!["/path".to_owned()],
        }],
        scopes: vec![Scope::Once, Scope::Session],
        quorum: 2,
        digest: proto::Digest::from_bytes([7; 32]),
        created: time(0),
        expires: time(600_000),
    }
}

#[test]
fn an_approval_shows_all_that_is_decided_on_and_no_raw_character_of_it() {
    let shown = render::request(&asked(), 2000, 79).join("\n");
    insta::assert_snapshot!(shown);
    assert!(shown.chars().all(|c| c == '\n' || !c.is_control()));
}

#[test]
fn a_lapsed_approval_is_said_to_be() {
    assert_eq!(render::lapses(time(5), 6), "has lapsed");
    assert_eq!(render::lapses(time(90_061_000), 0), "lapses in 1d 1h");
    assert_eq!(render::lapses(time(3_700_000), 0), "lapses in 1h 1m");
}

#[test]
fn a_settled_approval_says_by_whom_and_why() {
    let settled = proto::ApprovalSettled {
        approval: proto::ApprovalId::new("a7").unwrap(),
        outcome: proto::Outcome::Refused,
        by: "alice".to_owned(),
        comment: "not\nnow".to_owned(),
    };
    assert_eq!(
        render::settled(&settled),
        "a7  refused, by alice: not\\u{a}now"
    );
}

const ASKED: Asked<'static> = Asked {
    role: "bot",
    session: "s",
    call: 1,
    tool: "read",
    label_scope: LabelScope::Session,
};

#[test]
fn what_to_type_after_a_denial_names_the_call() {
    let text = call::denied_text(DenyReason::NoGrant, &ASKED);
    for command in [
        "`rolebroker explain bot s 1`",
        "`rolebroker suggest bot s 1`",
    ] {
        assert!(text.contains(command), "{text}");
    }
    let role = Asked {
        label_scope: LabelScope::Role,
        ..ASKED
    };
    let text = call::denied_text(DenyReason::TaintTooHigh, &role);
    assert!(
        text.contains("`rolebroker endorse bot '*' --reason WHY`"),
        "{text}"
    );
    assert!(!text.contains("new session"), "{text}");
}

#[test]
fn every_reason_and_code_is_explained_and_says_what_to_do() {
    for reason in [
        DenyReason::NoGrant,
        DenyReason::GrantExpired,
        DenyReason::TaintTooHigh,
        DenyReason::DeniedByGrant,
        DenyReason::ApprovalRefused,
        DenyReason::ApprovalExpired,
    ] {
        let text = call::denied_text(reason, &ASKED);
        assert!(text.contains("next: "), "{text}");
        assert!(text.starts_with(&format!("denied: {} - ", reason.as_str())));
    }
    for code in FailureCode::ALL {
        let text = call::failed_text(code, "bad\u{7}", &ASKED);
        assert!(
            text.contains("it said: bad\\u{7}") && text.contains("next: "),
            "{text}"
        );
    }
}

#[test]
fn the_json_of_a_call_has_a_stable_shape() {
    let result = Outcome::Result {
        content: "x".to_owned(),
        label: Label::BOTTOM,
        truncated: false,
    };
    assert_eq!(
        call::json(&ASKED, &result),
        r#"{"status":"result","session":"s","call":1,"content":"x","class":"public","untrusted":false,"truncated":false}"#
    );
    let denied = call::json(&ASKED, &Outcome::Denied(DenyReason::NoGrant));
    assert!(
        denied.starts_with(
            r#"{"status":"denied","session":"s","call":1,"reason":"no_grant","means":"#
        ),
        "{denied}"
    );
    let failed = Outcome::Failed {
        code: FailureCode::Busy,
        text: "calls".to_owned(),
    };
    let failed = call::json(&ASKED, &failed);
    assert!(
        failed.starts_with(
            r#"{"status":"failed","session":"s","call":1,"code":"busy","text":"calls","#
        ),
        "{failed}"
    );
}

#[test]
fn the_status_shows_warnings_and_every_role() {
    let reply = ControlReply::Status {
        version: "0.1.0".to_owned(),
        started: time(0),
        now: time(61_000),
        ruleset: proto::Digest::from_bytes([1; 32]),
        draining: true,
        records: 8,
        head: proto::Digest::from_bytes([2; 32]),
        warnings: vec!["roles are not separated".to_owned()],
        roles: vec![RoleStatus {
            role: RoleName::new("bot").unwrap(),
            kind: RoleKind::Agent,
            connections: 1,
            in_flight: 2,
            sessions: 3,
            approvals: 4,
            waiting_bytes: 5000,
            stored_bytes: 6 << 20,
            dropped_replies: 7,
        }],
    };
    let shown = render::reply(&reply, 61_000);
    for part in [
        "draining",
        "up 1m 1s",
        "record  8 records, head 0202",
        "bot: 7 replies were dropped",
        "warning: roles are not separated",
        "4 KiB",
        "6 MiB",
    ] {
        assert!(shown.contains(part), "{part} is not in:\n{shown}");
    }
    assert!(shown.lines().all(|line| line.len() <= 90), "{shown}");
    assert_eq!(render::reply(&ControlReply::Done {}, 0), "done\n");
}
