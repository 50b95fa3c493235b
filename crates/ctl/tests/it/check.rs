//! `rolebroker check`, as a process: what it prints, and how it ends.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const LEAK: &str = include_str!("../../../../docs/examples/three-steps.toml");
const SHIPPED: &str = include_str!("../../../../config/rolebroker.toml");

fn check(text: &str, args: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("rules.toml"), text).unwrap();
    checked(folder.path(), args)
}

fn checked(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rolebroker"));
    command
        .current_dir(folder)
        .args(["check", "rules.toml"])
        .args(args);
    command.output().unwrap()
}

#[track_caller]
fn printed(output: &Output, code: i32) -> String {
    let (out, err) = (&output.stdout, String::from_utf8_lossy(&output.stderr));
    let out = String::from_utf8_lossy(out).into_owned();
    assert_eq!(output.status.code(), Some(code), "{out}{err}");
    out
}

fn json(output: &Output, code: i32) -> Value {
    let out = printed(output, code);
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

#[test]
fn the_leak_of_three_steps_is_laid_out() {
    assert_eq!(
        printed(&check(LEAK, &[]), 0),
        r#"rules.toml: no faults; 4 roles, 3 tools, 3 grants

paths: confidential data (or higher) can leave with no person in between, once a stranger's text was taken in

  assistant in one session
    1. mail.read  brings in internal, untrusted; seen then: internal, untrusted
                  by grant inbox, sessions *
    2. read_file  brings in confidential, trusted; seen then: confidential, untrusted
                  by grant contracts, sessions *
    3. mail.send  carries it out
                  by grant replies, sessions *
    An ask on any of these ends it. The cheapest: `untrusted = "ask"` in replies, which asks only where a stranger's text was taken in
"#
    );
    let told = json(&check(LEAK, &["--json"]), 0);
    assert_eq!(told["paths"][0]["steps"][1]["grant"], "contracts");
    assert_eq!(told["paths"][0]["remedy"], serde_json::json!(["replies"]));
    assert_eq!(told["warnings"], serde_json::json!([]));
}

#[test]
fn the_page_about_check_shows_what_it_prints() {
    let page = include_str!("../../../../docs/check.md");
    let printed =
        printed(&check(LEAK, &[]), 0).replace("rules.toml", "docs/examples/three-steps.toml");
    assert!(page.contains(&printed), "{printed}");
}

#[test]
fn an_ask_on_any_step_leaves_nothing_to_print() {
    let ask = |grant: &str| {
        let (before, after) = LEAK.split_at(LEAK.find(&format!("id = \"{grant}\"")).unwrap());
        format!("{before}{}", after.replacen("\"allow\"", "\"ask\"", 1))
    };
    let untrusted = LEAK.replace("untrusted = \"allow\"", "untrusted = \"ask\"");
    for mended in [ask("inbox"), ask("contracts"), ask("replies"), untrusted] {
        assert_ne!(mended, LEAK);
        let said = printed(&check(&mended, &["--strict"]), 0);
        assert_eq!(
            said, "rules.toml: no faults; 4 roles, 3 tools, 3 grants\n",
            "{mended}"
        );
    }
}

#[test]
fn strict_fails_where_there_is_anything_to_say() {
    printed(&check(LEAK, &["--strict"]), 1);
    printed(&check(LEAK, &["--strict", "--above", "secret"]), 0);
    let warned = LEAK.replace(
        "[roles.alice]",
        "[roles.spare]\nkind = \"runner\"\nusers = [\"1009\"]\n\n[roles.alice]",
    );
    let told = json(&check(&warned, &["--json", "--above", "secret"]), 0);
    assert_eq!(told["warnings"].as_array().unwrap().len(), 1, "{told}");
    printed(&check(&warned, &["--strict", "--above", "secret"]), 1);
}

#[test]
fn every_fault_is_told_with_its_line() {
    let faulty = LEAK.replace("\"mail.read\"]", "\"mail.read\"");
    let broken = LEAK
        .replace("kind = \"approver\"", "kind = \"approve\"")
        .replace("effect = \"allow\"\nwhy", "efect = \"allow\"\nwhy");
    for text in [faulty, broken] {
        let said = printed(&check(&text, &[]), 78);
        for line in said.lines() {
            let rest = line
                .strip_prefix("rules.toml:")
                .unwrap_or_else(|| panic!("{said}"));
            let number = rest.split(':').next().unwrap();
            assert!(number.parse::<usize>().is_ok(), "{said}");
        }
        let told = json(&check(&text, &["--json"]), 78);
        assert_eq!(
            told["faults"].as_array().unwrap().len(),
            said.lines().count()
        );
        assert_eq!(told["status"], "faults");
    }
}

#[test]
fn users_that_are_not_here_and_users_on_both_sides_are_told() {
    let said = printed(
        &check(
            &SHIPPED.replace("\"chatbot\"", "\"no-such-user-here\""),
            &[],
        ),
        0,
    );
    assert!(
        said.contains("role `bot`: there is no user `no-such-user-here` on this machine"),
        "{said}"
    );
    let shared = LEAK
        .replace("[\"1004\"]", "[\"root\"]")
        .replace("[\"1001\"]", "[\"0\"]");
    let said = printed(&check(&shared, &[]), 0);
    assert!(
        said.contains("uid 0 can be `assistant` and also `alice`: rolebrokerd would not start"),
        "{said}"
    );
    let allowed = format!(
        "approvers = [\"alice\"]\n[broker]\nallow_shared_uid = true\n{}",
        shared.replace("approvers = [\"alice\"]\n", "")
    );
    let said = printed(&check(&allowed, &[]), 0);
    assert!(said.contains("it can approve its own calls"), "{said}");
    assert!(said.contains("`allow_shared_uid` is true"), "{said}");
}

#[test]
fn what_cannot_be_read_is_no_fault_of_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let output = checked(folder.path(), &[]);
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("rules.toml"),
        "{output:?}"
    );
    assert!(
        output.stdout.is_empty() && output.status.code() == Some(1),
        "{output:?}"
    );
    std::fs::write(folder.path().join("rules.toml"), vec![b'#'; (1 << 20) + 1]).unwrap();
    printed(&checked(folder.path(), &[]), 1);
}

#[test]
fn what_a_configuration_holds_cannot_steer_the_terminal() {
    let hostile = LEAK.replacen("sessions = [\"*\"]", "sessions = [\"*\u{202e}\", \"*\"]", 1);
    let output = check(&hostile, &[]);
    let said = printed(&output, 0);
    assert!(!said.contains('\u{202e}'), "{said}");
}
