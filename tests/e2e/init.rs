//! `rolebroker init`: what it writes is taken by the daemon, and what it says to type next works as printed.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::Signal;
use nix::unistd::{User, geteuid};
use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{Program, as_user, can_be_others, finished, program};

const NEWCOMER: u32 = 64_024;
/// Users that every system has; a test may be none of them.
const AGENT: &str = "games";
const RUNNER: &str = "bin";
const APPROVER: &str = "mail";

/// Somebody's surroundings: an empty home, and little else.
struct Home {
    folder: TempDir,
    /// `None`: this process's user.
    uid: Option<u32>,
    runtime: Option<PathBuf>,
}

impl Home {
    /// A new user's, where this process can be another; else one of its own user. `None` if that is root, who has
    /// no configuration of the ordinary kind.
    fn of_newcomer() -> Option<Home> {
        let uid = can_be_others().then_some(NEWCOMER);
        if uid.is_none() && geteuid().is_root() {
            return None;
        }
        let folder = tempfile::tempdir().expect("a home");
        chown(folder.path(), uid, uid).expect("a home of its own");
        Some(Home {
            folder,
            uid,
            runtime: None,
        })
    }

    /// As a login leaves it.
    fn logged_in(mut self) -> Home {
        let runtime = self.path().join("run");
        fs::create_dir(&runtime).expect("a runtime folder");
        chown(&runtime, self.uid, self.uid).expect("a runtime folder of its own");
        self.runtime = Some(runtime);
        self
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A line for a shell, as this user types it.
    fn shell(&self, line: &str) -> Command {
        let mut command = Command::new("bash");
        command.args(["-c", line]);
        if let Some(uid) = self.uid {
            command = as_user(uid, &command).expect("it could be another before");
        }
        command.env_clear();
        if let Some(runtime) = &self.runtime {
            command.env("XDG_RUNTIME_DIR", runtime);
        }
        command.env("HOME", self.path()).env("PATH", path_to_all());
        command.current_dir(self.path());
        command
    }

    #[track_caller]
    fn json(&self, line: &str) -> Value {
        json(&mut self.shell(line))
    }
}

fn path_to_all() -> String {
    let daemon = program("rolebrokerd");
    let folder = daemon.parent().expect("a folder").display().to_string();
    format!("{folder}:/usr/sbin:/usr/bin:/sbin:/bin")
}

#[track_caller]
fn json(command: &mut Command) -> Value {
    let text = String::from_utf8(finished(command, 0).stdout).expect("text");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// What `next` says, in its order.
fn commands(written: &Value) -> Vec<String> {
    let steps = written["next"].as_array().expect("steps");
    let command = |step: &Value| step["command"].as_str().expect("a command").to_owned();
    steps.iter().map(command).collect()
}

fn mode(path: &str) -> u32 {
    fs::metadata(path).expect(path).mode() & 0o7777
}

/// Types every command that was printed: daemon, runner, first call, one that waits, its approval, status.
#[track_caller]
fn works_as_printed(written: &Value, shell: impl Fn(&str) -> Command) {
    let [daemon, runner, first, waits, asked, approve, status] = &commands(written)[..] else {
        panic!("other steps than these: {written}");
    };
    let start =
        |line: &str| Program::start(shell(&format!("exec {line}")).env("ROLEBROKER_LOG", "info"));
    let without_prefix = |line: &str| match line.split_once(' ') {
        // `exec` takes no assignments in front of a command, env does.
        Some((variable, _)) if variable.contains('=') => format!("env {line}"),
        Some(_) | None => line.to_owned(),
    };
    let config = written["runner_config"].as_str().expect("a file");
    let checked = finished(
        &mut shell(&format!(
            "rolebroker-runner --check-config --config '{config}'"
        )),
        0,
    );
    let report = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(
        report.starts_with("sound: 1 folders; tools read_file"),
        "{report}"
    );
    let mut broker = start(daemon);
    broker.says("\"ready\"");
    let mut files = start(&without_prefix(runner));
    files.says("\"serving\"");
    finished(&mut shell(first), 0);
    let mut call = start(&without_prefix(waits));
    broker.says("\"approval_asked\"");
    let shown = json(&mut shell(&format!("{asked} --json")));
    let id = shown["pending"][0]["approval"].as_str().expect("a name");
    let folder = written["folder"].as_str().expect("a folder");
    let file = Path::new(folder).join("hello.txt");
    assert!(!file.exists(), "it was written before it was approved");
    let digest = shown["pending"][0]["digest"].as_str().expect("a digest");
    // Nobody sits at a terminal here, so what was read is named.
    let approve = format!("{} --digest {digest}", approve.replace("ID", id));
    finished(&mut shell(&approve), 0);
    let (code, out, err) = call.end();
    assert_eq!(code, Some(0), "{out}{err}");
    assert_eq!(fs::read_to_string(file).expect("the file"), "hello");
    let listed = finished(&mut shell(first), 0);
    assert!(String::from_utf8_lossy(&listed.stdout).contains("hello.txt"));
    finished(&mut shell(status), 0);
    // Not by a kill: `runuser` in front of it would end alone.
    files.signal(Signal::SIGTERM);
    files.end();
}

#[test]
fn a_new_user_with_an_empty_home_types_what_init_says_and_it_works() {
    let Some(home) = Home::of_newcomer() else {
        return;
    };
    let home = home.logged_in();
    let written = home.json("umask 077; rolebroker init --json");
    let config = written["config"].as_str().expect("a file");
    assert_eq!(
        config,
        home.path()
            .join(".config/rolebroker/rolebroker.toml")
            .to_str()
            .expect("text")
    );
    let checked = finished(
        &mut home.shell(&format!("rolebrokerd --check-config --config {config}")),
        0,
    );
    let report = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(
        report.starts_with("ok: 4 roles") && report.contains("not separated"),
        "{report}"
    );
    works_as_printed(&written, |line| home.shell(line));
}

#[test]
fn without_a_login_the_sockets_are_in_the_home_and_what_to_type_says_where() {
    let Some(home) = Home::of_newcomer() else {
        return;
    };
    let written = home.json("umask 0; rolebroker init --json --folder 'my files'");
    let folder = written["folder"].as_str().expect("a folder");
    assert_eq!(Path::new(folder), home.path().join("my files"));
    works_as_printed(&written, |line| home.shell(line));
}

#[test]
fn modes_are_what_the_daemon_wants_whatever_the_umask() {
    for umask in ["0", "077", "0777"] {
        let Some(home) = Home::of_newcomer() else {
            return;
        };
        let home = home.logged_in();
        let written = home.json(&format!("umask {umask}; rolebroker init --json"));
        let config = written["config"].as_str().expect("a file");
        let folder = written["folder"].as_str().expect("a folder");
        assert_eq!(mode(config), 0o644, "umask {umask}");
        let runner = written["runner_config"].as_str().expect("a file");
        assert_eq!(mode(runner), 0o644, "umask {umask}");
        assert_eq!(mode(folder), 0o700, "umask {umask}");
        let above = Path::new(config).parent().expect("a folder");
        assert_eq!(mode(above.to_str().expect("text")), 0o755, "umask {umask}");
        finished(
            &mut home.shell(&format!("rolebrokerd --check-config --config {config}")),
            0,
        );
    }
}

#[test]
fn a_file_that_is_there_is_replaced_only_by_force() {
    let Some(home) = Home::of_newcomer() else {
        return;
    };
    let home = home.logged_in();
    let written = home.json("rolebroker init --json");
    let config = PathBuf::from(written["config"].as_str().expect("a file"));
    let first = fs::read_to_string(&config).expect("it");
    fs::write(&config, "# mine\n").expect("writes");
    let refused = finished(&mut home.shell("rolebroker init"), 1);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--force"));
    assert_eq!(fs::read_to_string(&config).expect("it"), "# mine\n");
    finished(&mut home.shell("rolebroker init --force"), 0);
    assert_eq!(fs::read_to_string(&config).expect("it"), first);
    let beside = fs::read_dir(config.parent().expect("a folder")).expect("it");
    assert_eq!(beside.count(), 2, "something was left beside them");

    // The runner's is kept in the same way, and then neither is written.
    let runner = PathBuf::from(written["runner_config"].as_str().expect("a file"));
    fs::write(&runner, "# mine\n").expect("writes");
    fs::remove_file(&config).expect("removes");
    let refused = finished(&mut home.shell("rolebroker init"), 1);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("runner.toml"));
    assert!(!config.exists() && fs::read_to_string(&runner).expect("it") == "# mine\n");
    finished(&mut home.shell("rolebroker init --force"), 0);

    // A link is in the way like a file; by force it is replaced, not written through.
    fs::remove_file(&config).expect("removes");
    let elsewhere = home.path().join("elsewhere");
    symlink(&elsewhere, &config).expect("a link");
    finished(&mut home.shell("rolebroker init"), 1);
    finished(&mut home.shell("rolebroker init --force"), 0);
    assert!(!elsewhere.exists() && !config.is_symlink());
}

#[test]
fn the_runners_configuration_is_not_taken_for_the_daemons() {
    let Some(home) = Home::of_newcomer() else {
        return;
    };
    let refused = finished(
        &mut home.shell("rolebroker init --output cfg/runner.toml"),
        64,
    );
    assert!(String::from_utf8_lossy(&refused.stderr).contains("name another with --output"));
    assert!(!home.path().join("cfg").exists());
}

#[test]
fn print_shows_the_same_and_makes_nothing() {
    let Some(home) = Home::of_newcomer() else {
        return;
    };
    let home = home.logged_in();
    let printed = finished(&mut home.shell("rolebroker init --print"), 0);
    assert!(!home.path().join(".config").exists() && !home.path().join(".local").exists());
    let written = home.json("rolebroker init --json");
    let file = fs::read(written["config"].as_str().expect("a file")).expect("it");
    assert!(
        file == printed.stdout,
        "{}",
        String::from_utf8_lossy(&printed.stdout)
    );
}

#[test]
fn where_others_can_write_nothing_is_written_and_it_says_what_to_type() {
    let Some(home) = Home::of_newcomer() else {
        return;
    };
    let home = home.logged_in();
    let open = home.path().join("open");
    fs::create_dir(&open).expect("a folder");
    chown(&open, home.uid, home.uid).expect("its own");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o775)).expect("chmod");
    let refused = finished(
        &mut home.shell("rolebroker init --output open/rolebroker.toml"),
        1,
    );
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        why.contains(&format!("chmod go-w {}", open.display())),
        "{why}"
    );
    assert!(!open.join("rolebroker.toml").exists());
    finished(
        &mut home.shell("chmod go-w open && rolebroker init --output open/rolebroker.toml"),
        0,
    );
}

#[test]
fn an_ordinary_user_cannot_write_roles_of_others() {
    let Some(home) = Home::of_newcomer() else {
        return;
    };
    let refused = finished(&mut home.shell("rolebroker init --approver-user root"), 64);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("as root"));
}

/// Root's shell, in a place of its own; `None` where there is no root, or not these users.
fn machine() -> Option<(TempDir, impl Fn(&str) -> Command)> {
    let known = |name| User::from_name(name).ok().flatten().is_some();
    let can = can_be_others() && [AGENT, RUNNER, APPROVER].into_iter().all(known);
    let runuser = Command::new("runuser")
        .args(["-u", AGENT, "--", "true"])
        .status();
    if !can || !runuser.is_ok_and(|status| status.success()) {
        eprintln!(
            "skipped: init for a machine (needs root, runuser, and the users {AGENT}, {RUNNER}, {APPROVER})"
        );
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("chmod");
    let place = folder.path().to_owned();
    let shell = move |line: &str| {
        let mut command = Command::new("bash");
        command.args(["-c", line]).env_clear();
        command.env("PATH", path_to_all()).current_dir(&place);
        command
    };
    Some((folder, shell))
}

const PLACES: &str =
    "--output etc/rolebroker.toml --folder srv/files --runtime-dir run --state-dir state";

#[test]
fn root_writes_roles_of_different_users_and_what_it_says_to_type_works() {
    let Some((folder, shell)) = machine() else {
        return;
    };
    let users = format!("--agent-user {AGENT} --runner-user {RUNNER}");
    let line = format!("umask 077; SUDO_USER={APPROVER} rolebroker init --json {users} {PLACES}");
    let written = json(&mut shell(&line));
    let config = folder.path().join("etc/rolebroker.toml");
    let checked = finished(
        &mut shell(&format!(
            "rolebrokerd --check-config --config {}",
            config.display()
        )),
        0,
    );
    let report = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(!report.contains("separated"), "{report}");
    works_as_printed(&written, shell);
}

#[test]
fn users_that_are_missing_or_do_not_separate_the_roles_are_told_all_at_once() {
    let Some((folder, shell)) = machine() else {
        return;
    };
    let said = |users: &str, code| {
        let output = finished(
            &mut shell(&format!("rolebroker init {users} {PLACES}")),
            code,
        );
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let why = said("--agent-user no-such-1 --runner-user no-such-2", 64);
    for part in [
        "no-such-1",
        "no-such-2",
        "useradd",
        "sysusers.d/rolebroker.conf",
        "--approver-user NAME",
    ] {
        assert!(why.contains(part), "{part} is not in: {why}");
    }
    let one = format!("--agent-user {AGENT} --runner-user {RUNNER} --approver-user {AGENT}");
    let why = said(&one, 64);
    assert!(
        why.contains(&format!("agent and approver are both {AGENT}")),
        "{why}"
    );
    let why = said(
        &format!(
            "--agent-user root --runner-user {RUNNER} --approver-user {APPROVER} --operator-user {APPROVER}"
        ),
        64,
    );
    assert!(why.contains("root as the agent"), "{why}");
    assert_eq!(
        fs::read_dir(folder.path()).expect("it").count(),
        0,
        "something was made"
    );

    said(&format!("{one} --shared"), 0);
    let text = fs::read_to_string(folder.path().join("etc/rolebroker.toml")).expect("it");
    assert!(text.contains("\nallow_shared_uid = true\n"), "{text}");
    finished(
        &mut shell("rolebrokerd --check-config --config etc/rolebroker.toml"),
        0,
    );
}
