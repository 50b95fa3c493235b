//! What the demo plays on: a temporary folder with real files, the daemon, the file runner, a `send` tool of the
//! demo's own, and connections as agent and approver.

use std::io::{IsTerminal as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::bail;
use client::{Answer, Approver, Client, DataClass, Failure, Request, Runner};
use tokio::process::Command;

use super::process::Process;
use super::screen;

const DEFAULT: &str = include_str!("../../../../config/default.toml");
/// The tool that the demo serves itself, and the grant for it.
const SEND: &str = r#"
[roles.demo]
kind = "runner"
users = ["${USER}"]

[[tool]]
name = "send"
runner = "demo"
class = "public"
untrusted = false
effects = "once"
egress = true
description = "Send a message out of this machine."
input_schema = '{"type":"object","properties":{"to":{"type":"string"},"text":{"type":"string"}},"required":["to","text"],"additionalProperties":false}'

[[grant]]
id = "send-what-is-internal"
roles = ["agent"]
sessions = ["*"]
tools = ["send"]
effect = "allow"
where = { "/to" = { any = true }, "/text" = { any = true } }
max_class = "internal"
why = "what is confidential stays here"
"#;

/// For whom the demo is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// Scene by scene.
    ToPerson,
    /// Only what became of it.
    ToProgram,
}

pub(super) struct Stage {
    pub(super) client: Client,
    pub(super) approver: tokio::sync::Mutex<Approver>,
    pub(super) sent: Arc<AtomicU64>,
    root: PathBuf,
    shown: Shown,
}

impl Stage {
    /// Starts everything, each part once the one before it says that it is ready.
    pub(super) async fn set(
        folder: &Path,
        processes: &mut Vec<Process>,
        shown: Shown,
    ) -> anyhow::Result<Self> {
        let (broker, runner) = (beside("rolebrokerd")?, beside("rolebroker-runner")?);
        let root = folder.canonicalize()?;
        let files = root.join("files");
        std::fs::create_dir_all(files.join("secret"))?;
        std::fs::write(files.join("notes.txt"), "Buy milk. Write a plan.\n")?;
        std::fs::write(files.join("secret/keys.txt"), "api key: 1234\n")?;
        let config = root.join("rolebroker.toml");
        std::fs::write(&config, configuration(&root)?)?;

        let mut command = Command::new(broker);
        command
            .arg("--config")
            .arg(&config)
            .args(["--log-format", "json"]);
        Process::start("rolebrokerd", command, "ready", processes).await?;
        let mut command = Command::new(runner);
        command
            .arg("--socket")
            .arg(root.join("run/runner.sock"))
            .arg("--folder")
            .arg(argument(&files, ":public"))
            .arg("--folder")
            .arg(argument(&files.join("secret"), ":secret"))
            .env("ROLEBROKER_LOG", "info");
        Process::start("rolebroker-runner", command, "serving", processes).await?;

        let socket = |role: &str| root.join(format!("run/{role}.sock"));
        let sent = Arc::new(AtomicU64::new(0));
        let sender = Runner::connect(socket("demo")).await?;
        let (outbox, count) = (root.join("outbox.txt"), Arc::clone(&sent));
        tokio::spawn(async move {
            // When the broker goes the demo is over anyhow.
            let _ = sender
                .serve(move |request| send(request, outbox.clone(), Arc::clone(&count)))
                .await;
        });
        Ok(Self {
            client: Client::connect(socket("agent")).await?,
            approver: tokio::sync::Mutex::new(Approver::connect(socket("approver")).await?),
            sent,
            root,
            shown,
        })
    }

    /// Says something to whoever looks.
    pub(super) fn say(&self, head: &str, text: &str) {
        if self.shown == Shown::ToPerson {
            screen::say(head, text);
        }
    }

    /// Shows a text to the character.
    pub(super) fn exactly(&self, margin: &str, text: &str) {
        if self.shown == Shown::ToPerson {
            screen::exactly(margin, text);
        }
    }

    /// Whether somebody can be asked.
    pub(super) fn has_somebody(&self) -> bool {
        let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        self.shown == Shown::ToPerson && terminal
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.root.join("files").join(name)
    }

    /// What was sent so far; empty if nothing was.
    pub(super) fn outbox(&self) -> String {
        std::fs::read_to_string(self.root.join("outbox.txt")).unwrap_or_default()
    }

    /// How often `send` ran.
    pub(super) fn sends(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

fn beside(name: &str) -> anyhow::Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name(name);
    if !path.exists() {
        bail!(
            "{} is missing: the demo runs the {name} beside this command; build it with `cargo build -p {}`",
            path.display(),
            if name == "rolebrokerd" {
                "broker"
            } else {
                "runner"
            }
        );
    }
    Ok(path)
}

fn configuration(root: &Path) -> anyhow::Result<String> {
    let text = |path: PathBuf| match path.to_str() {
        Some(text) if !text.contains(['"', '\\', '$']) => Ok(text.to_owned()),
        Some(_) | None => {
            bail!("the temporary folder has an unusual name; set TMPDIR to another one")
        }
    };
    // The owner of what this process makes is its uid.
    let uid = std::fs::metadata(root)?.uid().to_string();
    Ok((DEFAULT.to_owned() + SEND)
        .replace("${USER}", &uid)
        .replace("${FOLDER}", &text(root.join("files"))?)
        .replace("${RUNTIME_DIR}", &text(root.join("run"))?)
        .replace("${STATE_DIR}", &text(root.join("state"))?))
}

fn argument(path: &Path, rest: &str) -> std::ffi::OsString {
    let mut argument = path.as_os_str().to_owned();
    argument.push(rest);
    argument
}

/// The `send` tool: its outside world is a file.
async fn send(request: Request, outbox: PathBuf, count: Arc<AtomicU64>) -> Result<Answer, Failure> {
    let number = count.fetch_add(1, Ordering::Relaxed) + 1;
    std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(outbox)
        .and_then(|mut file| writeln!(file, "{}", request.arguments))
        .map_err(|error| Failure(format!("the outbox cannot be written: {error}")))?;
    Ok(Answer::trusted(
        format!("sent message {number}"),
        DataClass::Public,
    ))
}
