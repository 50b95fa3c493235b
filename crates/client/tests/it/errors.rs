use client::proto::{self, Envelope, Message, RoleKind};
use client::{Client, Error};

use crate::fake;

#[tokio::test]
async fn a_missing_socket_says_which_and_how_to_start_the_daemon() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bot.sock");
    let error = Client::connect(&path).await.err().unwrap().to_string();
    assert!(error.contains(path.to_str().unwrap()), "{error}");
    assert!(error.contains("is rolebrokerd running"), "{error}");
}

#[tokio::test]
async fn a_socket_on_which_nobody_listens_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bot.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let error = Client::connect(&path).await.err().unwrap().to_string();
    assert!(error.contains("start it with"), "{error}");
}

#[tokio::test]
async fn a_peer_that_is_not_admitted_is_told_its_uid() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bot.sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let error = Client::connect(&path).await.err().unwrap();
    let Error::NotAdmitted { uid: Some(uid), .. } = &error else {
        panic!("{error}")
    };
    assert!(
        error
            .to_string()
            .contains(&format!("does not admit uid {uid}")),
        "{error}"
    );
}

#[tokio::test]
async fn a_role_of_another_kind_is_named() {
    let broker = fake::broker(RoleKind::Runner, |_, _| {});
    let error = Client::connect(broker.path())
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("a runner role `fake`, and an agent role is needed"),
        "{error}"
    );
}

#[tokio::test]
async fn every_open_call_hears_of_a_lost_connection_and_so_does_the_next() {
    let broker = fake::broker(RoleKind::Agent, |asked, replies| {
        if matches!(&asked.msg, Message::ToolRequest(request) if request.call.0 == 2) {
            let error = proto::WireError {
                code: proto::ErrorCode::BadFrame,
                detail: "a length of 0".to_owned(),
            };
            replies.push(Envelope::last(0, Message::Error(error)));
        }
    });
    let client = Client::connect(broker.path()).await.unwrap();
    let first = client.call("s", 1, "t", "{}").await.unwrap();
    let second = client.call("s", 2, "t", "{}").await.unwrap();
    for call in [first, second] {
        let error = call.finish().await.unwrap_err().to_string();
        assert!(error.contains("BadFrame: a length of 0"), "{error}");
        assert!(
            error.contains("repeat a call under the same session and number"),
            "{error}"
        );
    }
    let third = client.call("s", 3, "t", "{}").await.err().unwrap();
    assert!(matches!(third, Error::Lost { .. }), "{third}");
}

#[tokio::test]
async fn a_request_over_the_frame_limit_is_not_sent() {
    let broker = fake::broker_with(RoleKind::Agent, proto::frame::MIN_MAX_FRAME, |_, _| {});
    let client = Client::connect(broker.path()).await.unwrap();
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(5000));
    let error = client.call("s", 1, "t", long).await.err().unwrap();
    assert!(
        matches!(error, Error::TooLarge { limit: 4096, .. }),
        "{error}"
    );
}

#[tokio::test]
async fn an_answer_that_grows_over_the_frame_limit_breaks_only_its_call() {
    let broker = fake::broker_with(
        RoleKind::Agent,
        proto::frame::MIN_MAX_FRAME,
        |asked, replies| {
            let Message::ToolRequest(request) = &asked.msg else {
                return;
            };
            if request.call.0 == 1 {
                for _ in 0..3 {
                    replies.push(Envelope::more(asked.id, fake::result(&"x".repeat(2000))));
                }
            }
            replies.push(Envelope::last(asked.id, fake::result("end")));
        },
    );
    let client = Client::connect(broker.path()).await.unwrap();
    let large = client.call("s", 1, "t", "{}").await.unwrap();
    let small = client.call("s", 2, "t", "{}").await.unwrap();
    assert!(matches!(
        large.finish().await,
        Err(Error::Misbehaved { .. })
    ));
    assert!(small.finish().await.is_ok());
}

#[tokio::test]
async fn a_badly_named_session_is_refused_here() {
    let broker = fake::reader();
    let client = Client::connect(broker.path()).await.unwrap();
    let error = client.call("no spaces", 1, "t", "{}").await.err().unwrap();
    assert!(
        error.to_string().starts_with("a session must match"),
        "{error}"
    );
}
