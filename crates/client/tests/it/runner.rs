use std::sync::mpsc;
use std::time::Duration;

use client::proto::{self, Envelope, Message, RoleKind, ToolResponse};
use client::{Answer, DataClass, Error, Failure, Label, Request, serve};

use crate::fake::{self, Fake};

/// Sends `requests` after the hello and gives what the runner says to them.
fn asking(max_frame: usize, requests: Vec<Envelope>) -> (Fake, mpsc::Receiver<Envelope>) {
    let (said, heard) = mpsc::channel();
    let said = std::sync::Mutex::new(said);
    let broker = fake::broker_with(RoleKind::Runner, max_frame, move |envelope, replies| {
        if let Message::Hello(_) = envelope.msg {
            replies.extend(requests.iter().cloned());
        } else {
            said.lock().unwrap().send(envelope.clone()).unwrap();
        }
    });
    (broker, heard)
}

async fn handler(request: Request) -> Result<Answer, Failure> {
    match request.tool.as_str() {
        "wait" => {
            request.cancelled().await;
            Err("ended when told to".into())
        }
        "piecewise" => {
            request
                .progress(1, 2, "half")
                .await
                .map_err(|error| error.to_string())?;
            let secret = Label {
                class: DataClass::Secret,
                untrusted: false,
            };
            request
                .part("one ", secret)
                .await
                .map_err(|error| error.to_string())?;
            Ok(Answer::untrusted("two", DataClass::Public))
        }
        "panic" => panic!("as the test wants"),
        "large" => Ok(Answer::trusted("ä\u{1}".repeat(3000), DataClass::Internal)),
        "endless" => Ok(Answer::trusted("a".repeat(8 << 20), DataClass::Internal)),
        _ => Ok(Answer::trusted(
            request.arguments.clone(),
            DataClass::Public,
        )),
    }
}

/// Serves in the background and gives the next `count` envelopes.
async fn hear(fake: (Fake, mpsc::Receiver<Envelope>), count: usize) -> Vec<Envelope> {
    let (broker, heard) = fake;
    let path = broker.path();
    let serving = tokio::spawn(async move { serve(path, None, handler).await });
    let envelopes = tokio::task::spawn_blocking(move || {
        let patience = Duration::from_secs(60);
        (0..count)
            .map(|_| {
                heard
                    .recv_timeout(patience)
                    .expect("the runner says something")
            })
            .collect()
    });
    let envelopes = envelopes.await.unwrap();
    serving.abort();
    envelopes
}

fn ask(id: u64, tool: &str) -> Envelope {
    Envelope::last(id, fake::request(tool, "{\"a\":1}"))
}

fn message(envelope: &Envelope) -> &str {
    let Message::ToolResponse(ToolResponse::Failed { message }) = &envelope.msg else {
        panic!("no failure: {envelope:?}");
    };
    message
}

#[tokio::test]
async fn a_cancel_reaches_its_request_while_others_run() {
    let cancel = Envelope::last(
        7,
        Message::Cancel(proto::Cancel {
            session: proto::SessionId::new("s").unwrap(),
            call: proto::CallId(1),
        }),
    );
    let requests = vec![ask(7, "wait"), ask(8, "wait"), ask(9, "echo"), cancel];
    let mut said = hear(asking(1 << 20, requests), 2).await;
    said.sort_by_key(|envelope| envelope.id);
    assert_eq!(
        said.iter().map(|envelope| envelope.id).collect::<Vec<_>>(),
        [7, 9]
    );
    assert_eq!(message(&said[0]), "ended when told to");
}

#[tokio::test]
async fn progress_and_parts_go_ahead_of_the_answer() {
    let said = hear(asking(1 << 20, vec![ask(1, "piecewise")]), 3).await;
    assert!(matches!(said[0].msg, Message::Progress(_)), "{:?}", said[0]);
    assert!(matches!(
        said[1].msg,
        Message::ToolResponse(ToolResponse::Result {
            class: DataClass::Secret,
            ..
        })
    ));
    assert_eq!(
        said.iter()
            .map(|envelope| envelope.r#final)
            .collect::<Vec<_>>(),
        [false, false, true]
    );
}

#[tokio::test]
async fn a_large_answer_is_cut_into_frames_and_loses_nothing() {
    let (broker, heard) = asking(proto::frame::MIN_MAX_FRAME, vec![ask(1, "large")]);
    let path = broker.path();
    let serving = tokio::spawn(async move { serve(path, None, handler).await });
    let whole = tokio::task::spawn_blocking(move || {
        let mut whole = String::new();
        loop {
            let envelope = heard
                .recv_timeout(Duration::from_secs(60))
                .expect("more of it");
            assert!(proto::encode(&envelope).len() <= proto::frame::MIN_MAX_FRAME);
            let Message::ToolResponse(ToolResponse::Result { content, .. }) = envelope.msg else {
                panic!("no result");
            };
            whole.push_str(&content);
            if envelope.r#final {
                return whole;
            }
        }
    });
    assert_eq!(whole.await.unwrap(), "ä\u{1}".repeat(3000));
    serving.abort();
}

#[tokio::test]
async fn a_cancel_is_heard_between_the_pieces_of_an_answer() {
    let (said, heard) = mpsc::channel();
    let said = std::sync::Mutex::new(said);
    let least = proto::frame::MIN_MAX_FRAME;
    let broker = fake::broker_with(
        RoleKind::Runner,
        least,
        move |envelope, replies| match &envelope.msg {
            Message::Hello(_) => replies.push(ask(1, "endless")),
            Message::ToolResponse(_) => {
                let cancel = proto::Cancel {
                    session: proto::SessionId::new("s").unwrap(),
                    call: proto::CallId(1),
                };
                replies.push(Envelope::last(1, Message::Cancel(cancel)));
                said.lock().unwrap().send(envelope.clone()).unwrap();
            }
            other => panic!("{other:?}"),
        },
    );
    let path = broker.path();
    let serving = tokio::spawn(async move { serve(path, None, handler).await });
    let last = tokio::task::spawn_blocking(move || {
        loop {
            let said = heard.recv_timeout(Duration::from_secs(60)).expect("more");
            if said.r#final {
                return said;
            }
        }
    });
    let last = last.await.unwrap();
    assert!(message(&last).starts_with("cancelled after "), "{last:?}");
    serving.abort();
}

#[tokio::test]
async fn a_stop_cancels_what_runs_and_sends_its_answers() {
    let (said, heard) = mpsc::channel();
    let said = std::sync::Mutex::new(said);
    let broker = fake::broker(RoleKind::Runner, move |envelope, replies| {
        if let Message::Hello(_) = envelope.msg {
            replies.push(ask(1, "wait"));
            replies.push(ask(2, "wait"));
        } else {
            said.lock().unwrap().send(envelope.clone()).unwrap();
        }
    });
    let runner = client::Runner::connect(broker.path()).await.unwrap();
    let begun = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let both = std::sync::Arc::clone(&begun);
    let stop = async move { both.acquire_many(2).await.unwrap().forget() };
    let served = runner.serve_until(stop, move |request| {
        begun.add_permits(1);
        handler(request)
    });
    served.await.expect("an end in order");
    let mut ids = Vec::new();
    for _ in 0..2 {
        let said = heard
            .recv_timeout(Duration::from_secs(60))
            .expect("an answer");
        assert_eq!(message(&said), "ended when told to");
        ids.push(said.id);
    }
    ids.sort_unstable();
    assert_eq!(ids, [1, 2]);
}

#[tokio::test]
async fn a_handler_that_panics_answers_and_the_others_go_on() {
    let mut said = hear(asking(1 << 20, vec![ask(1, "panic"), ask(2, "echo")]), 2).await;
    said.sort_by_key(|envelope| envelope.id);
    assert_eq!(message(&said[0]), "the tool broke off (a panic)");
    assert!(matches!(
        said[1].msg,
        Message::ToolResponse(ToolResponse::Result { .. })
    ));
}

#[tokio::test]
async fn serving_ends_in_order_when_the_broker_hangs_up() {
    let broker = fake::caller(3);
    assert!(serve(broker.path(), None, handler).await.is_ok());
}

#[tokio::test]
async fn an_offer_that_is_refused_as_a_whole_is_an_error_with_its_reasons() {
    let broker = fake::broker(RoleKind::Runner, |asked, replies| {
        if let Message::Offer(offer) = &asked.msg {
            let refused = offer.tools.iter().map(|tool| proto::NotTaken {
                name: tool.name.clone(),
                reason: "no such offer".to_owned(),
            });
            let offered = proto::Offered {
                accepted: Vec::new(),
                held: Vec::new(),
                refused: refused.collect(),
            };
            replies.push(Envelope::last(asked.id, Message::Offered(offered)));
        }
    });
    let tool = proto::ToolSpec {
        name: proto::ToolName::new("echo").unwrap(),
        description: String::new(),
        input_schema: "{}".to_owned(),
        class: DataClass::Public,
        untrusted: false,
        effects: proto::Effects::Read,
        egress: false,
        content: proto::Content::Text,
    };
    let error = serve(broker.path(), Some(vec![tool]), handler)
        .await
        .unwrap_err();
    assert!(
        matches!(&error, Error::OfferRefused { reasons } if reasons == "echo: no such offer"),
        "{error}"
    );
}

#[tokio::test]
async fn calls_that_come_before_the_welcome_are_served() {
    let (said, heard) = mpsc::channel();
    let said = std::sync::Mutex::new(said);
    let broker = fake::broker(RoleKind::Runner, move |envelope, replies| {
        if let Message::Hello(_) = envelope.msg {
            // They waited for this runner: the broker sends them as soon as it is there.
            replies.splice(0..0, (1..=300).map(|id| ask(id, "echo")));
        } else {
            said.lock().unwrap().send(envelope.clone()).unwrap();
        }
    });
    let mut ids: Vec<u64> = hear((broker, heard), 300)
        .await
        .iter()
        .map(|envelope| envelope.id)
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, (1..=300).collect::<Vec<_>>());
}
