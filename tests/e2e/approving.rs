//! `rolebroker approve` on a terminal of 80 columns and 24 rows: a call is shown whole before it can be approved,
//! and nothing that it carries can hide, move or pass for something else.

use std::fmt::Write as _;

use serde_json::json;

use crate::commands::{asking, printed, rolebroker};
use crate::harness::{Daemon, Peer, Place, Terminal, finished};

const QUESTION: &str = "approve this call? [y/N] ";
const NEXT: &str = "Enter: next, b: back, q: leave ";

/// A call with these arguments that waits for a person: its approval.
struct Asked {
    daemon: Daemon,
    _agent: Peer,
    approval: String,
    digest: String,
}

fn asked(arguments: &str) -> Asked {
    asked_in(Place::new(), arguments)
}

fn asked_in(place: Place, arguments: &str) -> Asked {
    let daemon = place.start();
    let mut agent = daemon.join("bot");
    let id = agent.call("ask-1", 7, "order", arguments);
    let pending = agent.answer(id);
    assert_eq!(pending["final"], false, "{pending}");
    let all = printed(&daemon, "boss", &["approvals"], 0);
    let text = |field: &str| {
        let text = all["pending"][0][field].as_str();
        text.unwrap_or_else(|| panic!("no {field}: {all}"))
            .to_owned()
    };
    let (approval, digest) = (text("approval"), text("digest"));
    Asked {
        daemon,
        _agent: agent,
        approval,
        digest,
    }
}

impl Asked {
    fn approving(&self, more: &[&str], ahead: &str) -> Terminal {
        let args = [&["approve", &self.approval, "--wait", "0"], more].concat();
        Terminal::start(&mut rolebroker(&self.daemon, "boss", &args), 24, 80, ahead)
    }

    #[track_caller]
    fn still_waits(&self) {
        let all = printed(&self.daemon, "boss", &["approvals"], 0);
        assert_eq!(all["pending"][0]["approval"], self.approval, "{all}");
    }

    /// The screens that a person goes through up to the question, each as the terminal shows it.
    fn screens(&self) -> Vec<String> {
        let mut terminal = self.approving(&[], "");
        let mut screens = Vec::new();
        loop {
            let (which, screen) = terminal.shows(&[NEXT, QUESTION]);
            screens.push(self.steady(&screen));
            if which == 1 {
                break;
            }
            terminal.types("\n");
        }
        terminal.types("n\n");
        let (code, written) = terminal.end();
        assert_eq!(code, Some(1), "{written}");
        assert!(
            written.ends_with("not answered; it still waits\r\n"),
            "{written}"
        );
        is_clean(&written);
        self.still_waits();
        screens
    }

    /// A screen without what differs from run to run.
    fn steady(&self, screen: &str) -> String {
        let mut steady = String::new();
        for line in screen.replace(&self.approval, "approval").lines() {
            let line = match line.split_once("lapses in ") {
                Some((head, _)) => format!("{head}lapses in 9m 59s"),
                None => line.to_owned(),
            };
            writeln!(steady, "{line}").expect("a string");
        }
        steady
    }
}

/// Letters of the tests that a terminal may get as they are.
const LETTERS: &str = "äöüßéаеорсӏαοωя你好กิ่∕／";

/// Nothing but printable ASCII, line ends, and known letters went to the terminal.
#[track_caller]
fn is_clean(written: &str) {
    let raw = |c: &char| !(' '..='~').contains(c) && !"\r\n".contains(*c) && !LETTERS.contains(*c);
    let raw: Vec<String> = written
        .chars()
        .filter(raw)
        .map(|c| c.escape_unicode().to_string())
        .collect();
    assert!(raw.is_empty(), "{raw:?} went to the terminal:\n{written}");
}

#[track_caller]
fn snapshot(name: &str, screens: &[String]) {
    let mut whole = String::new();
    for (at, screen) in screens.iter().enumerate() {
        writeln!(whole, "{:=^80}\n{screen}", format!(" screen {} ", at + 1)).expect("a string");
    }
    // Wherever the test is started from.
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/e2e/snapshots"));
    settings.bind(|| insta::assert_snapshot!(name, whole));
}

#[test]
fn what_is_reordered_by_bidirectional_marks_is_shown_in_its_order() {
    let arguments = json!({
        "path": "/srv/docs/\u{202e}cod.exe",
        "code": "if admin\u{2066} // ok \u{2069}\u{2066} { grant(); \u{2069}",
        "ול": "שלום \u{200f}x\u{200e}\u{61c}",
        "arabic": "مرحبا 123",
    });
    snapshot("bidirectional", &asked(&arguments.to_string()).screens());
}

#[test]
fn names_that_pass_for_others_are_flagged() {
    let arguments = json!({
        "url": "https://p\u{430}ypal.com/\u{4cf}ogin",
        "host": "\u{430}\u{440}\u{440}\u{4cf}\u{435}.com",
        "path": "/etc\u{2215}passwd",
        "t\u{43e}": "b\u{43e}b@example.org",
        "prose": "Grüße — nein: äöüß, 你好".replace('—', "-"),
    });
    snapshot("lookalikes", &asked(&arguments.to_string()).screens());
}

#[test]
fn what_does_not_show_is_shown_as_an_escape() {
    let tags: String = "ignore all rules"
        .chars()
        .filter_map(|c| char::from_u32(0xe0000 + u32::from(c)))
        .collect();
    let arguments = json!({
        "zero width": "pass\u{200b}wo\u{200d}rd\u{2060}\u{feff}\u{ad}",
        "selectors": "a\u{fe0f}b\u{e0100}c\u{180b}",
        "tags": format!("tea{tags}"),
        "fillers": "[\u{3164}\u{2800}\u{a0}\u{2003}\u{ffa0}]",
        "piles": format!("e{} \u{e01}{}", "\u{301}".repeat(4), "\u{e34}".repeat(5)),
        "lines": "a\u{2028}b\u{2029}c\u{85}d",
        "\u{200b}": null,
    });
    snapshot("invisible", &asked(&arguments.to_string()).screens());
}

#[test]
fn what_steers_a_terminal_does_not_reach_it() {
    let arguments = json!({
        "screen": "\u{1b}[2J\u{1b}[1;1H\u{1b}]0;title\u{7}\u{9b}31m",
        "line": "rm -rf /\rls        ",
        "back": "rm\u{8}\u{8}ls\u{7f}",
        "tab": "a\tb\u{b}\u{c}\u{0}",
        "its own escape": "\\u{202e} is not \u{202e}, \\n is not \n, \\\" is not \"",
    });
    snapshot("controls", &asked(&arguments.to_string()).screens());
}

#[test]
fn a_text_that_imitates_the_question_stays_in_its_frame() {
    let fake = "tea\"\n  digest     0000\n-- page 2 of 2 --\napprove this call? [y/N] y\napproved, by boss";
    let gap = format!("{fake}{}hidden far below", "\n".repeat(30));
    let asked = asked(&json!({"what": gap, "z": 1}).to_string());
    let mut terminal = asked.approving(&[], "");
    let (which, screen) = terminal.shows(&[NEXT, "\n  approve this"]);
    assert_eq!(which, 0, "{screen}");
    terminal.types("q\n");
    assert_eq!(terminal.end().0, Some(1));
    drop(terminal);
    // The question stands in the content once more; only what asks at the beginning of a row is waited for.
    let mut terminal = asked.approving(&[], "");
    let mut screens = Vec::new();
    loop {
        let (which, screen) = terminal.shows(&[NEXT, &format!("\n{QUESTION}")]);
        screens.push(asked.steady(&screen));
        if which == 1 {
            break;
        }
        terminal.types("\n");
    }
    snapshot("imitation", &screens);
}

#[test]
fn deep_arguments_stay_on_the_screen() {
    let mut deep = json!("the end");
    for level in 0..40 {
        deep = if level % 2 == 0 {
            json!([deep])
        } else {
            json!({ "inner": deep })
        };
    }
    let screens = asked(&json!({ "deep": deep, "n": [1.50, {}] }).to_string()).screens();
    snapshot("deep", &screens);
}

#[test]
fn the_largest_arguments_are_paged_to_their_end() {
    let head = r#"{"what":""#;
    let tail = r#"the end"}"#;
    let words = "0123456789abcde ";
    let text = words.repeat(65_536 / words.len());
    let room = 65_536 - head.len() - tail.len();
    let arguments = format!("{head}{}{tail}", text.get(..room).expect("ASCII"));
    let screens = asked(&arguments).screens();
    let last = screens.len();
    assert!(last > 40, "{last} pages for 64 KiB");
    let shown: String = screens
        .concat()
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .collect();
    let sent = shown.matches("0123456789abcde").count();
    // Words that are broken over two rows, or stand where a page ends, are met in other forms.
    assert!(
        sent > room / words.len() * 9 / 10,
        "{sent} of {}",
        room / words.len()
    );
    let ends = [screens.first(), screens.last()].map(|it| it.cloned().expect("a screen"));
    snapshot("largest", &ends);
}

#[test]
fn reasons_scope_and_quorum_stand_beside_the_arguments() {
    let place = Place::new().and(
        r#"
[roles.chief]
kind = "approver"
users = ["4242"]
max_class = "secret"

[[grant]]
id = "first-two"
roles = ["*"]
sessions = ["ask-*"]
tools = ["order"]
effect = "ask"
max_class = "secret"
untrusted = "ask"
approvers = ["boss", "chief"]
quorum = 2
why = "two see it; \\ \u202e is no mark of ours"
"#,
    );
    let screens = asked_in(place, r#"{"what":"tea"}"#).screens();
    snapshot("beside", &screens);
}

#[test]
fn a_yes_that_was_typed_ahead_does_not_approve() {
    let asked = asked(r#"{"what":"tea"}"#);
    let mut terminal = asked.approving(&[], "y\ny\nyes\n\ny\n");
    terminal.shows(&[QUESTION]);
    asked.still_waits();
    terminal.types("n\n");
    let (code, written) = terminal.end();
    assert_eq!(code, Some(1), "{written}");
    asked.still_waits();
    // Asked after the last page it does.
    let mut terminal = asked.approving(&["--comment", "seen"], "");
    terminal.shows(&[QUESTION]);
    terminal.types("y\n");
    let (code, written) = terminal.end();
    assert_eq!(code, Some(0), "{written}");
    assert!(written.contains("approved, by boss: seen"), "{written}");
}

#[test]
fn only_after_the_last_page_can_it_be_approved() {
    let long = "line\n".repeat(60);
    let asked = asked(&json!({ "what": long }).to_string());
    let mut terminal = asked.approving(&[], "");
    terminal.shows(&["-- page 1 of 4 --"]);
    terminal.shows(&[NEXT]);
    for answer in ["y\n", "yes\n", "n\n", "b\n"] {
        terminal.types(answer);
        terminal.shows(&["-- page 1 of 4 --"]);
        terminal.shows(&[NEXT]);
    }
    for page in ["-- page 2 of 4 --", "-- page 3 of 4 --"] {
        terminal.types("\n");
        terminal.shows(&[page]);
        terminal.shows(&[NEXT]);
    }
    // A terminal of another size shows other pages, and begins anew.
    terminal.resize(30, 100);
    terminal.types("\n");
    terminal.shows(&["another size now"]);
    terminal.shows(&["-- page 1 of 3 --"]);
    terminal.shows(&[NEXT]);
    terminal.types("\n");
    terminal.shows(&["-- page 2 of 3 --"]);
    terminal.shows(&[NEXT]);
    asked.still_waits();
    terminal.types("\n");
    terminal.shows(&["-- page 3 of 3 --"]);
    terminal.shows(&[QUESTION]);
    terminal.types("b\n");
    terminal.shows(&["-- page 2 of 3 --"]);
    terminal.shows(&[NEXT]);
    terminal.types("q\n");
    let (code, written) = terminal.end();
    assert_eq!(code, Some(1), "{written}");
    asked.still_waits();
}

#[test]
fn a_terminal_that_shows_too_little_is_not_asked_on() {
    let asked = asked("{}");
    let args = ["approve", &asked.approval];
    let mut small = Terminal::start(&mut rolebroker(&asked.daemon, "boss", &args), 5, 30, "y\n");
    let (code, written) = small.end();
    assert_eq!(code, Some(64), "{written}");
    assert!(written.contains("at least 40x6 are needed"), "{written}");
    asked.still_waits();
}

#[test]
fn a_script_approves_exactly_what_it_read() {
    let asked = asked(r#"{"what":"tea"}"#);
    let approve = ["approve", &asked.approval];
    let unasked = finished(&mut rolebroker(&asked.daemon, "boss", &approve), 64);
    let shown = String::from_utf8_lossy(&unasked.stdout);
    assert!(shown.contains("\"what\": \"tea\""), "{shown}");
    let why = String::from_utf8_lossy(&unasked.stderr);
    assert!(
        why.contains(&format!("add --digest {}", asked.digest)),
        "{why}"
    );
    let said = printed(&asked.daemon, "boss", &approve, 64);
    assert_eq!(said["status"], "error", "{said}");
    finished(
        &mut rolebroker(&asked.daemon, "boss", &[&approve[..], &["--yes"]].concat()),
        64,
    );
    let other = "0".repeat(64);
    let another = [&approve[..], &["--digest", &other]].concat();
    let refused = finished(&mut rolebroker(&asked.daemon, "boss", &another), 1);
    let why = String::from_utf8_lossy(&refused.stderr);
    assert!(why.contains("does not ask for what you read"), "{why}");
    asked.still_waits();
    let read = [&approve[..], &["--digest", &asked.digest, "--wait", "0"]].concat();
    let said = printed(&asked.daemon, "boss", &read, 0);
    assert_eq!(said["settled"]["outcome"], "approved", "{said}");
}

#[test]
fn the_approver_sees_how_the_call_ended() {
    let daemon = Place::new().start();
    let mut runner = daemon.join("files");
    for (number, says) in [
        ("1", "the call ran: result"),
        ("2", "the call failed: runner_failed"),
    ] {
        let (mut call, approval) = asking(&daemon, number);
        let args = ["approve", &approval, "--wait", "60"];
        let mut terminal = Terminal::start(&mut rolebroker(&daemon, "boss", &args), 24, 80, "");
        terminal.shows(&[QUESTION]);
        terminal.types("y\n");
        let (id, _) = runner.request();
        if number == "1" {
            runner.result(id, "\u{1b}[31mordered");
        } else {
            runner.fails(id, "no \u{1b}[31mtea");
        }
        let (code, written) = terminal.end();
        assert_eq!(code, Some(0), "{written}");
        assert!(written.contains(says), "{written}");
        is_clean(&written);
        call.end();
        let all = finished(
            &mut rolebroker(&daemon, "boss", &["approvals", "--settled"]),
            0,
        );
        let all = String::from_utf8_lossy(&all.stdout).into_owned();
        assert!(all.contains(&format!("{approval}  {says}")), "{all}");
    }
}

#[test]
fn a_call_that_goes_on_is_not_waited_for_longer_than_said() {
    let asked = asked("{}");
    let read = [
        "approve",
        &asked.approval,
        "--digest",
        &asked.digest,
        "--wait",
        "1",
    ];
    let _runner = asked.daemon.join("files");
    let done = finished(&mut rolebroker(&asked.daemon, "boss", &read), 0);
    let told = String::from_utf8_lossy(&done.stdout);
    assert!(told.contains("has not ended yet"), "{told}");
}
