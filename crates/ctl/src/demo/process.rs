//! A process of the demo's: started, waited for until it says that it is ready, and ended.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};

/// A process that takes longer to get ready hangs.
const READY_WITHIN: Duration = Duration::from_secs(30);

pub(super) struct Process {
    name: &'static str,
    child: Child,
}

impl Process {
    /// Starts it, puts it with the others, and waits until its log has a line with the event `ready`.
    pub(super) async fn start(
        name: &'static str,
        mut command: Command,
        ready: &str,
        others: &mut Vec<Process>,
    ) -> anyhow::Result<()> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        let stderr = child.stderr.take().context("no standard error")?;
        others.push(Process { name, child });
        let mut lines = BufReader::new(stderr).lines();
        match tokio::time::timeout(READY_WITHIN, wait_for(&mut lines, ready)).await {
            Ok(Ok(())) => {}
            Ok(Err(log)) => bail!("{name} ended before it was ready; it said:\n{log}"),
            Err(_) => bail!(
                "{name} did not get ready within {} s",
                READY_WITHIN.as_secs()
            ),
        }
        // Somebody has to read on, or the process would wait. Ends with it.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(())
    }

    /// Ends it, however it is.
    pub(super) async fn end(&mut self) -> anyhow::Result<()> {
        let ended = self.child.kill().await;
        ended.with_context(|| format!("{} could not be ended", self.name))
    }
}

/// Reads up to the event. All that was read, if it never comes.
async fn wait_for(lines: &mut Lines<BufReader<ChildStderr>>, event: &str) -> Result<(), String> {
    let mut read = Vec::new();
    while let Ok(Some(line)) = lines.next_line().await {
        let parsed: Option<serde_json::Value> = serde_json::from_str(&line).ok();
        if parsed.is_some_and(|line| line["event"] == event) {
            return Ok(());
        }
        read.push(line);
    }
    Err(read.join("\n"))
}
