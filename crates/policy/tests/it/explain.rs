//! Why a grant counted or fell, in words that name the part of the grant and no value.

use policy::{Decision, Ruleset, Standing};
use proto::{DataClass, Timestamp};

use crate::fixture::{Asked, UNTRUSTED, load, seen};

const REAL_CASE: &str = include_str!("../fixtures/real_case.toml");

fn line(asked: &Asked, rules: &Ruleset, tool: &str, arguments: &str, grant: &str) -> String {
    let lines = asked.trace(rules, tool, arguments);
    let start = format!("{grant}: ");
    let found = lines.iter().find_map(|line| line.strip_prefix(&start));
    found.unwrap_or_else(|| panic!("{lines:?}")).to_owned()
}

#[test]
fn a_where_that_does_not_match_is_told_by_pointer_and_matcher() {
    let rules = load(REAL_CASE).ruleset;
    let told = |arguments, grant| line(&Asked::default(), &rules, "read_file", arguments, grant);
    assert_eq!(
        told(r#"{"path":"/etc/s3cret"}"#, "docs"),
        "falls: its `where` wants `/path` to be under `/srv/docs`, and what stands there is something else"
    );
    assert_eq!(
        told(r#"{"other":"/etc/s3cret"}"#, "docs"),
        "falls: its `where` wants `/path` to be under `/srv/docs`, and nothing stands there"
    );
    assert_eq!(
        told(r#"{"path":"../s3cret"}"#, "docs"),
        "falls: its `where` wants `/path` to be under `/srv/docs`, and what stands there cannot be judged, \
         because it is not an absolute path without `.`, `..` and empty parts"
    );
    assert_eq!(
        told(r#"{"path":"../s3cret"}"#, "no-keys"),
        "it says deny; it applies because its `where` wants `/path` to match the glob `/**/*.pem`, and what \
         stands there cannot be judged, because it is not an absolute path without `.`, `..` and empty parts"
    );
    assert_eq!(
        told(r#"{"path":"/srv/docs/a","s3cret":1}"#, "docs"),
        "falls: the arguments hold more than its `where` names (`/path`), and `only` is not false"
    );
    assert_eq!(
        told(
            r#"{"path":"/srv/docs/public-certificates/a.pem"}"#,
            "no-keys"
        ),
        "falls: its `unless` lets these arguments off (`/path`)"
    );
    assert!(told("s3cret", "no-keys").starts_with("denies: the arguments are no JSON object"));
}

#[test]
fn a_label_that_turns_an_allow_is_told_with_what_turned_it() {
    let rules = load(REAL_CASE).ruleset;
    let inside = r#"{"to":["a@example.org"],"subject":"s","body":"b"}"#;
    let told = |label| {
        line(
            &Asked::label(label),
            &rules,
            "mail.send",
            inside,
            "mail-inside",
        )
    };
    assert_eq!(
        told(seen(DataClass::Secret)),
        "permits once a person approves: it says ask, because the label is secret, over its `max_class` \
         internal, and above that it says ask"
    );
    assert_eq!(
        told(UNTRUSTED),
        "permits once a person approves: it says ask, because the label is untrusted, and its `untrusted` \
         says ask"
    );
    let note = r#"{"path":"/srv/notes/a","content":"x"}"#;
    let secret = Asked::label(seen(DataClass::Secret));
    assert_eq!(
        line(&secret, &rules, "write_file", note, "notes"),
        "it says deny, because the label is secret, over its `max_class` confidential, and above that it \
         says deny"
    );
}

#[test]
fn time_and_uses_are_told() {
    let rules = load(REAL_CASE).ruleset;
    let inside = r#"{"to":["a@example.org"],"subject":"s","body":"b"}"#;
    let late = Asked {
        now: Timestamp::from_millis(1_814_313_600_000).unwrap(),
        ..Asked::default()
    };
    assert_eq!(
        line(&late, &rules, "mail.send", inside, "mail-inside"),
        "falls: it expired at 2027-06-30T00:00:00Z"
    );
    let spent = Asked {
        uses: [("mail-inside".try_into().unwrap(), 1000)].into(),
        ..Asked::default()
    };
    assert_eq!(
        line(&spent, &rules, "mail.send", inside, "mail-inside"),
        "falls: all its uses (1000) are spent"
    );
}

#[test]
fn the_answer_is_told_in_a_sentence() {
    let rules = load(REAL_CASE).ruleset;
    let told = |asked: &Asked, tool, arguments| asked.decide(&rules, tool, arguments).in_words();
    let bot = Asked::default();
    let inside = r#"{"to":["a@example.org"],"subject":"s","body":"b"}"#;
    for (asked, tool, arguments, words) in [
        (
            &bot,
            "read_file",
            r#"{"path":"/srv/docs/a"}"#,
            "permitted by grant `docs`",
        ),
        (
            &bot,
            "mail.send",
            inside,
            "permitted by grant `mail-inside`, of which it spends a use",
        ),
        (
            &bot,
            "read_file",
            "{}",
            "denied (no_grant): no grant permits this call, or the uses of those that do are spent",
        ),
        (
            &bot,
            "read_file",
            r#"{"path":"/a.pem"}"#,
            "denied (denied_by_grant): grant `no-keys` denies it, and nothing overrides a deny",
        ),
        (
            &Asked::label(seen(DataClass::Secret)),
            "write_file",
            r#"{"path":"/srv/notes/a","content":"x"}"#,
            "denied (taint_too_high): the session has seen too much for it: at this label grant `notes` says deny",
        ),
        (
            &bot,
            "write_file",
            r#"{"path":"/srv/notes/a","content":"x"}"#,
            "a person is asked: grant `notes` wants one of alice",
        ),
    ] {
        assert_eq!(told(asked, tool, arguments), words);
    }
}

#[test]
fn a_line_says_whether_its_grant_had_a_say() {
    let rules = load(REAL_CASE).ruleset;
    let (decision, lines) =
        Asked::default().query(&rules, "read_file", r#"{"path":"/srv/docs/a"}"#, |query| {
            rules.explain(query)
        });
    assert!(matches!(decision, Decision::Permit(_)));
    let standing: Vec<_> = lines.iter().map(|line| line.standing).collect();
    let mut expected = vec![Standing::Elsewhere; lines.len()];
    expected[0] = Standing::Counts;
    expected[1] = Standing::Falls;
    assert_eq!(standing, expected);
}
