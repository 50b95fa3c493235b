use client::proto::{self, Envelope, Message, RoleKind, ToolResponse, Tools};
use client::{
    Client, Close, DataClass, DenyReason, Error, FailureCode, Label, Outcome, Push, Update,
};

use crate::fake::{self, Fake, result};

/// Answers a request for the tool `t` with what `script` says.
fn answering(script: impl Fn(u64) -> Vec<Envelope> + Send + Sync + 'static) -> Fake {
    fake::broker(RoleKind::Agent, move |asked, replies| {
        if let Message::ToolRequest(_) | Message::Cancel(_) = asked.msg {
            replies.extend(script(asked.id));
        }
    })
}

fn response(response: ToolResponse) -> Message {
    Message::ToolResponse(response)
}

async fn finish(broker: &Fake) -> Result<Outcome, Error> {
    let client = Client::connect(broker.path()).await.unwrap();
    client.call("s", 1, "t", "{}").await.unwrap().finish().await
}

#[tokio::test]
async fn a_call_tells_its_steps_in_order_and_then_nothing() {
    let broker = answering(|id| {
        vec![
            Envelope::more(
                id,
                response(ToolResponse::PendingApproval {
                    approval: "a7".to_owned(),
                    expires: proto::Timestamp::from_millis(9).unwrap(),
                }),
            ),
            Envelope::more(id, result("one")),
            Envelope::last(
                id,
                response(ToolResponse::Denied {
                    reason: DenyReason::NoGrant,
                }),
            ),
        ]
    });
    let client = Client::connect(broker.path()).await.unwrap();
    let mut call = client.call("s", 1, "t", "{}").await.unwrap();
    let mut steps = Vec::new();
    while let Some(update) = call.next().await.unwrap() {
        steps.push(update);
    }
    assert!(
        matches!(&steps[0], Update::Pending { approval, .. } if approval.as_str() == "a7"),
        "{steps:?}"
    );
    assert!(
        matches!(&steps[1], Update::Part { content, .. } if content == "one"),
        "{steps:?}"
    );
    assert_eq!(
        steps[2],
        Update::Final(Outcome::Denied(DenyReason::NoGrant))
    );
    assert_eq!(steps.len(), 3);
}

#[tokio::test]
async fn the_pieces_of_an_answer_are_joined_and_so_are_their_labels() {
    let broker = answering(|id| {
        let secret = response(ToolResponse::Result {
            content: "a".to_owned(),
            class: DataClass::Secret,
            untrusted: true,
            truncated: false,
        });
        vec![
            Envelope::more(id, secret),
            Envelope::more(id, result("b")),
            Envelope::last(id, result("c")),
        ]
    });
    let whole = Outcome::Result {
        content: "abc".to_owned(),
        label: Label::TOP,
        truncated: false,
    };
    assert_eq!(finish(&broker).await.unwrap(), whole);
}

#[tokio::test]
async fn a_failure_is_told_by_its_code_and_a_strange_one_counts_as_the_runners() {
    for (message, code, text) in [
        (
            "busy: calls in flight",
            FailureCode::Busy,
            "calls in flight",
        ),
        ("no such thing", FailureCode::RunnerFailed, "no such thing"),
    ] {
        let broker = answering(move |id| {
            let failed = ToolResponse::Failed {
                message: message.to_owned(),
            };
            vec![Envelope::last(id, response(failed))]
        });
        let outcome = finish(&broker).await.unwrap();
        assert_eq!(
            outcome,
            Outcome::Failed {
                code,
                text: text.to_owned()
            }
        );
    }
}

#[tokio::test]
async fn a_call_that_nobody_reads_holds_up_no_other() {
    // The first call gets a flood, the second one answer.
    let broker = fake::broker(RoleKind::Agent, |asked, replies| {
        let Message::ToolRequest(request) = &asked.msg else {
            return;
        };
        if request.call.0 == 1 {
            for done in 0..20_000 {
                let note = String::new();
                let progress = proto::Progress {
                    done,
                    total: 0,
                    note,
                };
                replies.push(Envelope::more(asked.id, Message::Progress(progress)));
                replies.push(Envelope::more(asked.id, result("x")));
            }
        }
        replies.push(Envelope::last(asked.id, result("end")));
    });
    let client = Client::connect(broker.path()).await.unwrap();
    let flood = client.call("s", 1, "t", "{}").await.unwrap();
    let other = client.call("s", 2, "t", "{}").await.unwrap();
    assert!(
        matches!(other.finish().await.unwrap(), Outcome::Result { content, .. } if content == "end")
    );
    let Outcome::Result { content, .. } = flood.finish().await.unwrap() else {
        panic!("no result")
    };
    assert_eq!(content.len(), 20_003);
}

#[tokio::test]
async fn many_calls_in_flight_each_get_their_own_answer() {
    // Answers come in the reverse order: the first request is answered last.
    let held = std::sync::Mutex::new(Vec::new());
    let broker = fake::broker(RoleKind::Agent, move |asked, replies| {
        if let Message::ToolRequest(request) = &asked.msg {
            let mut held = held.lock().unwrap();
            held.push(Envelope::last(asked.id, result(&request.call.to_string())));
            if held.len() == 200 {
                replies.extend(held.drain(..).rev());
            }
        }
    });
    let client = Client::connect(broker.path()).await.unwrap();
    let mut calls = Vec::new();
    for number in 0..200 {
        calls.push((number, client.call("s", number, "t", "{}").await.unwrap()));
    }
    for (number, call) in calls {
        let outcome = call.finish().await.unwrap();
        assert!(
            matches!(&outcome, Outcome::Result { content, .. } if *content == number.to_string()),
            "call {number} got {outcome:?}"
        );
    }
}

#[tokio::test]
async fn a_cancel_is_told_how_the_call_ended() {
    let broker = answering(|id| {
        let cancelled = FailureCode::Cancelled.response("by the agent");
        vec![Envelope::last(id, response(cancelled))]
    });
    let client = Client::connect(broker.path()).await.unwrap();
    let outcome = client.cancel("s", 1).await.unwrap().finish().await.unwrap();
    assert!(
        matches!(
            outcome,
            Outcome::Failed {
                code: FailureCode::Cancelled,
                ..
            }
        ),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_list_in_several_envelopes_comes_as_one() {
    let broker = fake::broker(RoleKind::Agent, |asked, replies| {
        if let Message::ListTools(_) = asked.msg {
            let tools = |name: &str| {
                Message::Tools(Tools {
                    tools: vec![listed(name)],
                })
            };
            replies.push(Envelope::more(asked.id, tools("a")));
            replies.push(Envelope::last(asked.id, tools("b")));
        }
    });
    let client = Client::connect(broker.path()).await.unwrap();
    let tools = client.list_tools("s").await.unwrap();
    assert_eq!(
        tools
            .iter()
            .map(|tool| tool.spec.name.as_str())
            .collect::<Vec<_>>(),
        ["a", "b"]
    );
}

fn listed(name: &str) -> proto::ListedTool {
    proto::ListedTool {
        spec: proto::ToolSpec {
            name: proto::ToolName::new(name).unwrap(),
            description: String::new(),
            input_schema: "{}".to_owned(),
            class: DataClass::Public,
            untrusted: false,
            effects: proto::Effects::Read,
            egress: false,
            content: proto::Content::Text,
        },
        access: proto::Access::Allow,
    }
}

#[tokio::test]
async fn a_join_gives_the_label_and_pushes_reach_who_listens() {
    let broker = fake::broker(RoleKind::Agent, |asked, replies| {
        if let Message::JoinSession(_) = asked.msg {
            replies.push(Envelope::last(
                0,
                Message::ToolsChanged(proto::ToolsChanged {}),
            ));
            let joined = proto::Joined { label: Label::TOP };
            replies.push(Envelope::last(asked.id, Message::Joined(joined)));
        }
    });
    let client = Client::connect(broker.path()).await.unwrap();
    let mut pushes = client.pushes();
    assert_eq!(
        client.join_session("a", "b", Close::Yes).await.unwrap(),
        Label::TOP
    );
    assert_eq!(pushes.next().await.unwrap(), Push::ToolsChanged);
}
