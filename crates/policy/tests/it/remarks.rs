//! What `check` tells besides faults.

use crate::fixture::load;

const WORLD: &str = r#"
approvers = ["eve"]
[roles]
bot = { kind = "agent", label_scope = "session" }
run = { kind = "runner", offers = [{ tools = ["offered.*"] }] }
eve = { kind = "approver", max_class = "secret", users = ["eve"] }
[[tool]]
name = "send"
runner = "run"
"#;

fn remarks(grants: &[&str]) -> Vec<String> {
    let mut text = WORLD.to_owned();
    for (place, grant) in grants.iter().enumerate() {
        text += &format!("[[grant]]\nid = \"g{place}\"\nsessions = [\"*\"]\n{grant}\n");
    }
    load(&text).ruleset.remarks()
}

const BOT: &str = "roles = [\"bot\"]\ntools = [\"send\"]\n";

#[test]
fn sound_rulesets_have_none() {
    assert_eq!(
        load(include_str!("../fixtures/real_case.toml"))
            .ruleset
            .remarks(),
        [""; 0]
    );
    assert_eq!(
        load(include_str!("../../../../config/rolebroker.toml"))
            .ruleset
            .remarks(),
        [""; 0]
    );
}

#[test]
fn names_that_mean_nothing_are_told() {
    let told = remarks(&[
        "effect = \"deny\"\nroles = [\"bto\", \"run\", \"b*\"]\ntools = [\"sned\", \"offered.x\", \"*\"]",
    ]);
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[0].contains("`bto` is no agent role"));
    assert!(told[1].contains("`run` is no agent role"));
    assert!(told[2].contains("`sned` is no tool"));
}

#[test]
fn a_max_class_that_does_not_count_is_told() {
    let terms = "effect = \"ask\"\nroles = [\"bot\"]\nmax_class = \"secret\"\n";
    assert!(remarks(&[&format!("{terms}tools = [\"s*\"]")])[0].contains("clearance of `send`"));
    assert_eq!(
        remarks(&[&format!("{terms}tools = [\"s*\", \"send\"]")]),
        [""; 0]
    );
}

#[test]
fn a_restriction_that_leaving_a_pointer_out_avoids_is_told() {
    let deny = format!("{BOT}effect = \"deny\"\nwhere = {{ \"/bcc\" = {{ any = true }} }}");
    let optional = format!(
        "{BOT}effect = \"deny\"\nwhere = {{ \"/bcc\" = {{ optional = {{ any = true }} }} }}"
    );
    let open = format!("{BOT}effect = \"allow\"");
    let demands = format!("{BOT}effect = \"allow\"\nwhere = {{ \"/bcc/0\" = {{ any = true }} }}");
    let forgives = format!(
        "{BOT}effect = \"allow\"\nwhere = {{ \"/bcc\" = {{ optional = {{ any = true }} }} }}"
    );
    for (rules, expected) in [
        ([&deny, &open], true),
        ([&deny, &forgives], true),
        ([&deny, &demands], false),
        ([&optional, &open], false),
        ([&deny, &optional], false),
    ] {
        let told = remarks(&[rules[0], rules[1]]);
        assert_eq!(
            told.iter().any(|line| line.contains("leaving `/bcc` out")),
            expected,
            "{told:?}"
        );
    }
}
