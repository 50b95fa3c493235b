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

fn reviewed(rest: &str, now: u64) -> Vec<String> {
    let now = proto::Timestamp::from_millis(now).unwrap();
    load(&format!("{WORLD}{rest}")).remarks(now)
}

/// A grant of these lines, besides an allow that lets `send` through, so that no role and no tool is left out.
fn grants(all: &[&str]) -> Vec<String> {
    let mut text = "[[grant]]\nid = \"send\"\nroles = [\"bot\"]\nsessions = [\"only-here\"]\n\
                    tools = [\"send\"]\neffect = \"allow\"\n"
        .to_owned();
    for (place, grant) in all.iter().enumerate() {
        text += &format!("[[grant]]\nid = \"g{place}\"\n{grant}\n");
    }
    reviewed(&text, 5000)
}

const ALLOW: &str =
    "roles = [\"bot\"]\nsessions = [\"a*\"]\ntools = [\"send\"]\neffect = \"allow\"\n";

#[test]
fn the_shipped_examples_have_no_remark() {
    let now = proto::Timestamp::from_millis(1_780_000_000_000).unwrap();
    let shipped = load(include_str!("../../../../config/rolebroker.toml"));
    assert_eq!(shipped.remarks(now), [""; 0]);
    let example = load(include_str!("../../../../docs/examples/three-steps.toml"));
    assert_eq!(example.remarks(now), [""; 0]);
}

#[test]
fn a_grant_that_nothing_can_use_is_told() {
    for (grant, told) in [
        (
            "roles = [\"bot\"]\nsessions = [\"*\"]\ntools = [\"send\"]\neffect = \"allow\"\nexpires = \"1970-01-01T00:00:05Z\"",
            "it expired at 1970-01-01T00:00:05Z",
        ),
        (
            "roles = [\"cron*\"]\nsessions = [\"*\"]\ntools = [\"send\"]\neffect = \"deny\"",
            "match no agent role",
        ),
        (
            "roles = [\"r*\"]\nsessions = [\"*\"]\ntools = [\"send\"]\neffect = \"deny\"",
            "match no agent role",
        ),
        (
            "roles = [\"bot\"]\nsessions = [\"*\"]\ntools = [\"x*\"]\neffect = \"deny\"",
            "match no tool",
        ),
        (
            &format!(
                "{ALLOW}where = {{ \"/a\" = {{ equals = \"x\" }}, \"/a/b\" = {{ any = true }} }}"
            ),
            "contradicts itself",
        ),
        (
            &format!("{ALLOW}where = {{ \"\" = {{ max_len = 3 }} }}"),
            "contradicts itself",
        ),
        (
            &format!(
                "{ALLOW}where = {{ \"/a\" = {{ max_len = 2 }}, \"/a/2\" = {{ equals = 1 }} }}"
            ),
            "contradicts itself",
        ),
    ] {
        let remarks = grants(&[grant]);
        assert_eq!(remarks.len(), 1, "{grant}: {remarks:?}");
        assert!(
            remarks[0].starts_with("grant `g0`: ") && remarks[0].contains(told),
            "{remarks:?}"
        );
    }
    for sound in [
        "roles = [\"b*\"]\nsessions = [\"*\"]\ntools = [\"o*\"]\neffect = \"allow\"\nexpires = \"1970-01-01T00:00:06Z\"",
        &format!("{ALLOW}where = {{ \"/a\" = {{ max_len = 3 }}, \"/a/2\" = {{ equals = 1 }} }}"),
        &format!(
            "{ALLOW}where = {{ \"/a\" = {{ equals = 1 }}, \"/a/2\" = {{ optional = {{ equals = 1 }} }} }}"
        ),
        &format!("{ALLOW}where = {{ \"/a\" = {{ any = true }}, \"/a/2\" = {{ equals = 1 }} }}"),
    ] {
        assert_eq!(grants(&[sound]), [""; 0], "{sound}");
    }
}

#[test]
fn a_grant_that_a_deny_makes_void_is_told_and_no_other() {
    let under = |folder| format!("where = {{ \"/p\" = {{ under = \"{folder}\" }} }}");
    let deny =
        |names: &str, more: &str| format!("roles = [\"*\"]\n{names}\neffect = \"deny\"\n{more}");
    let all = "sessions = [\"*\"]\ntools = [\"*\"]";
    let allow = |more: String| format!("{ALLOW}{more}");
    for (grant, deny, void) in [
        (
            allow(String::new()),
            deny("sessions = [\"a*\"]\ntools = [\"s*\"]", ""),
            true,
        ),
        (
            allow(String::new()),
            deny("sessions = [\"ab*\"]\ntools = [\"*\"]", ""),
            false,
        ),
        (
            allow(String::new()),
            deny("sessions = [\"*\"]\ntools = [\"offered.*\"]", ""),
            false,
        ),
        (
            allow(under("/a/b")),
            deny("sessions = [\"a*\"]\ntools = [\"send\"]", &under("/a")),
            true,
        ),
        (
            allow(under("/a")),
            deny("sessions = [\"a*\"]\ntools = [\"send\"]", &under("/a/b")),
            false,
        ),
        (
            allow(under("/a")),
            deny(
                "sessions = [\"a*\"]\ntools = [\"send\"]",
                "unless = { \"/p\" = { under = \"/a/b\" } }",
            ),
            false,
        ),
        (
            allow(under("/a")),
            deny(
                "sessions = [\"a*\"]\ntools = [\"send\"]",
                "unless = { \"/p\" = { under = \"/c\" } }",
            ),
            true,
        ),
    ] {
        let remarks = grants(&[&grant, &deny]);
        let told = remarks
            .iter()
            .any(|line| line.contains("`g1` denies all that it permits, so it is void"));
        assert_eq!(told, void, "{grant}\n{deny}\n{remarks:?}");
    }
    let ask = "roles = [\"bot\"]\nsessions = [\"a\"]\ntools = [\"send\"]\neffect = \"ask\"";
    let remarks = grants(&[ask, &deny("sessions = [\"a\"]\ntools = [\"*\"]", "")]);
    assert!(
        remarks[0].contains("so nobody is ever asked"),
        "{remarks:?}"
    );
    let twice = grants(&[
        &deny("sessions = [\"a\"]\ntools = [\"*\"]", ""),
        &deny("sessions = [\"a\"]\ntools = [\"s*\"]", ""),
    ]);
    assert_eq!(twice.len(), 1, "{twice:?}");
    assert!(
        twice[0].contains("grant `g1`: grant `g0` denies all that it denies"),
        "{twice:?}"
    );
    let everything = grants(&[&deny(all, "")]);
    assert!(
        everything
            .iter()
            .any(|line| line.starts_with("grant `send`:")),
        "{everything:?}"
    );
}

#[test]
fn roles_and_tools_that_the_grants_leave_out_are_told() {
    let rest = "[roles.cron]\nkind = \"agent\"\nlabel_scope = \"role\"\n[roles.idle]\nkind = \"runner\"\n\
                [roles.bob]\nkind = \"approver\"\nmax_class = \"public\"\n[[grant]]\nid = \"g\"\nroles = [\"bot\"]\n\
                sessions = [\"*\"]\ntools = [\"offered.x\"]\neffect = \"allow\"\n";
    assert_eq!(
        reviewed(rest, 0),
        [
            "role `bob`: no grant asks it",
            "role `cron`: no allow and no ask names it, so every call of it is denied",
            "role `idle`: no tool is declared for it and it may offer none",
            "tool `send`: no allow and no ask names it, so nobody may call it",
        ]
    );
}

#[test]
fn an_ask_that_its_approvers_are_not_shown_is_told() {
    let asks = "roles = [\"bot\"]\nsessions = [\"*\"]\ntools = [\"send\"]\neffect = \"ask\"\nmax_class = \"secret\"\n";
    assert_eq!(grants(&[asks]), [""; 0]);
    let text = format!("{WORLD}[[grant]]\nid = \"g\"\n{asks}").replace(
        "max_class = \"secret\", users",
        "max_class = \"internal\", users",
    );
    let remarks = load(&text).remarks(proto::Timestamp::default());
    assert_eq!(remarks.len(), 1);
    assert!(
        remarks[0].contains("none of its approvers is shown more than internal"),
        "{remarks:?}"
    );
}

#[test]
fn many_remarks_are_counted() {
    let many: Vec<String> = (0..150)
        .map(|n| format!("roles = [\"nobody-{n}*\"]\nsessions = [\"*\"]\ntools = [\"send\"]\neffect = \"deny\""))
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let remarks = grants(&many);
    assert_eq!(remarks.len(), policy::limits::MAX_REMARKS + 1);
    assert_eq!(remarks.last().unwrap(), "and 50 more");
}
