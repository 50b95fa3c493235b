//! What a reload changes is told by name, and no more than can be read.

use crate::fixture::load;

const REAL_CASE: &str = include_str!("../fixtures/real_case.toml");

fn changes(edits: &[(&str, &str)]) -> Vec<String> {
    let mut text = REAL_CASE.to_owned();
    for (from, to) in edits {
        assert!(text.contains(from), "{from} is not there");
        text = text.replacen(from, to, 1);
    }
    load(&text).changes_from(&load(REAL_CASE))
}

#[test]
fn the_same_rules_change_nothing() {
    assert_eq!(changes(&[]), [""; 0]);
    assert_eq!(changes(&[("\n[broker]", "\n# a word\n[broker]")]), [""; 0]);
    assert_eq!(
        changes(&[("call_timeout = \"60s\"", "call_timeout = \"1m\"")]),
        [""; 0]
    );
}

#[test]
fn each_kind_of_change_is_told_by_name() {
    for (edit, told) in [
        (
            ("call_timeout = \"60s\"", "call_timeout = \"90s\""),
            "`call_timeout` is now 90s, was 1m",
        ),
        (
            ("approvers = [\"alice\"]", "approvers = [\"bob\"]"),
            "`approvers` is now `bob`, was `alice`",
        ),
        (
            ("concurrency = 8", "concurrency = 9"),
            "role `files` changed: concurrency",
        ),
        (
            ("users = [\"mmbot\"]", "users = [\"other\"]"),
            "role `bot` changed: users",
        ),
        (
            ("in_flight = 64", "in_flight = 65"),
            "role `bot` changed: quota",
        ),
        (
            ("tools = [\"mail.*\"]", "tools = [\"mail.*\", \"post.*\"]"),
            "role `mail` changed: offers",
        ),
        (("[roles.admin]", "[roles.root]"), "role `admin` is gone"),
        (("[roles.admin]", "[roles.root]"), "role `root` is new"),
        (
            ("class = \"public\"", "class = \"internal\""),
            "tool `read_file` changed: class",
        ),
        (
            ("Read a text file.", "Read it."),
            "tool `read_file` changed: description",
        ),
        (
            ("name = \"mail.search\"", "name = \"mail.find\""),
            "tool `mail.find` is new",
        ),
        (
            ("under = \"/srv/docs\"", "under = \"/srv\""),
            "grant `docs` changed: where",
        ),
        (
            (
                "unless = { \"/path\" = { under",
                "unless = { \"/p\" = { under",
            ),
            "grant `no-keys` changed: unless",
        ),
        (
            ("max_uses = 1000", "max_uses = 9"),
            "grant `mail-inside` changed: max_uses",
        ),
        (
            ("why = \"summaries\"", "why = \"all\"\nuntrusted = \"deny\""),
            "grant `inbox` changed: untrusted, why",
        ),
        (("id = \"notes\"", "id = \"jots\""), "grant `notes` is gone"),
    ] {
        let lines = changes(&[edit]);
        assert!(lines.iter().any(|line| line == told), "{told}: {lines:?}");
        assert!(lines.len() <= 4, "{lines:?}");
    }
    // A default that changed is told where it counts, because it voids approvals.
    let lines = changes(&[("approvers = [\"alice\"]", "approvers = [\"bob\"]")]);
    assert!(
        lines
            .iter()
            .any(|line| line == "grant `notes` changed: approvers"),
        "{lines:?}"
    );
}

#[test]
fn a_matcher_that_is_only_written_otherwise_is_told_because_approvals_are_void() {
    let rules = |written: &str| {
        load(&format!(
            "{REAL_CASE}\n[[grant]]\nid = \"one\"\nroles = [\"bot\"]\nsessions = [\"*\"]\n\
             tools = [\"read_file\"]\neffect = \"allow\"\nwhere = {{ \"/path\" = {written} }}\n"
        ))
    };
    let new = rules("{ one_of = [\"/a\"] }");
    assert_eq!(
        new.changes_from(&rules("{ equals = \"/a\" }")),
        ["grant `one` changed: how its `where` or `unless` is written"]
    );
}

#[test]
fn another_order_is_told() {
    let grant = |id: &str| {
        format!(
            "[[grant]]\nid = \"{id}\"\nroles = [\"bot\"]\nsessions = [\"*\"]\n\
             tools = [\"read_file\"]\neffect = \"allow\"\n"
        )
    };
    let (a, b) = (grant("a"), grant("b"));
    let new = load(&format!("{REAL_CASE}\n{b}{a}"));
    let old = load(&format!("{REAL_CASE}\n{a}{b}"));
    assert_eq!(
        new.changes_from(&old),
        ["the grants stand in another order"]
    );
}

#[test]
fn many_changes_are_counted() {
    let many: String = (0..50)
        .map(|n| {
            format!(
                "[[grant]]\nid = \"g{n}\"\nroles = [\"bot\"]\nsessions = [\"*\"]\n\
                 tools = [\"read_file\"]\neffect = \"deny\"\n"
            )
        })
        .collect();
    let lines = load(&format!("{REAL_CASE}\n{many}")).changes_from(&load(REAL_CASE));
    assert_eq!(lines.len(), policy::limits::MAX_CHANGES + 1);
    assert_eq!(lines.last().unwrap(), "and 30 more");
}
