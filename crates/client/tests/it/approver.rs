use client::proto::{
    self, Approvals, Control, ControlReply, Envelope, ListApprovals, Message, RoleKind,
};
use client::{Approver, Asked, Error, Operator, Scope};

use crate::fake;

#[tokio::test]
async fn an_answer_carries_the_digest_of_what_was_shown() {
    let (seen, replies_seen) = std::sync::mpsc::channel();
    let seen = std::sync::Mutex::new(seen);
    let broker = fake::broker(RoleKind::Approver, move |asked, replies| {
        if let Message::Hello(_) = &asked.msg {
            replies.push(Envelope::last(
                0,
                Message::ApprovalRequest(fake::approval("a1")),
            ));
        } else if let Message::ApprovalReply(reply) = &asked.msg {
            seen.lock().unwrap().send(reply.clone()).unwrap();
            let settled = proto::ApprovalSettled {
                approval: reply.approval.clone(),
                outcome: proto::Outcome::Counted,
                by: "alice".to_owned(),
                comment: String::new(),
            };
            replies.push(Envelope::last(asked.id, Message::ApprovalSettled(settled)));
        }
    });
    let mut approver = Approver::connect(broker.path()).await.unwrap();
    let Asked::Request(request) = approver.next().await.unwrap() else {
        panic!("no request")
    };
    let settled = approver
        .approve(&request, Scope::Once, "fine")
        .await
        .unwrap();
    assert_eq!(settled.outcome, proto::Outcome::Counted);
    let reply = replies_seen.recv().unwrap();
    assert_eq!(
        (reply.digest, reply.comment.as_str()),
        (request.digest, "fine")
    );
}

#[tokio::test]
async fn the_pending_ones_that_come_before_the_welcome_is_read_are_not_lost() {
    let broker = fake::broker(RoleKind::Approver, |asked, replies| {
        if let Message::Hello(_) = asked.msg {
            for name in ["a1", "a2", "a3"] {
                let request = Message::ApprovalRequest(fake::approval(name));
                replies.insert(0, Envelope::last(0, request));
            }
        }
    });
    let mut approver = Approver::connect(broker.path()).await.unwrap();
    for _ in 0..3 {
        assert!(matches!(approver.next().await.unwrap(), Asked::Request(_)));
    }
}

#[tokio::test]
async fn a_list_of_approvals_is_joined() {
    let broker = fake::broker(RoleKind::Approver, |asked, replies| {
        if let Message::ListApprovals(_) = asked.msg {
            let some = |name| {
                Message::Approvals(Approvals {
                    calls: Vec::new(),
                    pending: vec![fake::approval(name)],
                    settled: Vec::new(),
                })
            };
            replies.push(Envelope::more(asked.id, some("a1")));
            replies.push(Envelope::last(asked.id, some("a2")));
        }
    });
    let approver = Approver::connect(broker.path()).await.unwrap();
    let all = approver
        .list(ListApprovals { settled: false })
        .await
        .unwrap();
    assert_eq!(all.pending.len(), 2);
}

#[tokio::test]
async fn an_operator_gets_the_reply_or_the_reason() {
    let broker = fake::broker(RoleKind::Operator, |asked, replies| {
        if let Message::Control(Control::Reload {}) = asked.msg {
            let done = Message::ControlReply(ControlReply::Done {});
            replies.push(Envelope::last(asked.id, done));
        } else if let Message::Control(_) = asked.msg {
            let error = proto::WireError {
                code: proto::ErrorCode::BadMessage,
                detail: "no such session".to_owned(),
            };
            replies.push(Envelope::last(asked.id, Message::Error(error)));
        }
    });
    let operator = Operator::connect(broker.path()).await.unwrap();
    assert_eq!(
        operator.control(Control::Reload {}).await.unwrap(),
        [ControlReply::Done {}]
    );
    let error = operator.control(Control::Tools {}).await.unwrap_err();
    assert!(
        matches!(&error, Error::Rejected { detail, .. } if detail == "no such session"),
        "{error}"
    );
}
