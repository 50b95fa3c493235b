//! "The first grant in five minutes": typed by a user with an empty home into two terminals.

use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use super::{approval, blocks, lines};
use crate::harness::{PATIENCE, Terminal, as_user, can_be_others, program};

const UID: u32 = 64_023;
/// Exit codes that the programs have; the shell's prompt shows the last one.
const CODES: [i32; 11] = [0, 1, 3, 4, 64, 69, 70, 77, 78, 127, 130];
/// Where the shell notes what it has started, so that the test ends it, however the test itself ends.
const STARTED: &str = "started";

/// Somebody's empty home, and what was started from there.
struct Home {
    folder: TempDir,
    /// Of another user, if this process can start programs as one.
    uid: Option<u32>,
}

impl Home {
    fn new() -> Home {
        let folder = tempfile::tempdir().expect("a home");
        let uid = can_be_others().then_some(UID);
        chown(folder.path(), uid, uid).expect("a home of its own");
        Home { folder, uid }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn opens_a_terminal(&self) -> Typist {
        let mut shell = Command::new("setsid");
        // The terminal is the shell's own, as it is a person's.
        shell.args([
            "--ctty",
            "bash",
            "--norc",
            "--noprofile",
            "--noediting",
            "-i",
        ]);
        if let Some(uid) = self.uid {
            shell = as_user(uid, &shell).expect("it could be another before");
        }
        let bin = program("rolebrokerd");
        let bin = bin.parent().expect("a folder").display();
        shell
            .env_clear()
            .env("HOME", self.path())
            .env("PATH", format!("{bin}:/usr/bin:/bin"))
            .env("PS1", "<$?> ")
            .env("TERM", "xterm")
            .current_dir(self.path());
        let mut typist = Typist(Terminal::start(&mut shell, 24, 80, ""));
        typist.ends(0);
        typist
    }

    /// Waits until a log has this event; a person types slower than a daemon starts, and this machine may be slower.
    #[track_caller]
    fn logs(&self, name: &str, event: &str) {
        let path = self.path().join(name);
        let deadline = Instant::now() + PATIENCE;
        loop {
            let log = fs::read_to_string(&path).unwrap_or_default();
            if log.contains(event) {
                return;
            }
            assert!(Instant::now() < deadline, "no {event} in {name}:\n{log}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.path().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let started = fs::read_to_string(self.path().join(STARTED)).unwrap_or_default();
        for pid in started.lines().filter_map(|line| line.parse().ok()) {
            // What has ended already needs none.
            let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
    }
}

/// A shell on a terminal, and who types there.
struct Typist(Terminal);

impl Typist {
    fn types(&mut self, line: &str) {
        self.0.types(&format!("{line}\n"));
    }

    /// Waits for the prompt, and for this exit code in it; what stands on the screen.
    #[track_caller]
    fn ends(&mut self, code: i32) -> String {
        let prompts = CODES.map(|code| format!("<{code}> "));
        let (which, screen) = self.0.shows(&prompts.each_ref().map(String::as_str));
        assert_eq!(CODES.get(which), Some(&code), "{screen}");
        screen
    }

    #[track_caller]
    fn does(&mut self, line: &str) -> String {
        self.types(line);
        self.ends(0)
    }
}

/// The grant of this name in the file is another one from now on.
#[track_caller]
fn put_in_place(file: &Path, id: &str, grant: &str) {
    let text = fs::read_to_string(file).expect("the configuration");
    let head = format!("[[grant]]\nid = \"{id}\"\n");
    let (before, rest) = text.split_once(&head).expect("the grant is there");
    let after = rest
        .split_once("\n[[grant]]")
        .expect("another grant follows");
    fs::write(file, format!("{before}{grant}\n[[grant]]{}", after.1)).expect("writes it");
}

#[test]
fn the_first_grant_works_as_printed_for_a_new_user_with_an_empty_home() {
    let all = blocks("## The first grant in five minutes");
    let [
        ("sh", init),
        ("sh", start),
        ("sh", call),
        ("sh", answer),
        ("toml", grant),
        ("sh", go),
    ] = all[..]
    else {
        panic!("the README's section has other blocks: {all:?}");
    };
    let home = Home::new();
    let mut first = home.opens_a_terminal();
    let init: Vec<&str> = lines(init).collect();
    // Built already, and found elsewhere.
    let [build, path, init @ ..] = &init[..] else {
        panic!("other lines than these: {init:?}");
    };
    assert!(build.starts_with("make build") && path.starts_with("export PATH="));
    for line in init {
        first.does(line);
    }
    for line in lines(start) {
        match line {
            "sleep 1" => {
                home.logs("rolebrokerd.log", "\"ready\"");
                home.logs("rolebroker-runner.log", "\"serving\"");
            }
            _ if line.ends_with(" &") => {
                first.does(line);
                first.does(&format!("echo $! >> ~/{STARTED}"));
            }
            _ => drop(first.does(line)),
        }
    }

    first.types(lines(call).next().expect("a call"));
    first.0.shows(&["waiting for a person: approval "]);
    assert!(!home.path().join("notes/a.txt").exists());
    let mut second = home.opens_a_terminal();
    let [asked, approve] = lines(answer).collect::<Vec<_>>()[..] else {
        panic!("other lines than these: {answer}");
    };
    let listed = second.does(asked);
    second.types(&approve.replace("ID", approval(&listed)));
    second.0.shows(&["[y/N] "]);
    second.does("y");
    first.ends(0);
    assert_eq!(home.read("notes/a.txt"), "hi");

    let config = home.path().join(".config/rolebroker/rolebroker.toml");
    let grant = grant.replace("/home/you", &home.path().display().to_string());
    put_in_place(&config, "write-below-folder", &grant);
    let go: Vec<&str> = lines(go).collect();
    let [reload, write, read, other] = go[..] else {
        panic!("other lines than these: {go:?}");
    };
    first.does(reload);
    first.does(write);
    assert_eq!(home.read("notes/b.txt"), "written at once");
    let shown = first.does(read);
    assert!(
        shown.contains("\nwritten at once\n(internal, trusted)"),
        "{shown}"
    );
    first.types(other);
    let shown = first.ends(3);
    assert!(
        shown.contains("no_grant") && shown.contains("rolebroker explain"),
        "{shown}"
    );
    let end = "kill %1 %2";
    assert!(super::README.contains(&format!("`{end}`")));
    first.does(end);
    home.logs("rolebrokerd.log", "\"ended\"");
}
