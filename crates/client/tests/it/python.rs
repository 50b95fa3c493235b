//! The example in Python (docs/examples/rolebroker.py), run as a command; needs `python3`.

use std::path::Path;
use std::process::{Command, Output};

use client::proto::{self, Approvals, Envelope, Message, RoleKind, ToolResponse};

use crate::fake::{self, Fake, result};

fn python(broker: &Fake, command: &str, more: &[&str]) -> Output {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/rolebroker.py");
    Command::new("python3")
        .arg(example)
        .arg(command)
        .arg(broker.path())
        .args(more)
        .output()
        .expect("python3 runs")
}

#[track_caller]
fn ends(output: &Output, code: i32, said: &str) {
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{out}{err}");
    assert!(out.contains(said) || err.contains(said), "{out}{err}");
}

#[test]
fn its_call_joins_parts_and_labels_and_ends_as_the_call_did() {
    let broker = fake::broker(RoleKind::Agent, |asked, replies| {
        let Message::ToolRequest(request) = &asked.msg else {
            return;
        };
        let secret = ToolResponse::Result {
            content: "ä\n".to_owned(),
            class: proto::DataClass::Secret,
            untrusted: true,
            truncated: false,
        };
        match request.tool.as_str() {
            "read" => {
                replies.push(Envelope::more(asked.id, Message::ToolResponse(secret)));
                replies.push(Envelope::last(asked.id, result("b")));
            }
            "deny" => {
                let reason = proto::DenyReason::NoGrant;
                let denied = Message::ToolResponse(ToolResponse::Denied { reason });
                replies.push(Envelope::last(asked.id, denied));
            }
            _ => {
                let failed = proto::FailureCode::Busy.response("calls");
                replies.push(Envelope::last(asked.id, Message::ToolResponse(failed)));
            }
        }
    });
    let call = |tool| python(&broker, "call", &["s", "1", tool, "{\"é\":1}"]);
    ends(
        &call("read"),
        0,
        r#""content": "\u00e4\nb", "class": "secret", "untrusted": true"#,
    );
    ends(&call("deny"), 3, "no_grant");
    ends(&call("else"), 4, "busy: calls");
    ends(&python(&broker, "call", &["s"]), 64, "Exit codes");
}

#[test]
fn its_runner_answers_every_request_until_the_broker_hangs_up() {
    // `caller` hangs up when all are answered, and only then does the command end.
    ends(&python(&fake::caller(20), "serve", &[]), 0, "");
}

#[test]
fn its_approver_answers_what_it_listed() {
    let broker = fake::broker(RoleKind::Approver, |asked, replies| {
        if let Message::ListApprovals(_) = asked.msg {
            let approvals = Approvals {
                calls: Vec::new(),
                pending: vec![fake::approval("a1")],
                settled: Vec::new(),
            };
            replies.push(Envelope::last(asked.id, Message::Approvals(approvals)));
        } else if let Message::ApprovalReply(reply) = &asked.msg {
            assert_eq!(reply.digest, fake::approval("a1").digest);
            let settled = proto::ApprovalSettled {
                approval: reply.approval.clone(),
                outcome: proto::Outcome::Approved,
                by: "alice".to_owned(),
                comment: reply.comment.clone(),
            };
            replies.push(Envelope::last(asked.id, Message::ApprovalSettled(settled)));
        }
    });
    ends(&python(&broker, "approvals", &[]), 0, "a1");
    ends(&python(&broker, "approve", &["a1", "fine"]), 0, "\"fine\"");
    ends(&python(&broker, "approve", &["a2"]), 1, "no approval a2");
}
