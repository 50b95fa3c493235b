//! What the demo shows, scene by scene, and how each is checked.

use std::path::Path;
use std::time::{Duration, SystemTime};

use client::{Asked, Call, DataClass, DenyReason, Error, Outcome, Scope, Update};
use serde_json::json;

use super::stage::Stage;
use crate::{answer, explain, printable};

const SESSION: &str = "demo";
/// A step that takes longer does not happen.
const PATIENCE: Duration = Duration::from_secs(30);
const PLAN: &str = "1. milk  2. plan\n";
const ABOVE: &str = "   ";

/// Plays every scene; what did not happen.
pub(super) async fn play(stage: &Stage) -> Vec<String> {
    stage.say(
        "rolebroker demo: ",
        "a real daemon, a file runner, an agent, an approver.",
    );
    let scenes = [
        read_notes(stage).await,
        write_plan(stage).await,
        send_plan(stage).await,
        read_keys(stage).await,
        send_keys(stage).await,
        repeat_send(stage).await,
    ];
    scenes.into_iter().filter_map(Result::err).collect()
}

async fn read_notes(stage: &Stage) -> Result<(), String> {
    stage.say("1  ", "The agent reads notes.txt. A grant allows it:");
    let path = stage.file("notes.txt");
    let outcome = call(stage, 1, "read_file", json!({ "path": path })).await?;
    let (content, class) = result("reading notes.txt", outcome)?;
    stage.say(
        ABOVE,
        &format!("\"{}\" ({class})", printable::text(content.trim_end())),
    );
    check(
        content == on_disk(&path)?,
        "notes.txt was not read as it is",
    )
}

async fn write_plan(stage: &Stage) -> Result<(), String> {
    stage.say(
        "2  ",
        "It wants to write plan.txt. No file is written unseen; a person is asked:",
    );
    let path = stage.file("plan.txt");
    let arguments = json!({ "path": path, "content": PLAN });
    let mut call = start(stage, 2, "write_file", arguments).await?;
    let Update::Pending { approval, .. } = step(&mut call).await? else {
        return Err("nobody was asked before plan.txt was written".to_owned());
    };
    check(
        !path.exists(),
        "plan.txt was written before it was approved",
    )?;

    let mut approver = stage.approver.lock().await;
    let request = loop {
        match within(approver.next()).await? {
            Asked::Request(request) if request.approval == approval => break request,
            Asked::Request(_) | Asked::Settled(_) | Asked::Ended(_) | Asked::Missed(_) => {}
        }
    };
    let shown = printable::json(&request.arguments);
    stage.exactly("     ", &format!("{} {shown}", request.tool));
    let yes = if stage.has_somebody() {
        answer::ask("   Approve?")
            .await
            .map_err(|error| error.to_string())?
    } else {
        stage.say(
            ABOVE,
            "Nobody is at a terminal, so the demo's own approver says yes.",
        );
        true
    };
    if !yes {
        within(approver.refuse(&request, "in the demo")).await?;
        let outcome = finish(call).await?;
        check(
            outcome == Outcome::Denied(DenyReason::ApprovalRefused) && !path.exists(),
            "a refused write was not denied",
        )?;
        stage.say(ABOVE, "Denied: approval_refused. There is no plan.txt.");
        return Err("the write of plan.txt: you refused it, and so it should be".to_owned());
    }
    within(approver.approve(&request, Scope::Once, "in the demo")).await?;
    let outcome = finish(call).await?;
    result("writing plan.txt", outcome)?;
    check(
        on_disk(&path)? == PLAN,
        "plan.txt does not hold what was approved",
    )?;
    stage.say(
        ABOVE,
        &format!(
            "Approved, and only then written: plan.txt has {} bytes.",
            PLAN.len()
        ),
    );
    Ok(())
}

async fn send_plan(stage: &Stage) -> Result<(), String> {
    stage.say(
        "3  ",
        "It sends a message out of the machine. Allowed, up to what is internal:",
    );
    let outcome = call(stage, 3, "send", message("the plan is ready")).await?;
    let (content, class) = result("sending a message", outcome)?;
    stage.say(
        ABOVE,
        &format!("\"{}\" ({class})", printable::text(&content)),
    );
    check(
        stage.sends() == 1 && stage.outbox().contains("the plan is ready"),
        "the message is not in the outbox",
    )
}

async fn read_keys(stage: &Stage) -> Result<(), String> {
    stage.say(
        "4  ",
        "It reads secret/keys.txt. Allowed too, but now the session has seen a secret:",
    );
    let path = stage.file("secret/keys.txt");
    let outcome = call(stage, 4, "read_file", json!({ "path": path })).await?;
    let (content, class) = result("reading secret/keys.txt", outcome)?;
    check(
        content == on_disk(&path)?,
        "secret/keys.txt was not read as it is",
    )?;
    check(
        class == DataClass::Secret,
        "secret/keys.txt does not count as secret",
    )?;
    stage.say(ABOVE, &format!("{} bytes ({class})", content.len()));
    Ok(())
}

async fn send_keys(stage: &Stage) -> Result<(), String> {
    stage.say("5  ", "Somebody talked it into sending what it read:");
    let outcome = call(stage, 5, "send", message("api key: 1234")).await?;
    let reason = DenyReason::TaintTooHigh;
    check(
        outcome == Outcome::Denied(reason),
        "sending a secret was not denied as taint_too_high",
    )?;
    check(
        stage.sends() <= 1 && !stage.outbox().contains("1234"),
        "the secret is in the outbox",
    )?;
    let means = explain::denied(reason);
    stage.say(ABOVE, &format!("Denied: {} - {means}.", reason.as_str()));
    let count = stage.outbox().lines().count();
    stage.say(
        ABOVE,
        &format!("Messages in the outbox: {count}, as before; and no key in it."),
    );
    Ok(())
}

async fn repeat_send(stage: &Stage) -> Result<(), String> {
    stage.say(
        "6  ",
        "It asks for call 3 again, as after a lost connection:",
    );
    let (before, ran) = (modified(stage.root()), stage.sends());
    let outcome = call(stage, 3, "send", message("the plan is ready")).await?;
    let (content, _) = result("repeating a message", outcome)?;
    check(
        content == "sent message 1",
        "the repeated call got another answer",
    )?;
    check(
        stage.sends() == ran && ran == 1 && modified(stage.root()) == before,
        "the repeated call was sent again",
    )?;
    stage.say(
        ABOVE,
        &format!("\"{content}\": the stored answer. `send` ran {ran} time."),
    );
    Ok(())
}

fn message(text: &str) -> serde_json::Value {
    json!({ "to": "alice@example.org", "text": text })
}

async fn call(
    stage: &Stage,
    number: u64,
    tool: &str,
    arguments: serde_json::Value,
) -> Result<Outcome, String> {
    finish(start(stage, number, tool, arguments).await?).await
}

async fn start(
    stage: &Stage,
    number: u64,
    tool: &str,
    arguments: serde_json::Value,
) -> Result<Call, String> {
    within(
        stage
            .client
            .call(SESSION, number, tool, arguments.to_string()),
    )
    .await
}

async fn finish(call: Call) -> Result<Outcome, String> {
    within(call.finish()).await
}

async fn step(call: &mut Call) -> Result<Update, String> {
    within(call.next())
        .await?
        .ok_or_else(|| "a call ended without an outcome".to_owned())
}

async fn within<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, String> {
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(_) => Err(format!("an answer within {} s", PATIENCE.as_secs())),
    }
}

fn result(what: &str, outcome: Outcome) -> Result<(String, DataClass), String> {
    match outcome {
        Outcome::Result { content, label, .. } => Ok((content, label.class)),
        Outcome::Denied(reason) => Err(format!("{what}: denied, {}", reason.as_str())),
        Outcome::Failed { code, text } => Err(format!(
            "{what}: failed, {code}: {}",
            printable::text(&text)
        )),
    }
}

fn check(happened: bool, otherwise: &str) -> Result<(), String> {
    if happened {
        Ok(())
    } else {
        Err(otherwise.to_owned())
    }
}

fn on_disk(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn modified(root: &Path) -> Option<SystemTime> {
    std::fs::metadata(root.join("outbox.txt"))
        .and_then(|meta| meta.modified())
        .ok()
}
