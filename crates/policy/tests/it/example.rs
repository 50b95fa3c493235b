//! The commented example loads and does what its comments say.

use proto::DataClass;

use crate::fixture::{Asked, UNTRUSTED, load, seen};

const EXAMPLE: &str = include_str!("../../../../config/rolebroker.toml");

#[test]
fn the_commented_example_loads_and_does_what_it_says() {
    let rules = load(EXAMPLE).ruleset;
    let asked = Asked::default();
    let told = |tool, arguments| asked.told(&rules, tool, arguments);
    assert_eq!(
        told("read_file", r#"{"path":"/srv/docs/a.md"}"#),
        "permit docs"
    );
    assert_eq!(
        told("read_file", r#"{"path":"/srv/docs/a.key"}"#),
        "denied_by_grant no-keys"
    );
    assert_eq!(
        told(
            "read_file",
            r#"{"path":"/srv/docs/public-certificates/a.pem"}"#
        ),
        "permit docs"
    );
    assert_eq!(
        told("write_file", r#"{"path":"/srv/notes/a","content":"x"}"#),
        "ask notes"
    );
    assert_eq!(
        told(
            "search_files",
            r#"{"path":"/srv/docs/manuals","pattern":"x"}"#
        ),
        "permit search"
    );
    assert_eq!(
        told("search_files", r#"{"path":"/srv/docs","pattern":"x"}"#),
        "no_grant"
    );
    assert_eq!(
        told(
            "edit_file",
            r#"{"path":"/srv/notes/a","old":"x","new":"y"}"#
        ),
        "ask corrections"
    );
    let page = r#"{"url":"https://www.example.org/"}"#;
    assert_eq!(told("web.fetch", page), "permit fetch");
    assert_eq!(
        told("web.fetch", r#"{"url":"https://evil.net/"}"#),
        "no_grant"
    );
    assert_eq!(
        Asked::label(UNTRUSTED).told(&rules, "web.fetch", page),
        "ask fetch"
    );
    let internal = Asked::label(seen(DataClass::Internal));
    assert_eq!(
        internal.told(&rules, "web.fetch", page),
        "taint_too_high fetch"
    );
}
