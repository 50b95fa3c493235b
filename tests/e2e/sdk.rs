//! The client library as agent, runner, approver and operator, all against the daemon.

use std::time::Duration;

use client::proto::{Control, ControlReply};
use client::{
    Answer, Approver, Asked, Client, Close, DataClass, DenyReason, Failure, Label, Operator,
    Outcome, Request, Runner, Scope, Update,
};

use crate::harness::{Daemon, PATIENCE, Place};

/// Runs `test` on a runtime of its own, with an end to its patience.
fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let ended = runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await });
    // Handlers that never end are dropped with it.
    runtime.shutdown_timeout(Duration::ZERO);
    ended.expect("it ends in time")
}

/// The tools of `files`, each with something of its own.
async fn handle(request: Request) -> Result<Answer, Failure> {
    let public = Label::BOTTOM;
    match request.tool.as_str() {
        "read" => {
            let told = request.progress(1, 2, "half").await;
            told.map_err(|error| error.to_string())?;
            let sent = request.part("one, ", public).await;
            sent.map_err(|error| error.to_string())?;
            Ok(Answer::trusted("two", DataClass::Internal))
        }
        "put" => {
            let told = request.progress(0, 0, "begun").await;
            told.map_err(|error| error.to_string())?;
            request.cancelled().await;
            Err("stopped when told to".into())
        }
        "diary" => Ok(Answer::untrusted("dear diary", DataClass::Secret)),
        _ => Ok(Answer::trusted(request.arguments, DataClass::Public)),
    }
}

async fn serve(daemon: &Daemon) {
    let runner = Runner::connect(daemon.socket("files")).await;
    let runner = runner.expect("connects");
    tokio::spawn(runner.serve(handle));
}

async fn agent(daemon: &Daemon) -> Client {
    let agent = Client::connect(daemon.socket("bot")).await;
    agent.expect("connects")
}

/// Waits until all these calls of `bot` are with the daemon.
async fn arrived(daemon: &Daemon, calls: u64) {
    let admin = Operator::connect(daemon.socket("admin")).await;
    let admin = admin.expect("connects");
    loop {
        let replies = match admin.control(Control::Status {}).await {
            Ok(replies) => replies,
            // One that asks too often is told so; it asks again.
            Err(client::Error::Rejected { .. }) => continue,
            Err(error) => panic!("{error}"),
        };
        let [ControlReply::Status { roles, .. }] = &replies[..] else {
            panic!("{replies:?}")
        };
        let bot = roles.iter().find(|role| role.role.as_str() == "bot");
        if bot.expect("the role").in_flight == calls {
            return;
        }
    }
}

async fn outcome(agent: &Client, session: &str, call: u64, tool: &str) -> Outcome {
    let call = agent.call(session, call, tool, "{}").await;
    call.expect("sent").finish().await.expect("an end")
}

fn result(content: &str, class: DataClass, untrusted: bool) -> Outcome {
    Outcome::Result {
        content: content.to_owned(),
        label: Label { class, untrusted },
        truncated: false,
    }
}

#[test]
fn progress_and_parts_come_before_the_end_and_a_repeat_gets_them_joined() {
    let daemon = Place::new().start();
    run(async {
        serve(&daemon).await;
        let agent = agent(&daemon).await;
        let mut call = agent.call("s", 1, "read", "{}").await.expect("sent");
        let mut seen = Vec::new();
        while let Some(update) = call.next().await.expect("an update") {
            seen.push(update);
        }
        let progress = Update::Progress {
            done: 1,
            total: 2,
            note: "half".to_owned(),
        };
        assert_eq!(seen[0], progress);
        let part = Update::Part {
            content: "one, ".to_owned(),
            label: Label::BOTTOM,
        };
        assert_eq!(seen[1], part);
        assert!(matches!(seen[2], Update::Final(_)), "{seen:?}");
        assert_eq!(
            outcome(&agent, "s", 1, "read").await,
            result("one, two", DataClass::Internal, false)
        );
    });
}

#[test]
fn a_cancel_reaches_the_runner_and_what_it_says_is_the_answer() {
    let daemon = Place::new().setting("cancel_grace = \"1h\"").start();
    run(async {
        serve(&daemon).await;
        let agent = agent(&daemon).await;
        let mut call = agent.call("s", 1, "put", "{}").await.expect("sent");
        let begun = call.next().await.expect("an update");
        assert!(matches!(begun, Some(Update::Progress { .. })), "{begun:?}");
        let cancel = agent.cancel("s", 1).await.expect("sent");
        let stopped = call.finish().await.expect("an end");
        assert!(
            matches!(&stopped, Outcome::Failed { text, .. } if text == "stopped when told to"),
            "{stopped:?}"
        );
        assert_eq!(cancel.finish().await.expect("an end"), stopped);
    });
}

#[test]
fn calls_that_waited_for_a_runner_are_served_though_it_makes_an_offer_first() {
    const CALLS: u64 = 300;
    let quota = "quota = { in_flight = 512 }";
    let place = Place::new().role("bot", quota);
    let place = place.role("files", "concurrency = 400");
    let daemon = place.setting("runner_wait = \"1h\"").start();
    run(async {
        let agent = agent(&daemon).await;
        let mut calls = Vec::new();
        for number in 1..=CALLS {
            calls.push(agent.call("s", number, "lines", "{}").await.expect("sent"));
        }
        arrived(&daemon, CALLS).await;
        let runner = Runner::connect(daemon.socket("files")).await;
        let runner = runner.expect("connects");
        let offered = runner.offers().offer(Vec::new()).await;
        offered.expect("the broker answers");
        tokio::spawn(runner.serve(handle));
        for call in calls {
            let outcome = call.finish().await.expect("an end");
            assert_eq!(outcome, result("{}", DataClass::Public, false));
        }
    });
}

#[test]
fn an_approver_sees_the_call_and_its_word_counts() {
    let daemon = Place::new().start();
    run(async {
        serve(&daemon).await;
        let agent = agent(&daemon).await;
        let mut boss = Approver::connect(daemon.socket("boss"))
            .await
            .expect("connects");
        let call = agent.call("ask-1", 1, "order", r#"{"what":"tea"}"#).await;
        let Asked::Request(request) = boss.next().await.expect("a push") else {
            panic!("no request")
        };
        assert_eq!(request.arguments, r#"{"what":"tea"}"#);
        let settled = boss.approve(&request, Scope::Once, "for the guests").await;
        assert_eq!(settled.expect("settled").comment, "for the guests");
        assert_eq!(
            call.expect("sent").finish().await.expect("an end"),
            result(r#"{"what":"tea"}"#, DataClass::Public, false)
        );
        let call = agent.call("ask-1", 2, "order", r#"{"what":"tea"}"#).await;
        let refused = loop {
            if let Asked::Request(request) = boss.next().await.expect("a push") {
                break boss.refuse(&request, "enough").await;
            }
        };
        refused.expect("settled");
        assert_eq!(
            call.expect("sent").finish().await.expect("an end"),
            Outcome::Denied(DenyReason::ApprovalRefused)
        );
    });
}

#[test]
fn a_label_follows_a_join_and_falls_by_an_operators_word_only() {
    let daemon = Place::new().start();
    run(async {
        serve(&daemon).await;
        let agent = agent(&daemon).await;
        let denied = Outcome::Denied(DenyReason::TaintTooHigh);
        let secret = Label {
            class: DataClass::Secret,
            untrusted: true,
        };
        outcome(&agent, "s", 1, "diary").await;
        assert_eq!(outcome(&agent, "s", 2, "send").await, denied);
        // Compaction: the new session has seen what the old one saw.
        let label = agent.join_session("s", "t", Close::Yes).await;
        assert_eq!(label.expect("joined"), secret);
        assert_eq!(outcome(&agent, "t", 1, "send").await, denied);
        // The closed one's name does not wash it off, nor does a new connection.
        let again = self::agent(&daemon).await;
        assert_eq!(outcome(&again, "s", 3, "send").await, denied);
        let admin = Operator::connect(daemon.socket("admin")).await;
        let admin = admin.expect("connects");
        let bot: client::proto::RoleName = "bot".parse().expect("a role");
        let endorse = Control::Endorse {
            role: bot.clone(),
            session: "t".to_owned(),
            reason: "it was a drill".to_owned(),
        };
        admin.control(endorse).await.expect("done");
        assert_eq!(outcome(&again, "t", 2, "send").await, denied);
        let declassify = Control::Declassify {
            role: bot,
            session: "t".to_owned(),
            class: DataClass::Public,
            reason: "it was a drill".to_owned(),
        };
        admin.control(declassify).await.expect("done");
        assert_eq!(
            outcome(&again, "t", 3, "send").await,
            result("{}", DataClass::Public, false)
        );
    });
}

#[test]
fn an_approval_for_a_session_covers_the_same_and_nothing_else() {
    let grant = "\n[[grant]]\nid = \"standing\"\nroles = [\"*\"]\nsessions = [\"std-*\"]\n\
        tools = [\"order\"]\neffect = \"ask\"\nwhere = { \"/what\" = { any = true } }\n\
        standing_ttl = \"1h\"\nstanding_uses = 5\n";
    let daemon = Place::new().and(grant).start();
    run(async {
        serve(&daemon).await;
        let agent = agent(&daemon).await;
        let boss = Approver::connect(daemon.socket("boss")).await;
        let mut boss = boss.expect("connects");
        let order = |call, what: &str| {
            let arguments = format!(r#"{{"what":"{what}"}}"#);
            agent.call("std-1", call, "order", arguments)
        };
        let first = order(1, "tea").await.expect("sent");
        let Asked::Request(request) = boss.next().await.expect("a push") else {
            panic!("no request")
        };
        boss.approve(&request, Scope::Session, "")
            .await
            .expect("settled");
        first.finish().await.expect("an end");
        let mut same = order(2, "tea").await.expect("sent");
        let step = same.next().await.expect("a step");
        assert!(
            matches!(step, Some(Update::Final(Outcome::Result { .. }))),
            "{step:?}"
        );
        let mut other = order(3, "cake").await.expect("sent");
        let step = other.next().await.expect("a step");
        assert!(matches!(step, Some(Update::Pending { .. })), "{step:?}");
    });
}

#[test]
fn a_role_whose_label_is_one_for_all_is_judged_by_what_any_session_saw() {
    let text = include_str!("world.toml");
    let text = text.replacen("label_scope = \"session\"", "label_scope = \"role\"", 1);
    let daemon = Place::with(&text).start();
    run(async {
        serve(&daemon).await;
        let agent = agent(&daemon).await;
        assert_eq!(
            outcome(&agent, "s", 1, "send").await,
            result("{}", DataClass::Public, false)
        );
        outcome(&agent, "t", 1, "diary").await;
        let denied = Outcome::Denied(DenyReason::TaintTooHigh);
        assert_eq!(outcome(&agent, "s", 2, "send").await, denied);
        assert_eq!(outcome(&agent, "new", 1, "send").await, denied);
    });
}
