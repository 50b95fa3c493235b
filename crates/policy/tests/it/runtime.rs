//! What an operator changes while the broker runs.

use policy::Ruleset;
use proto::{GrantId, RoleName, SessionId};

use crate::fixture::{Asked, load};

fn rules() -> Ruleset {
    load(include_str!("../fixtures/real_case.toml")).ruleset
}

const TERMS: &str = "roles = [\"bot\"]\nsessions = [\"mm-1\"]\ntools = [\"read_file\"]\n";
const LIMITS: &str = "expires = \"2030-01-01T00:00:00Z\"\nmax_uses = 3\n";
const ETC: &str = r#"{"path":"/etc/hosts"}"#;

fn grant(id: &str, rest: &str) -> String {
    format!("id = \"{id}\"\n{TERMS}{rest}")
}

#[test]
fn an_allow_is_added_and_taken_away() {
    let rules = rules();
    let text = grant(
        "etc",
        &format!("effect = \"allow\"\nwhere = {{ \"/path\" = {{ under = \"/etc\" }} }}\n{LIMITS}"),
    );
    let (more, id) = rules.with_grant(&text).unwrap();
    assert_eq!(id.as_str(), "etc");
    assert_eq!(Asked::default().told(&rules, "read_file", ETC), "no_grant");
    assert_eq!(Asked::default().told(&more, "read_file", ETC), "permit etc");
    let views = more.grants();
    let last = views.last().unwrap();
    assert!(last.runtime && last.max_uses == Some(3) && last.expires.is_some());
    assert_eq!(views.iter().filter(|view| view.runtime).count(), 1);
    let less = more.without_grant(&id).unwrap();
    assert_eq!(Asked::default().told(&less, "read_file", ETC), "no_grant");
    assert_eq!(less.grants(), rules.grants());
}

#[test]
fn a_deny_is_added_without_an_end() {
    let (more, _) = rules()
        .with_grant(&grant("stop", "effect = \"deny\""))
        .unwrap();
    let told = Asked::default().told(&more, "read_file", r#"{"path":"/srv/docs/a.md"}"#);
    assert_eq!(told, "denied_by_grant stop");
}

#[test]
fn what_may_not_be_added_is_told() {
    let rules = rules();
    for (text, fault) in [
        (grant("a", "effect = \"allow\""), "`expires` is missing"),
        (grant("a", "effect = \"allow\""), "`max_uses` is missing"),
        (
            grant("a", "effect = \"ask\""),
            "an ask belongs in the configuration",
        ),
        (
            grant("docs", "effect = \"deny\""),
            "grant `docs`: the id is taken",
        ),
        (
            grant("a", "effect = \"deny\"\nquorum = 1"),
            "means nothing in a deny",
        ),
        (
            grant("a", "effect = \"deny\"\n[[grant]]\nid = \"b\""),
            "unknown key `grant`",
        ),
        (
            grant("a", "effect = \"deny\"\n[roles.x]\nkind = \"agent\""),
            "no TOML",
        ),
        ("id = ".to_owned(), "no TOML"),
        (String::new(), "`id` is missing"),
    ] {
        match rules.with_grant(&text) {
            Ok(_) => panic!("taken:\n{text}"),
            Err(told) => assert!(told.contains(fault), "{told}\n{text}"),
        }
    }
}

#[test]
fn only_what_was_added_is_taken_away() {
    let rules = rules();
    let id = |id: &str| GrantId::new(id).unwrap();
    assert!(
        rules
            .without_grant(&id("docs"))
            .unwrap_err()
            .contains("stands in the configuration")
    );
    assert!(
        rules
            .without_grant(&id("nope"))
            .unwrap_err()
            .contains("there is no grant")
    );
}

#[test]
fn a_preapproval_asks_as_the_call_would() {
    let rules = rules();
    let role = RoleName::new("bot").unwrap();
    let session = SessionId::new("mm-1").unwrap();
    let write = rules.tool("write_file").unwrap().effective(None);
    let asking = |ids: &[&str]| {
        let ids: Vec<_> = ids.iter().map(|id| GrantId::new(id).unwrap()).collect();
        rules.asking(&ids, &role, &session, &write)
    };
    let ask = asking(&["notes"]).unwrap();
    let note = r#"{"path":"/srv/notes/a","content":"x"}"#;
    let decision = Asked::default().decide(&rules, "write_file", note);
    assert_eq!(decision, policy::Decision::Ask(ask));
    for (ids, fault) in [
        (&["nope"][..], "there is no grant `nope`"),
        (&["docs"], "is not for this role, session and tool"),
        (&["no-keys"], "asks nobody"),
        (&[], "no grant is named"),
    ] {
        let told = asking(ids).unwrap_err();
        assert!(told.contains(fault), "{told}");
    }
    let send = rules.tool("mail.send").unwrap().effective(None);
    let outside = [GrantId::new("mail-outside").unwrap()];
    let told = rules.asking(&outside, &role, &session, &send).unwrap_err();
    assert!(told.contains("allows no standing approval"), "{told}");
}
