//! docs/operations.md tells every event that the log can have, and every exit code; what it prints works.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::harness::{Place, finished, program};

const PAGE: &str = include_str!("../../docs/operations.md");
const TOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            found.push(path);
        }
    }
    found
}

/// The first text between quotes that comes right after this.
fn literal(after: &str) -> Option<&str> {
    after.split('"').nth(1)
}

/// Every word that stands in the sources where an event's name does.
fn logged() -> BTreeSet<String> {
    // Of `tracing`, of lines written by hand, and of the engine's `log` and `log_call`.
    let marks = [
        "event = \"",
        "faults(\"",
        "\"event\": \"",
        "Level::WARN,",
        ".log(",
        ".log_call(",
    ];
    let mut events = BTreeSet::new();
    for folder in ["crates/engine/src", "crates/broker/src"] {
        for file in sources(&Path::new(TOP).join(folder)) {
            let text = fs::read_to_string(&file).expect("a source");
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            for mark in marks {
                for (at, _) in code.match_indices(mark) {
                    let from = at + mark.len() - usize::from(mark.ends_with('"'));
                    // The one place that hands on what it was given.
                    if code[from..].starts_with("level, event,") {
                        continue;
                    }
                    let event = literal(&code[from..]).unwrap_or_default();
                    let word = |c: char| c.is_ascii_lowercase() || c == '_';
                    assert!(
                        !event.is_empty() && event.chars().all(word),
                        "{}: {mark} is followed by {event:?}",
                        file.display()
                    );
                    events.insert(event.to_owned());
                }
            }
        }
    }
    events
}

/// The words between backticks in the first column of the tables of a section.
fn told(section: &str) -> BTreeSet<String> {
    let (_, rest) = PAGE.split_once(section).expect("the section is there");
    let section = rest.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| "));
    let first = rows.filter_map(|row| row.split(" |").next());
    first
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_page_tells_every_event_that_the_log_can_have_and_no_other() {
    let logged = logged();
    let told = told("\n## The log\n");
    assert!(logged.len() > 40, "the sources were not read: {logged:?}");
    let missing: Vec<_> = logged.difference(&told).collect();
    assert!(
        missing.is_empty(),
        "docs/operations.md does not tell {missing:?}"
    );
    let gone: Vec<_> = told.difference(&logged).collect();
    assert!(
        gone.is_empty(),
        "docs/operations.md tells {gone:?}, which nothing logs"
    );
}

#[test]
fn the_page_tells_every_exit_code() {
    let exits = fs::read_to_string(format!("{TOP}/crates/broker/src/exit.rs")).expect("a source");
    let codes: Vec<&str> = exits
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Exit::")?.split_once(" => "))
        .map(|(_, code)| code.trim_end_matches(','))
        .collect();
    assert_eq!(codes.len(), 6, "{codes:?}");
    for code in codes {
        assert!(
            PAGE.contains(&format!("\n| {code} |")),
            "no exit code {code}"
        );
    }
}

#[test]
fn the_deny_for_all_that_the_page_prints_stops_every_call_and_can_be_taken_back() {
    let (_, rest) = PAGE
        .split_once("```sh\nprintf")
        .expect("the block is there");
    let block = format!("printf{}", rest.split("```").next().unwrap_or_default());
    let (deny, revoke) = block.split_once("sudo rolebroker revoke").expect("both");
    let daemon = Place::new().start();
    let _echo = daemon.echo();
    let mut agent = daemon.connect("bot");
    assert_eq!(agent.called("s", 1, "echo", "{}")["content"], "{}");
    let run = |script: &str| {
        let folder = program("rolebroker");
        let folder = folder.parent().expect("a folder").display();
        let mut shell = Command::new("bash");
        shell.args([
            "-ec",
            &format!("PATH={folder}:$PATH; sudo() {{ \"$@\" --as admin; }}\n{script}"),
        ]);
        shell.env("ROLEBROKER_RUNTIME_DIR", daemon.place.runtime());
        finished(&mut shell, 0);
    };
    run(deny);
    let denied = json!({"status": "denied", "reason": "denied_by_grant"});
    assert_eq!(agent.called("s", 2, "echo", "{}"), denied);
    run(&format!("sudo rolebroker revoke{revoke}"));
    assert_eq!(agent.called("s", 3, "echo", "{}")["content"], "{}");
}
