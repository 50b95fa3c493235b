//! What the README prints for a newcomer works as printed.

use std::fs;
use std::os::unix::fs::chown;
use std::process::Command;

use nix::unistd::geteuid;

use crate::harness::{as_user, program};

const README: &str = include_str!("../../README.md");
const NEWCOMER: u32 = 64_023;

/// The fenced blocks of a section, with their languages.
fn blocks(section: &str) -> Vec<(&'static str, &'static str)> {
    let (_, rest) = README.split_once(section).expect("the section is there");
    let section = rest.split("\n## ").next().unwrap_or_default();
    let fences: Vec<&str> = section.split("```").collect();
    let inside = fences.chunks(2).filter_map(|pair| pair.get(1));
    inside.filter_map(|block| block.split_once('\n')).collect()
}

#[test]
fn the_first_own_grant_of_the_readme_works_as_printed() {
    let [("sh", start), ("toml", grant), ("sh", go)] = blocks("## Your own first grant")[..] else {
        panic!("the README's section has other blocks than sh, toml, sh");
    };
    let home = tempfile::tempdir().expect("a home");
    let path = home.path();
    let folder = program("rolebrokerd");
    let bin = folder.parent().expect("a folder");
    // Built already, and found elsewhere.
    let start: String = start
        .lines()
        .filter(|line| !line.starts_with("make build") && !line.starts_with("export PATH"))
        .map(|line| format!("{line}\n"))
        .collect();
    let grant = grant.replace("/home/you", &path.display().to_string());
    let script = format!(
        "set -e\ntrap 'kill $(jobs -p)' EXIT\n{start}\n\
         cat >> ~/.config/rolebroker/rolebroker.toml <<'END'\n{grant}END\n{go}\ncat ~/notes/a.txt\n"
    );
    let mut shell = Command::new("bash");
    shell.args(["-c", &script]);
    if geteuid().is_root() {
        let Some(other) = as_user(NEWCOMER, &shell) else {
            return;
        };
        shell = other;
        chown(path, Some(NEWCOMER), Some(NEWCOMER)).expect("a home of its own");
    }
    let run = path.join("run");
    fs::create_dir(&run).expect("a runtime folder");
    if geteuid().is_root() {
        chown(&run, Some(NEWCOMER), Some(NEWCOMER)).expect("a runtime folder of its own");
    }
    let output = shell
        .env("HOME", path)
        .env("XDG_RUNTIME_DIR", &run)
        .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
        .current_dir(path)
        .output()
        .expect("bash");
    let said = String::from_utf8_lossy(&output.stdout);
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.ends_with("hi"),
        "{said}\n{log}"
    );
}
