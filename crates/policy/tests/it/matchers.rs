//! Every matcher: what it matches, what differs, and what cannot be evaluated. An allow and a deny
//! with the same `where` tell the three apart.

use policy::Ruleset;

use crate::fixture::{Asked, load};

const WORLD: &str = r#"
approvers = ["eve"]
[roles]
bot = { kind = "agent", label_scope = "session" }
run = { kind = "runner" }
eve = { kind = "approver", max_class = "secret", users = ["eve"] }
[[tool]]
name = "allowed"
runner = "run"
[[tool]]
name = "denied"
runner = "run"
"#;

/// `allowed` is allowed by the constraint, `denied` denied by it and else allowed.
fn rules(constraint: &str) -> Ruleset {
    let head = "roles = [\"*\"]\nsessions = [\"*\"]\nwhere = { ";
    load(&format!(
        "{WORLD}
        [[grant]]\nid = \"a\"\neffect = \"allow\"\ntools = [\"allowed\"]\nonly = false\n{head}{constraint} }}
        [[grant]]\nid = \"d\"\neffect = \"deny\"\ntools = [\"denied\"]\n{head}{constraint} }}
        [[grant]]\nid = \"rest\"\neffect = \"allow\"\ntools = [\"denied\"]\nroles = [\"*\"]\nsessions = [\"*\"]\n"
    ))
    .ruleset
}

/// `yes`, `no`, or `?` where it cannot be evaluated.
fn fit(rules: &Ruleset, arguments: &str) -> &'static str {
    let told = |tool| Asked::default().told(rules, tool, arguments);
    match (told("allowed").as_str(), told("denied").as_str()) {
        ("permit a", "denied_by_grant d") => "yes",
        ("no_grant", "permit rest") => "no",
        ("no_grant", "denied_by_grant d") => "?",
        other => panic!("{other:?} for {arguments}"),
    }
}

/// Holds values at `/v` against matchers.
fn table(rows: &[(&str, &str, &str)]) {
    for (matcher, value, expected) in rows {
        let rules = rules(&format!("\"/v\" = {matcher}"));
        let arguments = if value.is_empty() {
            "{}".to_owned()
        } else {
            format!("{{\"v\":{value}}}")
        };
        assert_eq!(&fit(&rules, &arguments), expected, "{matcher} on {value}");
    }
}

#[test]
fn equals_and_one_of_compare_with_values_of_their_type() {
    table(&[
        (r#"{ equals = "a" }"#, r#""a""#, "yes"),
        (r#"{ equals = "a" }"#, r#""\u0061""#, "yes"),
        (r#"{ equals = "a" }"#, r#""A""#, "no"),
        (r#"{ equals = "a" }"#, "1", "?"),
        (r#"{ equals = "a" }"#, "null", "?"),
        (r#"{ equals = "a" }"#, r#"["a"]"#, "?"),
        (r#"{ equals = "a" }"#, "", "no"),
        ("{ equals = true }", "true", "yes"),
        ("{ equals = true }", "false", "no"),
        ("{ equals = true }", r#""true""#, "?"),
        (r#"{ one_of = ["a", 1] }"#, r#""a""#, "yes"),
        (r#"{ one_of = ["a", 1] }"#, "1.0", "yes"),
        (r#"{ one_of = ["a", 1] }"#, "2", "no"),
        (r#"{ one_of = ["a", 1] }"#, "true", "?"),
    ]);
}

#[test]
fn numbers_compare_by_value_and_rounded_ones_cannot_be_evaluated() {
    table(&[
        ("{ equals = 1 }", "1", "yes"),
        ("{ equals = 1 }", "1.0", "yes"),
        ("{ equals = 1.0 }", "1e0", "yes"),
        ("{ equals = 1 }", "1.5", "no"),
        ("{ equals = 0.5 }", "5e-1", "yes"),
        (
            "{ equals = 18446744073709551615 }",
            "18446744073709551615",
            "yes",
        ),
        (
            "{ equals = 18446744073709551615 }",
            "18446744073709551614",
            "no",
        ),
        ("{ equals = 9007199254740993 }", "9007199254740992", "no"),
        ("{ equals = 9007199254740992 }", "9007199254740992.0", "?"),
        ("{ equals = 1 }", "1e300", "?"),
    ]);
}

#[test]
fn a_range_includes_its_ends() {
    table(&[
        ("{ range = { min = 1, max = 10 } }", "1", "yes"),
        ("{ range = { min = 1, max = 10 } }", "10.0", "yes"),
        ("{ range = { min = 1, max = 10 } }", "10.5", "no"),
        ("{ range = { min = 1, max = 10 } }", "0", "no"),
        ("{ range = { max = 0.5 } }", "-7", "yes"),
        ("{ range = { min = 0.5 } }", "18446744073709551615", "yes"),
        ("{ range = { min = 1, max = 10 } }", "1e300", "?"),
        ("{ range = { min = 1, max = 10 } }", r#""5""#, "?"),
        ("{ range = { min = 1, max = 10 } }", "", "no"),
    ]);
}

#[test]
fn globs_and_regexes_hold_the_whole_value() {
    table(&[
        (r#"{ glob = "*@example.org" }"#, r#""a@example.org""#, "yes"),
        (
            r#"{ glob = "*@example.org" }"#,
            r#""a@example.org, b@evil.net""#,
            "no",
        ),
        (
            r#"{ glob = "*@example.org" }"#,
            r#""a@example.org\n""#,
            "no",
        ),
        (r#"{ glob = "*@example.org" }"#, "[]", "?"),
        (r#"{ glob = "/srv/*" }"#, r#""/srv/a/b""#, "no"),
        (r#"{ glob = "/srv/**" }"#, r#""/srv/a/b""#, "yes"),
        (r#"{ glob = "/srv/**" }"#, r#""/srv/../etc""#, "?"),
        (r#"{ glob = "/srv/**" }"#, r#""srv/a""#, "?"),
        (r#"{ regex = "[a-z]+" }"#, r#""abc""#, "yes"),
        (r#"{ regex = "[a-z]+" }"#, r#""abc1""#, "no"),
        (r#"{ regex = "[a-z]+" }"#, r#""abc\n""#, "no"),
        (r#"{ regex = "a|b" }"#, r#""ax""#, "no"),
        (r#"{ regex = "(?m)^a$" }"#, r#""a\nb""#, "no"),
        (r#"{ regex = "[a-z]+" }"#, "5", "?"),
    ]);
}

#[test]
fn under_wants_a_clean_absolute_path() {
    table(&[
        (r#"{ under = "/srv/docs" }"#, r#""/srv/docs/a/b""#, "yes"),
        (r#"{ under = "/srv/docs" }"#, r#""/srv/docs""#, "yes"),
        (r#"{ under = "/srv/docs" }"#, r#""/srv/docs2""#, "no"),
        (r#"{ under = "/" }"#, r#""/etc""#, "yes"),
        (r#"{ under = "/srv/docs" }"#, r#""srv/docs/a""#, "?"),
        (r#"{ under = "/srv/docs" }"#, r#""/srv/docs/../x""#, "?"),
        (r#"{ under = "/srv/docs" }"#, r#""/srv/docs/./x""#, "?"),
        (r#"{ under = "/srv/docs" }"#, r#""/srv/docs//x""#, "?"),
        (r#"{ under = "/srv/docs" }"#, r#""/srv/docs/""#, "?"),
        (r#"{ under = "/srv/docs" }"#, r#""/srv/docs/a\u0000""#, "?"),
        (r#"{ under = "/srv/docs" }"#, r#""""#, "?"),
        (r#"{ under = "/srv/docs" }"#, "7", "?"),
    ]);
}

#[test]
fn host_is_that_of_a_plain_url() {
    table(&[
        (
            r#"{ host = "example.org" }"#,
            r#""https://example.org/x""#,
            "yes",
        ),
        (
            r#"{ host = "example.org" }"#,
            r#""https://evil.net/example.org""#,
            "no",
        ),
        (
            r#"{ host = "*.example.org" }"#,
            r#""https://a.b.example.org""#,
            "yes",
        ),
        (
            r#"{ host = "*.example.org" }"#,
            r#""https://example.org""#,
            "no",
        ),
        (
            r#"{ host = "example.org" }"#,
            r#""https://example.org@evil.net/""#,
            "?",
        ),
        (
            r#"{ host = "example.org" }"#,
            r#""https://evil.net\\@example.org/""#,
            "?",
        ),
        (r#"{ host = "example.org" }"#, r#""/x""#, "?"),
        (r#"{ host = "example.org" }"#, "{}", "?"),
    ]);
}

#[test]
fn max_len_counts_bytes_and_elements() {
    table(&[
        ("{ max_len = 3 }", r#""abc""#, "yes"),
        ("{ max_len = 3 }", r#""äb""#, "yes"),
        ("{ max_len = 3 }", r#""äö""#, "no"),
        ("{ max_len = 3 }", "[1,2,3]", "yes"),
        ("{ max_len = 3 }", "[1,2,3,4]", "no"),
        ("{ max_len = 0 }", r#""""#, "yes"),
        ("{ max_len = 3 }", "12", "?"),
        ("{ max_len = 3 }", r#"{"a":1}"#, "?"),
    ]);
}

#[test]
fn any_wants_presence_and_optional_forgives_absence() {
    table(&[
        ("{ any = true }", "null", "yes"),
        ("{ any = true }", r#"{"a":[1]}"#, "yes"),
        ("{ any = true }", "", "no"),
        ("{ optional = { any = true } }", "", "yes"),
        ("{ optional = { equals = 1 } }", "", "yes"),
        ("{ optional = { equals = 1 } }", "1", "yes"),
        ("{ optional = { equals = 1 } }", "2", "no"),
        ("{ optional = { equals = 1 } }", "null", "?"),
        ("{ optional = { each = { max_len = 1 } } }", "", "yes"),
    ]);
}

#[test]
fn each_and_some_want_elements() {
    table(&[
        ("{ each = { equals = 1 } }", "[1,1.0]", "yes"),
        ("{ each = { equals = 1 } }", "[1,2]", "no"),
        ("{ each = { equals = 1 } }", "[]", "no"),
        ("{ each = { equals = 1 } }", r#"[1,"x"]"#, "?"),
        ("{ each = { equals = 1 } }", r#"["x",2]"#, "no"),
        ("{ each = { equals = 1 } }", "1", "?"),
        ("{ each = { equals = 1 } }", "", "no"),
        ("{ some = { equals = 1 } }", "[2,1]", "yes"),
        ("{ some = { equals = 1 } }", "[2,3]", "no"),
        ("{ some = { equals = 1 } }", "[]", "no"),
        ("{ some = { equals = 1 } }", r#"["x",2]"#, "?"),
        ("{ some = { equals = 1 } }", r#"["x",1]"#, "yes"),
        ("{ some = { equals = 1 } }", r#"{"0":1}"#, "?"),
        ("{ each = { some = { equals = 1 } } }", "[[1,2],[1]]", "yes"),
        ("{ each = { some = { equals = 1 } } }", "[[1,2],[2]]", "no"),
    ]);
}

#[test]
fn of_many_pointers_one_that_differs_settles_it() {
    let rules = rules(r#""/a" = { equals = 1 }, "/b/0" = { equals = 2 }"#);
    for (arguments, expected) in [
        (r#"{"a":1,"b":[2]}"#, "yes"),
        (r#"{"a":1,"b":[3]}"#, "no"),
        (r#"{"a":"x","b":[3]}"#, "no"),
        (r#"{"a":"x","b":[2]}"#, "?"),
        (r#"{"a":"x"}"#, "no"),
        (r#"{"a":1,"b":{"0":2}}"#, "yes"),
    ] {
        assert_eq!(fit(&rules, arguments), expected, "{arguments}");
    }
}

#[test]
fn arguments_that_are_no_object_are_never_read() {
    let rules = rules(r#""" = { any = true }"#);
    for unreadable in ["", "{", "[1]", "1", "null", r#"{"a":1} x"#, "{'a':1}"] {
        let told = |tool| Asked::default().told(&rules, tool, unreadable);
        assert_eq!(told("allowed"), "no_grant", "{unreadable}");
        assert_eq!(told("denied"), "denied_by_grant d", "{unreadable}");
    }
}
