//! One request: which tool it is for, and what becomes of it when it is cancelled.

use std::sync::Arc;
use std::time::{Duration, Instant};

use client::{Answer, Failure, Request};
use runner::command::{Command, Runs};
use runner::{FILE_LIMIT, Folders, Watch};
use tokio_util::sync::CancellationToken;

/// How long a file system may leave a tool without an answer, over the tool's own limit.
const FILE_SLACK: Duration = Duration::from_secs(5);

/// What is served.
pub(crate) struct Tools {
    pub(crate) folders: Arc<Folders>,
    pub(crate) commands: Vec<Command>,
    pub(crate) runs: Runs,
}

pub(crate) async fn work(tools: Arc<Tools>, request: Request) -> Result<Answer, Failure> {
    if request.is_cancelled() {
        return Err("cancelled before it began".into());
    }
    let begun = Instant::now();
    let mut commands = tools.commands.iter();
    let result = match commands.find(|command| command.name.as_str() == request.tool) {
        Some(command) => run(&tools, command, &request).await,
        None => file(&tools, &request).await,
    };
    let outcome = if result.is_ok() { "result" } else { "failed" };
    tracing::debug!(
        event = "call",
        session = %request.session,
        call = request.call.0,
        tool = request.tool.as_str(),
        outcome,
        elapsed_us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX),
    );
    result
}

async fn run(tools: &Tools, command: &Command, request: &Request) -> Result<Answer, Failure> {
    // What an argument names is opened, and a file system may be slow.
    let (folders, wanted) = (Arc::clone(&tools.folders), command.clone());
    let arguments = request.arguments.clone();
    let filling = tokio::task::spawn_blocking(move || wanted.fill(&folders, &arguments));
    let filled = tokio::time::timeout(FILE_SLACK, filling)
        .await
        .map_err(|_| Failure("the file system gave no answer in time".to_owned()))?
        .map_err(|_| Failure("the tool broke off".to_owned()))??;
    let tell = |seconds| async move {
        // A broker that has gone cancels the call by that.
        let _ = request.progress(seconds, 0, "running").await;
    };
    let cancelled = request.cancelled();
    tools.runs.run(command, filled, cancelled, tell).await
}

async fn file(tools: &Tools, request: &Request) -> Result<Answer, Failure> {
    let token = CancellationToken::new();
    let watch = Watch::new(token.clone());
    let folders = Arc::clone(&tools.folders);
    let (tool, arguments) = (request.tool.clone(), request.arguments.clone());
    let mut working =
        tokio::task::spawn_blocking(move || runner::run(&folders, &tool, &arguments, &watch));
    let mut told = false;
    let late = tokio::time::sleep(FILE_LIMIT + FILE_SLACK);
    let mut late = std::pin::pin!(late);
    loop {
        tokio::select! {
            result = &mut working => {
                return result.unwrap_or_else(|_| Err("the tool broke off".into()));
            }
            () = request.cancelled(), if !told => {
                told = true;
                token.cancel();
            }
            () = &mut late => {
                return Err("the file system gave no answer in time; what it was told may still happen".into());
            }
        }
    }
}
