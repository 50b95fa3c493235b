//! A broker in a folder of its own, started and looked at from outside.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use tempfile::TempDir;

/// How long a test waits for something that must happen, before it fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// A uid that the tests do not run as.
pub(crate) const STRANGER: u32 = 54_321;

/// A folder with a configuration in it.
pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    /// A folder with a configuration of these roles. `SELF` in it stands for the test's own uid.
    pub(crate) fn with(roles: &str) -> Self {
        let place = Self {
            folder: TempDir::new().expect("a temporary folder"),
        };
        place.write(roles);
        place
    }

    /// Writes the configuration anew.
    pub(crate) fn write(&self, roles: &str) {
        let text = format!(
            "approvers = []\n\
             [broker]\n\
             runtime_dir = \"{}\"\n\
             state_dir = \"{}\"\n\
             {}",
            self.runtime().display(),
            self.path().join("state").display(),
            roles.replace("SELF", &geteuid().to_string())
        );
        fs::write(self.config(), text).expect("writes the configuration");
        self.set_mode(&self.config(), 0o644);
    }

    pub(crate) fn set_mode(&self, path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("chmod");
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.path().join("rolebroker.toml")
    }

    pub(crate) fn runtime(&self) -> PathBuf {
        self.path().join("run")
    }

    pub(crate) fn socket(&self, role: &str) -> PathBuf {
        self.runtime().join(format!("{role}.sock"))
    }

    /// Runs rolebrokerd on this configuration until it ends by itself.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        command()
            .arg("--config")
            .arg(self.config())
            .args(args)
            .output()
            .expect("runs rolebrokerd")
    }

    /// Starts rolebrokerd on this configuration and waits until it is ready.
    pub(crate) fn start(&self) -> Broker {
        let mut child = command()
            .arg("--config")
            .arg(self.config())
            .args(["--log-format", "json", "--log-level", "debug"])
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts rolebrokerd");
        let stderr = BufReader::new(child.stderr.take().expect("its standard error"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let broker = Broker { child, lines };
        broker.wait_for("ready");
        broker
    }
}

pub(crate) fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_rolebrokerd"))
}

/// A running broker; killed when the test ends.
pub(crate) struct Broker {
    child: Child,
    lines: Receiver<String>,
}

impl Broker {
    /// The next log line of this event.
    pub(crate) fn wait_for(&self, event: &str) -> serde_json::Value {
        let mut seen = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            let value: serde_json::Value = serde_json::from_str(&line)
                .unwrap_or_else(|error| panic!("not a JSON line: {error}: {line}"));
            if value["event"] == event {
                return value;
            }
            seen.push(line);
        }
        panic!("no line {event:?} came, but\n{}", seen.join("\n"));
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("a pid"));
        kill(pid, signal).expect("kill");
    }

    /// Waits until it ends.
    pub(crate) fn end(&mut self) -> ExitStatus {
        self.child.wait().expect("wait")
    }

    /// Ends it with SIGKILL: nothing is cleaned up.
    pub(crate) fn crash(mut self) {
        self.child.kill().expect("kill");
        self.end();
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Connects, with a limit on how long the test waits for an answer.
pub(crate) fn connect(path: &Path) -> UnixStream {
    let stream = UnixStream::connect(path)
        .unwrap_or_else(|error| panic!("cannot connect to {}: {error}", path.display()));
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

/// What a process wrote to standard error.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// An agent, a runner and an operator of the test's own user.
pub(crate) const SHARED: &str = "allow_shared_uid = true\n\
    [roles.bot]\nkind = \"agent\"\nusers = [\"SELF\"]\nlabel_scope = \"session\"\n\
    [roles.files]\nkind = \"runner\"\nusers = [\"SELF\"]\nmode = 0o600\n\
    [roles.admin]\nkind = \"operator\"\nusers = [\"SELF\"]\n";

/// An agent of the test's own user, and an operator of a stranger's.
pub(crate) const SEPARATED: &str = "\
    [roles.bot]\nkind = \"agent\"\nusers = [\"SELF\"]\nlabel_scope = \"session\"\n\
    [roles.admin]\nkind = \"operator\"\nusers = [\"54321\"]\n";

/// One frame: its length, and this.
pub(crate) fn framed(json: &str) -> Vec<u8> {
    let length = u32::try_from(json.len()).expect("a length");
    [&length.to_be_bytes()[..], json.as_bytes()].concat()
}

/// A tool request of session `s`, whose id and call are the same.
pub(crate) fn request(id: u64, tool: &str, arguments: &str) -> Vec<u8> {
    framed(
        &serde_json::json!({"v": 1, "id": id, "final": true, "msg": {"kind": "tool_request", "body":
            {"session": "s", "call": id, "tool": tool, "arguments": arguments}}})
        .to_string(),
    )
}

/// The next frame; none at the end of the stream.
pub(crate) fn receive(stream: &mut UnixStream) -> Option<serde_json::Value> {
    let mut length = [0; 4];
    match stream.read_exact(&mut length) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return None,
        Err(error) => panic!("cannot read a frame: {error}"),
    }
    let mut frame = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut frame).expect("the whole frame");
    Some(serde_json::from_slice(&frame).expect("JSON"))
}
