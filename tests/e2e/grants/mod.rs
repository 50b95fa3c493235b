//! docs/grants.md: each of its rules is loaded, below the page's preamble, and each of its examples typed, by
//! the user whose prompt it has.

mod matchers;
mod page;
mod terminal;
mod warnings;

use std::fs;
use std::process::Command;

use nix::unistd::geteuid;

use crate::harness::{
    self, Daemon, Place, Program, as_user, can_be_others, finished, program, python,
};
use page::{Block, Step};
use terminal::Terminal;

const RUNNER: &str = include_str!("../grants_runner.py");

/// The preamble's users, who types as them, and their uids here.
const USERS: [(&str, &str, u32); 5] = [
    ("rb-agent", "agent", 64_031),
    ("rb-runner", "runner", 64_032),
    ("alice", "alice", 64_033),
    ("bob", "bob", 64_034),
    ("rb-operator", "operator", 64_035),
];

#[test]
fn the_page_has_ten_rules_and_each_is_tested_below() {
    let numbered = |heading: &&str| heading.starts_with(|c: char| c.is_ascii_digit());
    let rules: Vec<&str> = page::headings().into_iter().filter(numbered).collect();
    let numbers: Vec<&str> = rules
        .iter()
        .filter_map(|rule| rule.split('.').next())
        .collect();
    assert_eq!(numbers, ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"]);
    for rule in rules {
        let section = page::section(rule);
        let blocks = page::blocks(section);
        let grants = |block: &Block| matches!(block, Block::Configuration(toml) if toml.contains("[[grant]]"));
        let typed =
            |block: &Block| matches!(block, Block::Typed(steps) if steps.iter().any(is_call));
        assert!(blocks.iter().any(grants), "no grant in {rule}");
        assert!(blocks.iter().any(typed), "no call in {rule}");
        assert!(section.contains("\n**Pitfall.** "), "no pitfall in {rule}");
    }
}

fn is_call(step: &Step) -> bool {
    step.command.starts_with("rolebroker call ")
}

#[test]
fn rule_1_a_share_may_be_read() {
    works_as_printed("1. ");
}

#[test]
fn rule_2_mail_is_sent_with_approval_only() {
    works_as_printed("2. ");
}

#[test]
fn rule_3_a_command_has_fixed_arguments() {
    works_as_printed("3. ");
}

#[test]
fn rule_4_a_deny_spares_what_unless_names() {
    works_as_printed("4. ");
}

#[test]
fn rule_5_a_quorum_is_two_people() {
    // The broker counts uids.
    if can_be_others() {
        works_as_printed("5. ");
    }
}

#[test]
fn rule_6_a_temporary_grant_ends_by_itself() {
    works_as_printed("6. ");
}

#[test]
fn rule_7_egress_becomes_an_ask_and_then_a_deny() {
    works_as_printed("7. ");
}

#[test]
fn rule_8_a_fetch_is_limited_to_hosts() {
    works_as_printed("8. ");
}

#[test]
fn rule_9_a_standing_approval_is_for_equal_arguments() {
    works_as_printed("9. ");
}

#[test]
fn rule_10_what_was_read_decides_what_may_be_sent() {
    works_as_printed("10. ");
}

#[test]
fn what_was_denied_becomes_grants() {
    works_as_printed("Grants from past calls");
}

/// Loads a rule below the preamble and types its examples.
#[track_caller]
fn works_as_printed(rule: &str) {
    let blocks = page::blocks(page::section(rule));
    let place = Place::with(&on_this_machine(configuration(rule)));
    for block in &blocks {
        if let Block::File(name, toml) = block {
            fs::write(place.path().join(name), toml).expect("writes a file of the page");
        }
    }
    let desk = Desk::open(place.start());
    for block in blocks {
        if let Block::Typed(steps) = block {
            desk.type_all(&steps);
        }
    }
}

/// The preamble and a rule.
#[track_caller]
fn configuration(rule: &str) -> String {
    let preamble = page::blocks(page::section("The preamble"));
    let blocks = preamble
        .into_iter()
        .chain(page::blocks(page::section(rule)));
    let toml = blocks.filter_map(|block| match block {
        Block::Configuration(toml) => Some(toml),
        Block::File(..) | Block::Typed(_) => None,
    });
    toml.collect()
}

/// A rule in which something is written otherwise.
#[track_caller]
fn changed(rule: &str, from: &str, to: &str) -> Place {
    let toml = configuration(rule);
    assert!(toml.contains(from), "{rule} has no {from}");
    Place::with(&on_this_machine(toml.replace(from, to)))
}

/// The page's configuration with folders and users that there are here.
fn on_this_machine(page: String) -> String {
    let mut toml = page
        .replace("/run/rolebroker", "RUNTIME")
        .replace("/var/lib/rolebroker", "STATE");
    for (name, _, uid) in USERS {
        let uid = match (can_be_others(), name) {
            (true, _) => uid,
            // Everyone is one user, but for the second person that a quorum needs to load.
            (false, "bob") => geteuid().as_raw() + 1,
            (false, _) => geteuid().as_raw(),
        };
        toml = toml.replace(
            &format!("users = [\"{name}\"]"),
            &format!("users = [\"{uid}\"]"),
        );
    }
    if !can_be_others() {
        toml = toml.replace("[broker]\n", "[broker]\nallow_shared_uid = true\n");
    }
    toml
}

/// A daemon with the page's runner, and people who type.
struct Desk {
    daemon: Daemon,
    _runner: Program,
}

impl Desk {
    fn open(daemon: Daemon) -> Self {
        let script = python(RUNNER, [daemon.socket("runner")]);
        let runner = Program::start(&mut by("runner", script));
        daemon.wait_for_line("the runner connects", |line| {
            line["event"] == "connected" && line["role"] == "runner"
        });
        Self {
            daemon,
            _runner: runner,
        }
    }

    fn type_all(&self, steps: &[Step]) {
        let mut waiting: Option<(Terminal, String)> = None;
        for step in steps {
            if step.who == "root" {
                // It is answered once its record is durable, and so is all that root reads in the store.
                finished(&mut self.shell("operator", "rolebroker reload"), 0);
            }
            if step.command == "wait $!" {
                let (call, _) = waiting.take().expect("a call waits");
                let (shown, exit) = call.end();
                check(step, &shown, exit);
            } else if let Some(command) = step.command.strip_suffix(" &") {
                let mut call = self.start(step, command);
                let shown = call.line();
                let asked = self.daemon.wait_for("approval_asked");
                let approval = asked["approval"].as_str().expect("a name").to_owned();
                check(step, &shown.replace(&approval, "ID"), Some(0));
                waiting = Some((call, approval));
            } else {
                let approval = waiting.as_ref().map_or("ID", |(_, approval)| approval);
                let command = step.command.replace(" ID ", &format!(" {approval} "));
                let (shown, exit) = if command.starts_with("rolebroker approve ") {
                    self.approve(step, &command)
                } else {
                    self.start(step, &command).end()
                };
                check(step, &shown.replace(approval, "ID"), exit);
            }
        }
        assert!(
            waiting.is_none(),
            "the page does not say what became of a call"
        );
    }

    fn start(&self, step: &Step, command: &str) -> Terminal {
        Terminal::start(self.shell(step.who, command))
    }

    /// Types the command, and yes once it asks; the terminal is large enough for one page.
    fn approve(&self, step: &Step, command: &str) -> (String, Option<i32>) {
        let mut shell = self.shell(step.who, command);
        let mut terminal = harness::Terminal::start(&mut shell, 60, 120, "");
        terminal.shows(&["[y/N] "]);
        terminal.types("y\n");
        let (exit, written) = terminal.end();
        (written.replace('\r', ""), exit)
    }

    fn shell(&self, who: &str, command: &str) -> Command {
        let place = &self.daemon.place;
        let path = |path: &std::path::Path| path.display().to_string();
        let command = command
            .replace("/etc/rolebroker/rolebroker.toml", &path(&place.config()))
            .replace("/var/lib/rolebroker", &path(&place.path().join("state")));
        let mut shell = Command::new("bash");
        shell.args(["-c", &command]);
        let mut shell = by(who, shell);
        let bin = program("rolebroker");
        let bin = bin.parent().expect("a folder").display();
        shell
            .env("PATH", format!("{bin}:/usr/bin:/bin"))
            .env("ROLEBROKER_RUNTIME_DIR", self.daemon.place.runtime())
            .current_dir(self.daemon.place.path());
        shell
    }
}

/// The command as the user of that prompt; as this one where nobody can become another, and for root.
#[track_caller]
fn by(who: &str, command: Command) -> Command {
    if who == "root" {
        return command;
    }
    let user = USERS.iter().find(|(_, prompt, _)| *prompt == who);
    let (_, _, uid) = user.unwrap_or_else(|| panic!("the preamble has no user for {who}$"));
    as_user(*uid, &command).unwrap_or(command)
}

#[track_caller]
fn check(step: &Step, shown: &str, exit: Option<i32>) {
    let Step { who, command, .. } = step;
    assert!(
        fits(step.shown.trim_end(), shown.trim_end()) && exit == Some(step.exit),
        "{who}$ {command}\n--- the page prints, with exit code {}\n{}--- the terminal, {exit:?}\n{shown}---",
        step.exit,
        step.shown
    );
}

/// Whether the text is the pattern, in which `…` stands for any text.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.split_once(part) {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[test]
fn left_out_text_is_any_and_the_rest_is_exact() {
    for (pattern, text, expected) in [
        ("a", "a", true),
        ("a", "ab", false),
        ("a", "ba", false),
        ("a…", "abc", true),
        ("…c", "abc", true),
        ("a…b…c", "a1b2c", true),
        ("a…b…c", "a1c", false),
        ("ab…b", "ab", false),
    ] {
        assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
    }
}
